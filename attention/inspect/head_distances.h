// Distances between heads of all layers over many maps, and an order that puts similar heads side by side.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "heed/attention/inspect/map_view.h"

namespace heed {

/// Mean Jensen-Shannon divergences of the rows of heads, in nats (Clark et al. 2019). Only heads of one kind
/// are compared, since their rows see the same keys.
class HeadDistances {
 public:
  /// Adds the maps of one example: of the same modules in the same order at each call. Of maps with more than
  /// 32 rows, 32 rows at equal distances count.
  void add(const std::vector<MapView>& maps);

  /// The heads of one kind: those of the first layer first.
  struct Group {
    std::string kind;                               ///< as MapView::kind
    std::vector<std::pair<size_t, int64_t>> heads;  ///< index of the map, and the head in it
    std::vector<double> distances;  ///< [heads, heads], in nats, 0 on the diagonal; at most log 2
    std::vector<size_t> order;      ///< indices into `heads`, with similar heads side by side
  };
  /// The means, one group a kind, in the order of the maps.
  std::vector<Group> groups() const;

 private:
  struct Sums {
    std::vector<std::pair<size_t, int64_t>> heads;  // as Group::heads
    std::vector<double> divergences;                // [heads, heads], above the diagonal: sums over rows
    double rows = 0;                                // number of rows
  };
  std::vector<std::string> kinds_;    // in the order of the maps
  std::map<std::string, Sums> sums_;  // by kind
};

/// The order of the leaves of a dendrogram over n items with distances [n, n], by average linkage: items that
/// merge first are side by side.
std::vector<size_t> dendrogram_order(const std::vector<double>& distances, size_t n);

}  // namespace heed

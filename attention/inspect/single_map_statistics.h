// Statistics of the heads of one map: how sharp they are, and where they attend relative to the query.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "heed/attention/inspect/map_view.h"

namespace heed {

/// Statistics of one head of one map. Weights are averaged over the rows where the key exists; entropies are
/// in nats.
struct HeadStatistics {
  double entropy = 0;            ///< mean over rows of -sum a log a
  double uniform_entropy = 0;    ///< entropy of equal weights on all visible keys: log n unless causal
  double information = 0;        ///< entropy of the mean row minus `entropy`: how much rows differ
  double confidence = 0;         ///< mean largest weight, the end-of-sentence column left out (Voita 2019)
  double diagonal = 0;           ///< mean weight of key i for query i
  double previous = 0;           ///< mean weight of key i - 1
  double next = 0;               ///< mean weight of key i + 1
  double distance = 0;           ///< mean over rows of sum_j a_ij |i - j|
  double offset = 0;             ///< mean over rows of sum_j a_ij (j - i): positive for later keys
  std::array<double, 4> band{};  ///< mean mass within |i - j| <= w, w = 0..3
  int64_t favourite = 0;         ///< the key with the largest mean weight (Conti's vertical heads)
  double favourite_mass = 0;     ///< that mean weight
};

/// Statistics of every head (definitions of Clark 2019 and Voita 2019). Weights below zero, which some
/// kernelized attentions have, count as zero in entropies. Throws a data Error when the map is inconsistent.
std::vector<HeadStatistics> head_statistics(const MapView& map);

/// True when the map is square and no query gives weight to a later key in any head.
bool causal(const MapView& map);

/// -a log a in nats, a term of an entropy; 0 for a weight that is not above zero.
double entropy_term(double weight);

/// Identifies a head of one of several maps.
struct HeadChoice {
  size_t map = 0;    ///< index of the map in the list searched
  int64_t head = 0;  ///< head of that map, from 0
};

/// The head with the most `information`: low entropy in each row, but different rows. A head whose rows all
/// attend to the same token is sharp but uninformative. The first one wins a tie. Throws a usage Error when
/// there is no map.
HeadChoice sharpest_head(const std::vector<MapView>& maps);

/// The head to show first: the sharpest of the cross-attention maps if there are any, otherwise of all.
HeadChoice first_head(const std::vector<MapView>& maps);

}  // namespace heed

// Matches the heads of two models by what they attend to in the same input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/attention/inspect/map_view.h"
#include "heed/attention/inspect/single_map_statistics.h"

namespace heed {

/// For each row the column it gets, so that the sum of costs [rows, columns] is least and no column is given
/// twice; -1 for the rows that go without where there are fewer columns. Costs are finite. Shortest
/// augmenting paths with potentials (Kuhn 1955, "the Hungarian method"), O(rows^2 columns).
std::vector<int64_t> best_assignment(const std::vector<double>& costs, int64_t rows, int64_t columns);

/// Mean Jensen-Shannon divergence of the rows of two heads, in nats: 0 for equal maps, log 2 for rows without
/// a common key. Weights below zero count as zero. Fails for maps of different extents.
double head_distance(const MapView& one, int64_t head, const MapView& other, int64_t other_head);

/// A head of one model and its counterpart in another.
struct HeadMatch {
  HeadChoice one{};      ///< in the first list of maps
  HeadChoice other{};    ///< in the second
  double distance = -1;  ///< head_distance(); below 0: `one` has no counterpart
};

/// Matches the heads of each kind, over all layers, with least sum of distances; a head of `one` for which
/// there is none is listed without. In the order of `one`. Maps above 64 tokens are compared in tiles. Fails
/// where why_incomparable() says something.
std::vector<HeadMatch> match_heads(const std::vector<MapView>& one, const std::vector<MapView>& other);

/// Why maps of two models cannot be laid side by side: no common kind, other lengths, other tokens. Empty
/// where they can.
std::string why_incomparable(const std::vector<MapView>& one, const std::vector<MapView>& other);

}  // namespace heed

// Matches the heads of two models by what they attend to in the same input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/attention/inspect/map_view.h"
#include "heed/attention/inspect/single_map_statistics.h"

namespace heed {

/// The column assigned to each row, so that the sum of costs [rows, columns] is least and no column is
/// assigned twice; -1 for rows without a column, where there are fewer columns than rows. Costs are finite.
/// Shortest augmenting paths with potentials (Kuhn 1955, "the Hungarian method"), O(rows^2 columns).
std::vector<int64_t> best_assignment(const std::vector<double>& costs, int64_t rows, int64_t columns);

/// Mean Jensen-Shannon divergence of the rows of two heads, in nats: 0 for equal maps, log 2 for rows without
/// a common key. Weights below zero count as zero. Fails for maps of different extents.
double head_distance(const MapView& first, int64_t first_head, const MapView& second, int64_t second_head);

/// A head of one model and its counterpart in another.
struct HeadMatch {
  HeadChoice one{};      ///< in the first list of maps
  HeadChoice other{};    ///< in the second
  double distance = -1;  ///< head_distance(); below 0: `one` has no counterpart
};

/// Matches the heads of each kind, over all layers, so that the sum of their distances is least. Lists every
/// head of `first`, in order, also those without a counterpart. Maps above 64 tokens are compared in tiles.
/// Fails where why_incomparable() gives a reason.
std::vector<HeadMatch> match_heads(const std::vector<MapView>& first, const std::vector<MapView>& second);

/// The reason why maps of two models cannot be laid side by side: no common kind, other lengths, other
/// tokens. Empty where they can.
std::string why_incomparable(const std::vector<MapView>& first, const std::vector<MapView>& second);

}  // namespace heed

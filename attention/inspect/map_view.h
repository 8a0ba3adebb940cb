// One attention map as plain numbers and words: what pictures and statistics are made from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heed {

/// One attention map of one head group, already in evaluation mode and cut to the real tokens.
struct MapView {
  std::string name{};  ///< module path: "encoder.0.attention"
  std::string kind{};  ///< "encoder self", "decoder self" or "cross"
  int64_t layer = 0, heads = 0, queries = 0, keys = 0;
  std::vector<float> weights{};                           ///< [heads, queries, keys]
  std::vector<std::string> query_tokens{}, key_tokens{};  ///< one word per row, one per column

  /// The weight of one key for one query in one head.
  float at(int64_t head, int64_t query, int64_t key) const {
    return weights[static_cast<size_t>((head * queries + query) * keys + key)];
  }
};

/// Throws a data Error that names the map and the numbers when extents, weights and tokens disagree.
void check(const MapView& map);

/// The same map in tiles, so that neither side exceeds `limit`: the weight of a tile is the share of its
/// queries' attention that falls on its keys, so rows keep their sum. Tokens become ranges of positions
/// ("16–31"). A map that is small enough comes back as it is.
MapView pooled(const MapView& map, int64_t limit);

/// Positions that one tile of `pooled(map, limit)` covers along a side of `extent` tokens; 1 where nothing is
/// pooled.
int64_t tile_extent(int64_t extent, int64_t limit);

}  // namespace heed

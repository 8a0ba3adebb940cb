// MapView: an attention map as plain numbers and tokens, the input of pictures and statistics.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heed {

/// One attention map of all heads of a module, recorded when evaluating and without padding.
struct MapView {
  std::string name{};                       ///< module path: "encoder.0.attention"
  std::string kind{};                       ///< "encoder self", "decoder self" or "cross"
  int64_t layer = 0;                        ///< layer that attends, from 0
  int64_t heads = 0;                        ///< extent 0 of the weights
  int64_t queries = 0;                      ///< rows of each head
  int64_t keys = 0;                         ///< columns of each head
  std::vector<float> weights{};             ///< [heads, queries, keys]
  std::vector<std::string> query_tokens{};  ///< one per row
  std::vector<std::string> key_tokens{};    ///< one per column

  /// The weight of one key for one query in one head.
  float at(int64_t head, int64_t query, int64_t key) const {
    return weights[static_cast<size_t>((head * queries + query) * keys + key)];
  }
};

/// Throws a data Error that names the map and the sizes when extents, weights and tokens disagree.
void check(const MapView& map);

/// The map in tiles, at most `limit` per side. A tile's weight is the mean over its queries of the sum over
/// its keys, so row sums are preserved. Tokens become ranges of positions ("16–31"). Returns a map that is
/// small enough unchanged.
MapView pooled(const MapView& map, int64_t limit);

/// Positions per tile of `pooled(map, limit)` along a side of `extent` tokens; 1 without pooling.
int64_t tile_extent(int64_t extent, int64_t limit);

}  // namespace heed

// MapView: an attention map as plain numbers and tokens, the input of pictures and statistics.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// The picture whose square patches, row by row, are the tokens of an input.
struct TokenPicture {
  int64_t height = 0;             ///< rows of pixels
  int64_t width = 0;              ///< pixels of a row
  int64_t channels = 1;           ///< 1: grey, 3: red, green and blue
  std::vector<uint8_t> pixels{};  ///< [height, width, channels]
  int64_t patch = 1;              ///< side of a token's square; divides height and width
  int64_t first = 0;              ///< number of tokens before the picture's: 1 with a classifying token
  std::vector<int32_t> places{};  ///< square of each token, counted row by row; empty: 0, 1, 2, ...
  /// The number of tokens of an input with this picture.
  int64_t tokens() const {
    const int64_t side = patch > 0 ? patch : 1;
    return first + (places.empty() ? (height / side) * (width / side) : static_cast<int64_t>(places.size()));
  }
};

/// Which optional parts of the maps of an input are wanted.
struct MapParts {
  bool factors = false;      ///< the queries and keys behind the weights
  bool attribution = false;  ///< gradient times weight, of the log probability of what the model chooses
  int64_t longest = 0;       ///< tokens of an input that is not given as text; 0: as many as the task shows
  int64_t max_tokens = 0;    ///< largest number of tokens of a text, or what the model reads; 0: no limit
};

/// One attention map of all heads of a module, recorded when evaluating and without padding. The members
/// after key_tokens are optional.
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

  std::vector<float> attribution{};    ///< [heads, queries, keys]: weight times gradient of the chosen output
  std::vector<float> rollout{};        ///< [queries, keys], of all layers up to this one: see add_rollout()
  std::vector<float> query_factors{};  ///< q [heads, queries, factor_width]: scores are factor_scale q . k
  std::vector<float> key_factors{};    ///< k [heads, keys, factor_width]
  int64_t factor_width = 0;            ///< length of q and k; 0: no factors
  double factor_scale = 1;             ///< factor of the dot products
  std::shared_ptr<const TokenPicture> picture{};  ///< picture whose patches are queries and keys, or null

  /// The weight of one key for one query in one head.
  float at(int64_t head, int64_t query, int64_t key) const {
    return weights[static_cast<size_t>((head * queries + query) * keys + key)];
  }
};

/// Throws a data Error that names the map and the sizes when extents, weights, tokens or optional parts
/// disagree.
void check(const MapView& map);
/// check(), and fails where the map has no head of this number; `function` begins the message.
void check_head(const char* function, const MapView& map, int64_t head);
/// "cross attention, layer 0, head 3"
std::string head_title(const MapView& map, int64_t head);

/// The number of the block in the name of a module: 3 for "encoder.blocks.3.attention"; 0 without a block.
int64_t block_of(std::string_view module_name);

/// One head as a map of its own; optional parts are left out.
MapView one_head(const MapView& map, int64_t head);

/// The mean of a map's heads as a map of one head; optional parts are left out.
MapView mean_of_heads(const MapView& map);

/// The map in tiles of several tokens, at most `limit` tiles a side. A tile's weight is the mean over its
/// queries of the sum over its keys, so row sums are preserved. Tokens become ranges of positions: "16–31". A
/// map of at most `limit` tokens a side is returned unchanged.
MapView pooled(const MapView& map, int64_t limit);

/// Numbers [heads, queries, keys] in tiles of queries_per_tile x keys_per_tile, pooled as weights are.
std::vector<float> pooled(const std::vector<float>& numbers, int64_t heads, int64_t queries, int64_t keys,
                          int64_t queries_per_tile, int64_t keys_per_tile);

/// The maps in tiles, as pooled() makes them, with the most tokens a side for which all weights together take
/// at most `bytes` as f32. Unchanged where they fit.
std::vector<MapView> pooled_within(const std::vector<MapView>& maps, int64_t bytes);

/// Positions per tile of `pooled(map, limit)` along a side of `extent` tokens; 1 without pooling.
int64_t tile_extent(int64_t extent, int64_t limit);

}  // namespace heed

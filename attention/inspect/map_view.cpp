// Checks the consistency of maps, and pools long maps into tiles.
#include "heed/attention/inspect/map_view.h"

#include <algorithm>

#include "heed/core/error.h"
#include "heed/core/io/number_text.h"

namespace heed {
namespace {

/// The tokens of tiles of so many tokens: "16–31", or the tokens themselves where a tile is one.
std::vector<std::string> tile_names(const std::vector<std::string>& tokens, int64_t tile) {
  if (tile == 1) return tokens;
  std::vector<std::string> out;
  const auto count = static_cast<int64_t>(tokens.size());
  for (int64_t first = 0; first < count; first += tile) {
    const int64_t last = std::min(first + tile, count) - 1;
    out.push_back(first == last ? text(first) : text(first, "–", last));
  }
  return out;
}

/// A map of one head with the extents and tokens of another map, and no weights yet.
MapView without_heads(const MapView& map, const std::string& kind) {
  MapView out{.name = map.name,
              .kind = kind,
              .layer = map.layer,
              .heads = 1,
              .queries = map.queries,
              .keys = map.keys};
  out.query_tokens = map.query_tokens;
  out.key_tokens = map.key_tokens;
  return out;
}

/// Bytes of all weights in f32 with at most `side` tokens or tiles a side.
int64_t pooled_bytes(const std::vector<MapView>& maps, int64_t side) {
  const auto tiles = [&](int64_t tokens) {
    const int64_t tile = tile_extent(tokens, side);
    return (tokens + tile - 1) / tile;
  };
  int64_t bytes = 0;
  for (const MapView& map : maps)
    bytes += map.heads * tiles(map.queries) * tiles(map.keys) * static_cast<int64_t>(sizeof(float));
  return bytes;
}

}  // namespace

void check(const MapView& map) {
  const auto fail_of_map = [&](const auto&... parts) {
    fail(Fault::data, "attention map '", map.name, "': ", parts...);
  };
  if (map.heads < 1 || map.queries < 1 || map.keys < 1)
    fail_of_map("it is empty: ", map.heads, " heads, ", map.queries, " queries, ", map.keys,
                " keys. Each must be at least 1.");
  const auto expected = static_cast<size_t>(map.heads * map.queries * map.keys);
  if (map.weights.size() != expected)
    fail_of_map("it has ", map.weights.size(), " weights, but ", map.heads, " heads x ", map.queries,
                " queries x ", map.keys, " keys need ", expected, ".");
  if (static_cast<int64_t>(map.query_tokens.size()) != map.queries)
    fail_of_map("it has ", map.query_tokens.size(), " query tokens for ", map.queries,
                " queries. Give one token a row.");
  if (static_cast<int64_t>(map.key_tokens.size()) != map.keys)
    fail_of_map("it has ", map.key_tokens.size(), " key tokens for ", map.keys,
                " keys. Give one token a column.");
  if (!map.attribution.empty() && map.attribution.size() != expected)
    fail_of_map("it has ", map.attribution.size(), " attributions for ", expected,
                " weights. Give one a weight.");
  if (!map.rollout.empty() && static_cast<int64_t>(map.rollout.size()) != map.queries * map.keys)
    fail_of_map("its rollout has ", map.rollout.size(), " numbers. It must have one for each of ",
                map.queries, " queries x ", map.keys, " keys.");
  const auto rows = static_cast<size_t>(map.heads * map.factor_width);
  if (map.query_factors.size() != rows * static_cast<size_t>(map.queries) ||
      map.key_factors.size() != rows * static_cast<size_t>(map.keys))
    fail_of_map("it has ", map.query_factors.size(), " and ", map.key_factors.size(),
                " numbers of queries and keys. With factor_width ", map.factor_width, ", each of ", map.heads,
                " heads has that many for each query and each key.");
  if (const TokenPicture* picture = map.picture.get()) {
    const int64_t side = std::max<int64_t>(picture->patch, 1),
                  squares = picture->height / side * (picture->width / side);
    if (picture->height % side != 0 || picture->width % side != 0 || map.queries != picture->tokens() ||
        map.keys != picture->tokens())
      fail_of_map("its picture of ", picture->height, " x ", picture->width, " pixels has ",
                  picture->tokens(), " tokens of ", side, " x ", side,
                  ". The map must have as many queries and keys.");
    for (const int32_t place : picture->places)
      if (place < 0 || place >= squares)
        fail_of_map("a token is square ", place, " of its picture, which has ", squares, ".");
    if (static_cast<int64_t>(picture->pixels.size()) != picture->height * picture->width * picture->channels)
      fail_of_map("its picture has ", picture->pixels.size(), " numbers for ", picture->height, " x ",
                  picture->width, " pixels of ", picture->channels, ". Give one a channel.");
  }
}

void check_head(const char* function, const MapView& map, int64_t head) {
  check(map);
  if (head < 0 || head >= map.heads)
    fail(function, ": head ", head, " does not exist in '", map.name, "'. Choose 0 to ", map.heads - 1, ".");
}

std::string head_title(const MapView& map, int64_t head) {
  return text(map.kind, " attention, layer ", map.layer, ", head ", head);
}

MapView one_head(const MapView& map, int64_t head) {
  MapView out = without_heads(map, map.kind);
  const auto begin = map.weights.begin() + head * map.queries * map.keys;
  out.weights.assign(begin, begin + map.queries * map.keys);
  return out;
}

MapView mean_of_heads(const MapView& map) {
  MapView out = without_heads(map, text(map.kind, ", mean of ", map.heads, " heads"));
  const auto size = static_cast<size_t>(map.queries * map.keys);
  for (size_t i = 0; i < size; ++i) {
    double sum = 0;
    for (size_t head = 0; head < static_cast<size_t>(map.heads); ++head) sum += map.weights[head * size + i];
    out.weights.push_back(static_cast<float>(sum / static_cast<double>(map.heads)));
  }
  return out;
}

int64_t tile_extent(int64_t extent, int64_t limit) {
  if (limit < 1) fail("pooled: limit is ", limit, ". It must be at least 1.");
  return (extent + limit - 1) / limit;
}

std::vector<float> pooled(const std::vector<float>& numbers, int64_t heads, int64_t queries, int64_t keys,
                          int64_t queries_per_tile, int64_t keys_per_tile) {
  const int64_t tiles_per_row = (keys + keys_per_tile - 1) / keys_per_tile;
  std::vector<float> out;
  std::vector<double> tile_sums(static_cast<size_t>(tiles_per_row));  // sums of one row of tiles
  const auto add_row = [&](const float* row) {
    for (int64_t tile = 0; tile < tiles_per_row; ++tile) {
      double sum = 0;
      for (int64_t key = tile * keys_per_tile; key < std::min((tile + 1) * keys_per_tile, keys); ++key)
        sum += row[key];
      tile_sums[static_cast<size_t>(tile)] += sum;
    }
  };
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t first = 0; first < queries; first += queries_per_tile) {
      const int64_t end = std::min(first + queries_per_tile, queries);
      tile_sums.assign(tile_sums.size(), 0);
      for (int64_t query = first; query < end; ++query)
        add_row(numbers.data() + (head * queries + query) * keys);
      for (const double sum : tile_sums)
        out.push_back(static_cast<float>(sum / static_cast<double>(end - first)));
    }
  return out;
}

MapView pooled(const MapView& map, int64_t limit) {
  const int64_t queries_per_tile = tile_extent(map.queries, limit),
                keys_per_tile = tile_extent(map.keys, limit);
  if (queries_per_tile <= 1 && keys_per_tile <= 1) return map;
  MapView out{.name = map.name, .kind = map.kind, .layer = map.layer, .heads = map.heads};
  out.query_tokens = tile_names(map.query_tokens, queries_per_tile);
  out.key_tokens = tile_names(map.key_tokens, keys_per_tile);
  out.queries = static_cast<int64_t>(out.query_tokens.size());
  out.keys = static_cast<int64_t>(out.key_tokens.size());
  out.weights = pooled(map.weights, map.heads, map.queries, map.keys, queries_per_tile, keys_per_tile);
  return out;
}

std::vector<MapView> pooled_within(const std::vector<MapView>& maps, int64_t bytes) {
  int64_t side = 1;
  for (const MapView& map : maps) side = std::max({side, map.queries, map.keys});
  while (side > 1 && pooled_bytes(maps, side) > bytes) --side;
  std::vector<MapView> out;
  for (const MapView& map : maps) out.push_back(pooled(map, side));
  return out;
}

int64_t block_of(std::string_view module_name) {
  constexpr std::string_view blocks = "blocks.";
  const size_t start = module_name.find(blocks);
  if (start == module_name.npos) return 0;
  const std::string_view number_on = module_name.substr(start + blocks.size());
  return parsed_integer(number_on.substr(0, number_on.find('.'))).value_or(0);
}

}  // namespace heed

// Checks the consistency of maps, and pools long maps into tiles.
#include "heed/attention/inspect/map_view.h"

#include <algorithm>

#include "heed/core/error.h"

namespace heed {
namespace {

std::vector<std::string> ranges(const std::vector<std::string>& tokens, int64_t tile) {
  if (tile == 1) return tokens;
  std::vector<std::string> out;
  const auto count = static_cast<int64_t>(tokens.size());
  for (int64_t first = 0; first < count; first += tile) {
    const int64_t last = std::min(first + tile, count) - 1;
    out.push_back(first == last ? text(first) : text(first, "–", last));
  }
  return out;
}

}  // namespace

void check(const MapView& map) {
  const auto wrong = [&](const auto&... parts) {
    fail(Fault::data, "attention map '", map.name, "': ", parts...);
  };
  if (map.heads < 1 || map.queries < 1 || map.keys < 1)
    wrong("it is empty: ", map.heads, " heads, ", map.queries, " queries, ", map.keys,
          " keys. Each must be at least 1.");
  const auto expected = static_cast<size_t>(map.heads * map.queries * map.keys);
  if (map.weights.size() != expected)
    wrong("it has ", map.weights.size(), " weights, but ", map.heads, " heads x ", map.queries, " queries x ",
          map.keys, " keys need ", expected, ".");
  if (static_cast<int64_t>(map.query_tokens.size()) != map.queries)
    wrong("it has ", map.query_tokens.size(), " query tokens for ", map.queries,
          " queries. Give one token a row.");
  if (static_cast<int64_t>(map.key_tokens.size()) != map.keys)
    wrong("it has ", map.key_tokens.size(), " key tokens for ", map.keys, " keys. Give one token a column.");
}

int64_t tile_extent(int64_t extent, int64_t limit) {
  if (limit < 1) fail("pooled: limit is ", limit, ". It must be at least 1.");
  return (extent + limit - 1) / limit;
}

MapView pooled(const MapView& map, int64_t limit) {
  const int64_t queries_per_tile = tile_extent(map.queries, limit),
                keys_per_tile = tile_extent(map.keys, limit);
  if (queries_per_tile <= 1 && keys_per_tile <= 1) return map;
  MapView out{map.name, map.kind, map.layer, map.heads};
  out.query_tokens = ranges(map.query_tokens, queries_per_tile);
  out.key_tokens = ranges(map.key_tokens, keys_per_tile);
  out.queries = static_cast<int64_t>(out.query_tokens.size());
  out.keys = static_cast<int64_t>(out.key_tokens.size());
  out.weights.reserve(static_cast<size_t>(out.heads * out.queries * out.keys));
  std::vector<double> row(static_cast<size_t>(out.keys));
  for (int64_t head = 0; head < map.heads; ++head)
    for (int64_t first = 0; first < map.queries; first += queries_per_tile) {
      const int64_t end = std::min(first + queries_per_tile, map.queries);
      row.assign(row.size(), 0);
      for (int64_t query = first; query < end; ++query)
        for (int64_t key = 0; key < map.keys; ++key)
          row[static_cast<size_t>(key / keys_per_tile)] += map.at(head, query, key);
      for (const double sum : row)
        out.weights.push_back(static_cast<float>(sum / static_cast<double>(end - first)));
    }
  return out;
}

}  // namespace heed

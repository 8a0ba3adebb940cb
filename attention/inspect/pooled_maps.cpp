// Finds how many tokens a side fit.
#include "heed/attention/inspect/pooled_maps.h"

#include <algorithm>

namespace heed {
namespace {

/// Bytes of all maps with at most `side` tokens or tiles a side.
int64_t pooled_bytes(const std::vector<MapView>& maps, int64_t side) {
  const auto extent = [&](int64_t tokens) {
    const int64_t tile = tile_extent(tokens, side);
    return (tokens + tile - 1) / tile;
  };
  int64_t bytes = 0;
  for (const MapView& map : maps)
    bytes += map.heads * extent(map.queries) * extent(map.keys) * static_cast<int64_t>(sizeof(float));
  return bytes;
}

}  // namespace

std::vector<MapView> pooled_within(const std::vector<MapView>& maps, int64_t bytes) {
  int64_t side = 1;
  for (const MapView& map : maps) side = std::max({side, map.queries, map.keys});
  while (side > 1 && pooled_bytes(maps, side) > bytes) --side;
  std::vector<MapView> out;
  for (const MapView& map : maps) out.push_back(pooled(map, side));
  return out;
}

}  // namespace heed

// Several maps pooled so that they fit into a number of bytes together.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/attention/inspect/map_view.h"

namespace heed {

/// The maps in tiles, as pooled() makes them, with the most tokens a side for which all weights together take
/// at most `bytes` as f32. Unchanged where they fit.
std::vector<MapView> pooled_within(const std::vector<MapView>& maps, int64_t bytes);

}  // namespace heed

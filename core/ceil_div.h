// Ceiling division, for the host and the device.
#pragma once

#include <cstdint>

#include "heed/core/host_device.h"

namespace heed {

/// n / size rounded up: the number of tiles of `size` that cover n items. n >= 0, size > 0.
HEED_BOTH constexpr int64_t ceil_div(int64_t n, int64_t size) { return (n + size - 1) / size; }

}  // namespace heed

// Counts of bits, on the host and on devices.
#pragma once

#include <bit>
#include <cstdint>

#include "heed/core/host_device.h"

namespace heed {

// nvcc 13 accepts the functions of <bit> that count bits in device code without a warning and computes wrong
// numbers there. tests/style/check.sh forbids them in device code.

/// Number of zeros below the lowest bit that is set; 64 for 0.
HEED_BOTH inline int trailing_zeros(uint64_t x) {
#ifdef __CUDA_ARCH__
  return x == 0 ? 64 : __ffsll(static_cast<long long>(x)) - 1;
#else
  return std::countr_zero(x);
#endif
}

/// Number of bits of x: 0 for 0, else one more than the position of the highest bit that is set.
HEED_BOTH inline int bit_width(uint64_t x) {
#ifdef __CUDA_ARCH__
  return 64 - __clzll(static_cast<long long>(x));
#else
  return static_cast<int>(std::bit_width(x));
#endif
}

/// The smallest power of two that is at least x; 1 for 0. x is at most 2^63.
HEED_BOTH inline uint64_t power_of_two(uint64_t x) { return x <= 1 ? 1 : uint64_t{1} << bit_width(x - 1); }

}  // namespace heed

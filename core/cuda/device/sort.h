// Sorts rows of unsigned integers on the device, and maps other numbers to integers of the same order.
#pragma once

#include <bit>
#include <cstdint>

#include "heed/core/bits.h"
#include "heed/core/dtype.h"
#include "heed/core/host_device.h"

namespace heed::cuda {

/// Maps a number to an unsigned integer: x < y where ordered(x) < ordered(y). NaN maps to the largest.
HEED_BOTH inline uint32_t ordered(int32_t x) { return static_cast<uint32_t>(x) ^ 0x80000000U; }
HEED_BOTH inline uint32_t ordered(float x) {
  if (x != x) return ~0U;
  const auto bits = std::bit_cast<uint32_t>(x == 0 ? 0.0F : x);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
}
HEED_BOTH inline uint64_t ordered(double x) {
  if (x != x) return ~uint64_t{0};
  const auto bits = std::bit_cast<uint64_t>(x == 0 ? 0.0 : x);
  return (bits >> 63) != 0 ? ~bits : bits | (uint64_t{1} << 63);
}

/// order [rows, n] = the permutation that sorts each row of keys [rows, n] in ascending order; equal keys
/// keep their order. Keys are below 2^bits.
void sort_rows(const uint32_t* keys, int64_t rows, int64_t n, int bits, int32_t* order);
void sort_rows(const uint64_t* keys, int64_t rows, int64_t n, int bits, int32_t* order);

/// Number of bits of numbers up to `max`.
inline int bits_of(int64_t max) { return bit_width(static_cast<uint64_t>(max)); }

}  // namespace heed::cuda

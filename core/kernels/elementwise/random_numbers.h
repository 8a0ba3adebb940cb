// Random numbers from a Philox block, for the CPU and the device.
#pragma once

#include <cmath>
#include <cstdint>

#include "heed/core/host_device.h"
#include "heed/core/random.h"

namespace heed::kernel {

/// Number of normal or uniform numbers of type T that a Philox block gives.
template <class T>
inline constexpr int64_t numbers_per_block = sizeof(Philox) / sizeof(T);

/// Two normal numbers by Box and Muller, from uniform u in (0, 1] and v in [0, 1), in the precision of T.
template <class T>
HEED_BOTH void normal_pair(T u, T v, T mean, T deviation, T* out) {
  const T radius = deviation * std::sqrt(T(-2) * std::log(u));
  const T angle = T(6.283185307179586) * v;  // 2 pi v
  out[0] = mean + radius * std::cos(angle);
  out[1] = mean + radius * std::sin(angle);
}

/// Turns a block into normal numbers: four of 32 bits each for float, two of 53 bits for double.
template <class T>
HEED_BOTH void normals(const Philox& block, T mean, T deviation, T* out) {
  const uint32_t* word = block.word;
  if constexpr (sizeof(T) == 4) {
    for (int i = 0; i < 4; i += 2) {
      const float u = (static_cast<float>(word[i]) + 0.5F) * 0x1p-32F;
      const float v = static_cast<float>(word[i + 1] >> 8) * 0x1p-24F;
      normal_pair(u, v, mean, deviation, out + i);
    }
  } else {
    const auto bits = [&](int i) {
      return static_cast<double>(((uint64_t{word[i]} << 32) | word[i + 1]) >> 11);
    };
    normal_pair((bits(0) + 0.5) * 0x1p-53, bits(2) * 0x1p-53, mean, deviation, out);
  }
}

/// Turns a block into numbers uniform in [low, high): four of 24 bits each for float, two of 53 bits for
/// double.
template <class T>
HEED_BOTH void uniforms(const Philox& block, T low, T high, T* out) {
  const T below_high = std::nextafter(high, low);
  const uint32_t* word = block.word;
  for (int i = 0; i < (sizeof(T) == 4 ? 4 : 2); ++i) {
    const double u =
        sizeof(T) == 4
            ? (word[i] >> 8) * 0x1p-24
            : static_cast<double>(((uint64_t{word[2 * i]} << 32) | word[2 * i + 1]) >> 11) * 0x1p-53;
    const T number =
        static_cast<T>(static_cast<double>(low) + (static_cast<double>(high) - static_cast<double>(low)) * u);
    out[i] = number < high ? number : below_high;  // rounding may give `high` itself
  }
}

}  // namespace heed::kernel

// Numbers from one element type to another, alike on both devices.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "heed/core/dtype.h"
#include "heed/core/host_device.h"

namespace heed::kernel {

/// As f32, so that rounding it once more gives what rounding once would have: towards zero, and to an odd
/// last bit where something was lost.
HEED_BOTH inline float to_odd(double value) {
  const auto near = static_cast<float>(value);
  const auto back = static_cast<double>(near);
  if (back == value || value != value || back - back != 0) return near;
  auto bits = std::bit_cast<uint32_t>(near);
  if ((back > value) == (value > 0)) --bits;  // it was rounded away from zero
  return std::bit_cast<float>(bits | 1U);
}

/// From one element type to another. Fractions are cut off; what an integer type cannot hold becomes its
/// nearest value, and NaN becomes 0.
template <class To, class From>
HEED_BOTH To converted(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_integral_v<To> && !std::is_integral_v<From>) {
    const auto as_double =
        static_cast<double>(static_cast<std::conditional_t<std::is_same_v<From, bf16>, float, From>>(value));
    if (!(as_double > static_cast<double>(std::numeric_limits<To>::min()))) {
      return as_double != as_double ? To(0) : std::numeric_limits<To>::min();
    }
    if (as_double >= static_cast<double>(std::numeric_limits<To>::max()))
      return std::numeric_limits<To>::max();
    return static_cast<To>(as_double);
  } else if constexpr (std::is_integral_v<To> && sizeof(From) > sizeof(To)) {  // i64, i32 and u8
    constexpr auto least = static_cast<From>(std::numeric_limits<To>::min()),
                   most = static_cast<From>(std::numeric_limits<To>::max());
    return static_cast<To>(value < least ? least : value > most ? most : value);
  } else if constexpr (std::is_same_v<From, bf16>) {
    return static_cast<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bf16> && std::is_same_v<From, float>) {
    return bf16(value);
  } else if constexpr (std::is_same_v<To, bf16>) {
    return bf16(to_odd(static_cast<double>(value)));
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace heed::kernel

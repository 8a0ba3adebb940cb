// Conversion of numbers between element types, for the CPU and the device.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "heed/core/dtype.h"
#include "heed/core/host_device.h"

namespace heed::kernel {

/// Rounds to odd (toward zero, then sets the last bit where the result is inexact), which avoids the double
/// rounding of f64 -> f32 -> bf16.
HEED_BOTH inline float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto widened = static_cast<double>(nearest);
  if (widened == value || value != value || widened - widened != 0) return nearest;
  auto bits = std::bit_cast<uint32_t>(nearest);
  if ((widened > value) == (value > 0)) --bits;  // `nearest` was rounded away from zero
  return std::bit_cast<float>(bits | 1U);
}

/// Converts a number to another element type. Fractions are truncated; a number out of the range of an
/// integer type becomes its nearest value, and NaN becomes 0.
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
    return static_cast<To>(
        std::clamp<From>(value, std::numeric_limits<To>::min(), std::numeric_limits<To>::max()));
  } else if constexpr (std::is_same_v<From, bf16>) {
    return static_cast<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bf16> && std::is_same_v<From, float>) {
    return bf16(value);
  } else if constexpr (std::is_same_v<To, bf16>) {
    return bf16(round_to_odd(static_cast<double>(value)));
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace heed::kernel

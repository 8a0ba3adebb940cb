// Numbers from one element type to another, alike on both devices.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/both.h"
#include "core/dtype.h"

namespace heed::kernel {

/// From one element type to another. Fractions are cut off; what an integer type cannot hold becomes its
/// nearest value, and NaN becomes 0.
template <class To, class From>
HEED_BOTH To converted(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_integral_v<To> && !std::is_integral_v<From>) {
    const auto wide =
        static_cast<double>(static_cast<std::conditional_t<std::is_same_v<From, bf16>, float, From>>(value));
    if (!(wide > static_cast<double>(std::numeric_limits<To>::min()))) {
      return wide != wide ? To(0) : std::numeric_limits<To>::min();
    }
    if (wide >= static_cast<double>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(wide);
  } else if constexpr (std::is_same_v<From, bf16>) {
    return static_cast<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bf16>) {
    return bf16(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace heed::kernel

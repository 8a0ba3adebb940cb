// IEEE half precision numbers, which files of weights hold.
#pragma once

#include <bit>
#include <cstdint>

namespace heed {

/// The value of a half precision number with these bits: 1 of sign, 5 of exponent, 10 of fraction. Exact.
inline float half_value(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000U) << 16, exponent = bits >> 10 & 31U, fraction = bits & 1023U;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000U | fraction << 13);
  if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float subnormal = static_cast<float>(fraction) * 0x1p-24F;
  return sign != 0 ? -subnormal : subnormal;
}

}  // namespace heed

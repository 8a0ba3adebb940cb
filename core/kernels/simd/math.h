// Elementary functions without branches, always inlined, so that the compiler vectorises plain loops over
// them. The float versions are accurate to about two units in the last place; the double versions are those
// of the standard library.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "heed/core/launch.h"

namespace heed::math {
namespace detail {

/// x = n ln 2 + rest with |rest| <= ln 2 / 2. `shifted` holds n + 126 in its low bits: adding 1.5 2^23 rounds
/// to whole numbers, and n + 126, moved into the exponent field, is the exponent of 2^(n - 1).
struct Reduced {
  float rest, shifted;
};

inline constexpr float round_shift = 12582912.0F + 126.0F;

[[gnu::always_inline]] HEED_BOTH inline Reduced reduced(float x) {
  const float shifted = x * 1.44269504F + round_shift;
  const float n = shifted - round_shift;
  return {(x - n * 0.693359375F) + n * 2.12194440e-4F, shifted};
}

/// 2^(n - 1); zero for n = -126.
[[gnu::always_inline]] HEED_BOTH inline float half_power(float shifted) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(__float_as_uint(shifted) << 23);
#else
  return std::bit_cast<float>(std::bit_cast<uint32_t>(shifted) << 23);
#endif
}

/// 2 (e^r - 1 - r) / r^2, fitted on |r| <= ln 2 / 2 with a relative error of e^r below 1.1e-8.
[[gnu::always_inline]] HEED_BOTH inline float exp_tail(float r) {
  float p = 2.7853101e-3F;
  p = p * r + 1.67269446e-2F;
  p = p * r + 8.33331048e-2F;
  p = p * r + 3.33331496e-1F;
  return p * r + 1.0F;
}

/// e^x for -86 <= x <= 88, and NaN for NaN.
[[gnu::always_inline]] HEED_BOTH inline float exp_within(float x) {
  const Reduced argument = reduced(x);
  const float r = argument.rest;
  return (r * r * exp_tail(r) + (r + r) + 2.0F) * half_power(argument.shifted);
}

}  // namespace detail

/// e^x. Infinity from 88.73 on, zero where the result would be below 1.7e-38 (so exp(-inf) is exactly 0), NaN
/// for NaN.
[[gnu::always_inline]] HEED_BOTH inline float exp(float x) {
#ifdef __CUDA_ARCH__
  return ::expf(x);
#else
  // Both comparisons are false for NaN, which stays NaN.
  const float bounded_below = x < -87.34F ? -87.34F : x;
  return detail::exp_within(bounded_below > 89.0F ? 89.0F : bounded_below);
#endif
}
[[gnu::always_inline]] HEED_BOTH inline double exp(double x) { return ::exp(x); }

/// (e^2x - 1) / (e^2x + 1), with e^2x - 1 computed without cancellation.
[[gnu::always_inline]] HEED_BOTH inline float tanh(float x) {
#ifdef __CUDA_ARCH__
  return ::tanhf(x);
#else
  const float magnitude = x < 0.0F ? -x : x;
  const detail::Reduced argument = detail::reduced(magnitude > 10.0F ? 20.0F : magnitude + magnitude);
  const float r = argument.rest;
  const float power = detail::half_power(argument.shifted);
  const float exp_minus_1 = (r * r * detail::exp_tail(r) + (r + r)) * power + (power + power - 1.0F);
  return std::copysign(exp_minus_1 / (exp_minus_1 + 2.0F), x);
#endif
}
[[gnu::always_inline]] HEED_BOTH inline double tanh(double x) { return ::tanh(x); }

/// 1 / (1 + e^-x).
[[gnu::always_inline]] HEED_BOTH inline float sigmoid(float x) { return 1.0F / (1.0F + exp(-x)); }
[[gnu::always_inline]] HEED_BOTH inline double sigmoid(double x) { return 1.0 / (1.0 + ::exp(-x)); }

/// The error function: x P(x^2) below 1, 1 - exp(-Q(|x|)) above; fitted to 1e-7 relative.
[[gnu::always_inline]] HEED_BOTH inline float erf(float x) {
#ifdef __CUDA_ARCH__
  return ::erff(x);
#else
  const float magnitude = x < 0.0F ? -x : x;
  const float square = x * x;
  float near = 7.87587487e-5F;
  near = near * square - 8.0168643e-4F;
  near = near * square + 5.18908724e-3F;
  near = near * square - 2.68542115e-2F;
  near = near * square + 1.12835944e-1F;
  near = near * square - 3.7612626e-1F;
  near = (near * square + 1.28379107e-1F) * x + x;
  const float t = magnitude > 4.0F ? 4.0F : magnitude;
  float far = 1.34053143e-5F;
  far = far * t - 3.19360493e-4F;
  far = far * t + 3.45079834e-3F;
  far = far * t - 2.26805899e-2F;
  far = far * t + 1.03462353e-1F;
  far = far * t + 6.38889968e-1F;
  far = far * t + 1.12608039F;
  far = far * t + 7.08698644e-4F;
  const float above = std::copysign(1.0F - detail::exp_within(-far), x);
  return magnitude < 1.0F ? near : above;
#endif
}
[[gnu::always_inline]] HEED_BOTH inline double erf(double x) { return ::erf(x); }

}  // namespace heed::math

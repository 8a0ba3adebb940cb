// Precision of matrix products.
#pragma once

#include <cstdint>

namespace heed {

/// The type that the factors of a product of f32 matrices are rounded to; sums are always f32. `bf16` nearly
/// doubles the rate on CPUs with AVX512-BF16 (core/isa.h); other CPUs compute the same numbers, up to the
/// order of sums, below the rate of f32. `tf32` keeps 10 bits of mantissa, as the tensor cores of GPUs do;
/// CPUs multiply such factors exactly. Products of f64 are never rounded.
enum class Rounding : uint8_t { none, bf16, tf32 };

}  // namespace heed

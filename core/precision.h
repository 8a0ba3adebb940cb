// How exactly products of matrices are computed.
#pragma once

#include <cstdint>

namespace heed {

/// What the factors of a product of f32 matrices are rounded to first; sums are always f32. `bf16` halves the
/// time on CPUs with AVX512-BF16 (core/isa.h) and gives the same numbers, to the rounding of sums, slowly
/// elsewhere. Products of f64 are never rounded.
enum class Precision : uint8_t { f32, bf16 };

}  // namespace heed

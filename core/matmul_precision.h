// How exactly products of matrices are computed.
#pragma once

#include <cstdint>

namespace heed {

/// What the factors of a product of f32 matrices are rounded to first; its sums are always f32. `bf16` nearly
/// doubles the rate on CPUs with AVX512-BF16 (core/isa.h) and gives the same numbers, up to the order of
/// sums, at less than the rate of f32 elsewhere. `tf32` keeps 10 bits behind the leading one, as the tensor
/// cores of GPUs read them; CPUs multiply such factors exactly. Products of f64 are never rounded.
enum class Rounding : uint8_t { none, bf16, tf32 };

}  // namespace heed

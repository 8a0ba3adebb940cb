// Rotary position embedding: rotates pairs of elements by angles that grow with the position. Su et al. 2021,
// arXiv 2104.09864.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// Which two elements of a vector are rotated together: i and i + n / 2 (NeoX, LLaMA), or 2 i and 2 i + 1
/// (GPT-J).
enum class RotaryPairs { halves, neighbours };

/// y = x with pair p of row t rotated by the angle with cosine table[t, p] and sine table[t, n / 2 + p];
/// `back` rotates by the negative angle. x and y [B, H, T, d] (last stride 1), table [T, n] (last
/// stride 1); n is even, and elements from n on are copied.
struct Rotary {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& table, RotaryPairs pairs, bool back, const Tensor& y);
  static void cuda(const Tensor& x, const Tensor& table, RotaryPairs pairs, bool back, const Tensor& y);
};

}  // namespace heed::kernel

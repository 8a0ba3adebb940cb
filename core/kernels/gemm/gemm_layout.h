// Memory layouts of the operands of a matrix product, and its factors.
#pragma once

#include <cstdint>

#include "heed/core/kernels/simd/strided_loops.h"
#include "heed/core/matmul_precision.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// The layout of a matrix: its rows are contiguous and `step` elements apart; where it is transposed, its
/// columns.
struct Layout {
  bool transposed = false;
  int64_t step = 1;

  /// Offset of an element.
  int64_t at(int64_t row, int64_t column) const {
    return transposed ? row + column * step : row * step + column;
  }
};

/// The layout of the last two axes of x, which must be gemm_ready().
inline Layout layout(const Tensor& x) {
  const int64_t rows = x.extent(-2), columns = x.extent(-1);
  const int64_t down = x.strides()[-2], right = x.strides()[-1];
  if (columns == 1) return down == 1 && rows > 1 ? Layout{true, rows} : Layout{false, rows == 1 ? 1 : down};
  if (right == 1) return {false, rows == 1 ? columns : down};
  return {true, right};
}

/// The factors of c = alpha a b + beta c in f32.
struct Factors {
  float alpha, beta;
};

/// The smallest extent of a product c = a b whose operands are rounded to bf16. Below it, rounding costs more
/// than it saves.
inline constexpr int64_t min_rounded_extent = 32;

/// True where the operands of c = a b are rounded to bf16 if the caller asks for it.
inline bool is_worth_rounding(const Tensor& a, const Tensor& c) {
  return std::min({c.extent(-2), c.extent(-1), a.extent(-1)}) >= min_rounded_extent;
}

/// True where c = a b is computed from operands rounded to bf16.
inline bool rounds_to_bf16(const Tensor& a, const Tensor& c, Rounding rounding) {
  return rounding == Rounding::bf16 && c.dtype() != DType::f64 && is_worth_rounding(a, c);
}

/// The loop over the matrices of a batch, for the tensors a, b and c of c = a b. Their batch axes are equal.
inline StridedLoop<3> batch_loop(const Tensor& a, const Tensor& b, const Tensor& c) {
  Shape batch;
  Strides a_strides, b_strides, c_strides;
  for (int64_t axis = 0; axis < c.rank() - 2; ++axis) {
    batch.push_back(c.extent(axis));
    a_strides.push_back(a.strides()[axis]);
    b_strides.push_back(b.strides()[axis]);
    c_strides.push_back(c.strides()[axis]);
  }
  return StridedLoop<3>(batch, {&a_strides, &b_strides, &c_strides});
}

}  // namespace heed::kernel

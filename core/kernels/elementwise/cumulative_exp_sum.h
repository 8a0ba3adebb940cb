// Sums of exponentials of a row and all rows before it, each beside the largest exponent so far: the running
// normaliser of a causal softmax over positions. Milakov and Gimelshein 2018, arXiv 1805.02867.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// most_t = max over j <= t of x_j, sum_t = sum over j <= t of exp(x_j - most_t), column by column. Nothing
/// overflows, and no sum is below 1. x [B, H, T, f], last stride 1; most and sum [B, H, T, f], contiguous.
struct CumulativeExpSum {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& most, const Tensor& sum);
  static void cuda(const Tensor& x, const Tensor& most, const Tensor& sum);
};

/// dx (contiguous, overwritten) from dsum [B, H, T, f], last stride 1. `most` counts as a constant.
struct CumulativeExpSumBack {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& most, const Tensor& dsum, const Tensor& dx);
  static void cuda(const Tensor& x, const Tensor& most, const Tensor& dsum, const Tensor& dx);
};

}  // namespace heed::kernel

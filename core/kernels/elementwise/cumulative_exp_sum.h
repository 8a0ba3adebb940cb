// Cumulative sums of exponentials over positions, relative to the running maximum: the denominators of a
// causal softmax over positions. Milakov and Gimelshein 2018, arXiv 1805.02867.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// max_t = max over j <= t of x_j, sum_t = sum over j <= t of exp(x_j - max_t), column by column. Nothing
/// overflows, and no sum is below 1. x [B, H, T, f], last stride 1; max and sum [B, H, T, f], contiguous.
struct CumulativeExpSum {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& max, const Tensor& sum);
  static void cuda(const Tensor& x, const Tensor& max, const Tensor& sum);
};

/// Gradient of CumulativeExpSum: writes dx (contiguous) from dsum [B, H, T, f], last stride 1. `max` is held
/// constant.
struct CumulativeExpSumBack {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& max, const Tensor& dsum, const Tensor& dx);
  static void cuda(const Tensor& x, const Tensor& max, const Tensor& dsum, const Tensor& dx);
};

}  // namespace heed::kernel

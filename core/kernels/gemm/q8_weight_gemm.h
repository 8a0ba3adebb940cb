// Matrix products of few rows with a weight in blocks of whole numbers of 8 bits, which take the time of
// reading the weight.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// c = a w^T + beta c, with a [m, K] f32, c [m, N] f32, m at most max_rows, and
///   w[j, l] = scales[j, l / block_size] q[j, l]
/// for `numbers` [N, K] of type u8, whose bytes are the signed numbers q, and scales [N, K / block_size] f32.
/// All are contiguous, and K is a multiple of block_size. Products and sums are f32.
struct Q8WeightGemm {
  static constexpr int64_t max_rows = 6;
  static constexpr int64_t block_size = 32;

  template <Isa>
  static void cpu(const Tensor& a, const Tensor& numbers, const Tensor& scales, const Tensor& c, double beta);
  static void cuda(const Tensor& a, const Tensor& numbers, const Tensor& scales, const Tensor& c,
                   double beta);
};

}  // namespace heed::kernel

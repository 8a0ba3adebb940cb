// Matrix products of few rows with a weight in bf16, which take the time of reading the weight.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// c = a w^T + beta c, with a [m, K] f32, w [N, K] bf16, c [m, N] f32, all contiguous, and m at most
/// max_rows. The numbers of w are widened as they are read: products and sums are f32.
struct Bf16WeightGemm {
  static constexpr int64_t max_rows = 6;

  template <Isa>
  static void cpu(const Tensor& a, const Tensor& w, const Tensor& c, double beta);
  static void cuda(const Tensor& a, const Tensor& w, const Tensor& c, double beta);
};

}  // namespace heed::kernel

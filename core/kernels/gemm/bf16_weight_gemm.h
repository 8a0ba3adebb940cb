// Products of few rows with a weight kept in bf16: reading the weight takes all their time.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// c = a w^T + beta c, with a [m, K] f32, w [N, K] bf16, c [m, N] f32, all dense rows and m at most
/// `few_rows`. The numbers of w are widened as they are read: products and sums are f32.
struct NarrowRows {
  static constexpr int64_t few_rows = 6;

  template <Isa>
  static void cpu(const Tensor& a, const Tensor& w, const Tensor& c, double beta);
  static void cuda(const Tensor& a, const Tensor& w, const Tensor& c, double beta);
};

}  // namespace heed::kernel

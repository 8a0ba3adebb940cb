// OpenBLAS itself, for comparison.
#pragma once

#include "heed/core/operation_count.h"
#include "heed/core/tensor.h"

namespace heed::bench {

/// c = a b for every matrix of a batch [batch, m, k] [batch, k, n], with the memory layout of `product`, by
/// OpenBLAS in the calling thread.
void blas_product(const Product& product, const Tensor& a, const Tensor& b, const Tensor& c);

}  // namespace heed::bench

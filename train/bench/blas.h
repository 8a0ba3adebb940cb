// OpenBLAS itself, for comparison.
#pragma once

#include "core/count.h"
#include "core/tensor.h"

namespace heed::bench {

/// c = a b for every matrix of a batch [batch, m, k] [batch, k, n] whose operands lie as `product` says, by
/// OpenBLAS in the calling thread.
void blas_product(const Product& product, const Tensor& a, const Tensor& b, const Tensor& c);

}  // namespace heed::bench

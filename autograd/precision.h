// The precision of products, chosen for a stretch of code.
#pragma once

#include "core/precision.h"

namespace heed {

/// While one lives, matmul() and linear() of this thread multiply in this precision, and so will their
/// gradients. What holds the numbers stays f32: weights, activations, gradients and sums.
class ProductsIn {
 public:
  explicit ProductsIn(Precision precision);
  ~ProductsIn();
  ProductsIn(const ProductsIn&) = delete;
  ProductsIn& operator=(const ProductsIn&) = delete;

 private:
  Precision before_;
};

/// The precision in force in this thread; f32 unless a ProductsIn lives.
Precision product_precision();

}  // namespace heed

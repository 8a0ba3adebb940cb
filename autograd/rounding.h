// The rounding of products, chosen for a stretch of code.
#pragma once

#include "core/rounding.h"

namespace heed {

/// While one lives, matmul() and linear() of this thread round the factors of their products, and so will
/// their gradients. What is kept stays f32: weights, activations, gradients and sums.
class ProductsRounded {
 public:
  explicit ProductsRounded(Rounding rounding);
  ~ProductsRounded();
  ProductsRounded(const ProductsRounded&) = delete;
  ProductsRounded& operator=(const ProductsRounded&) = delete;

 private:
  Rounding before_;
};

/// The rounding in force in this thread; none unless a ProductsRounded lives.
Rounding product_rounding();

}  // namespace heed

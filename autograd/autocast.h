// The rounding of products, chosen for a stretch of code.
#pragma once

#include "core/rounding.h"

namespace heed {

/// While one lives, matmul(), linear(), feed_forward() and the fused attentions of this thread round the
/// factors of their products, and so will their gradients. Weights, gradients and sums stay f32; of what a
/// layer keeps for its gradient, a device has the rounded factors.
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

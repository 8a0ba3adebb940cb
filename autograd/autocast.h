// Autocast: mixed precision of products within a scope.
#pragma once

#include "heed/core/matmul_precision.h"
#include "heed/core/scope.h"
#include "heed/core/tensor.h"

namespace heed {

/// While one lives, matmul(), linear() and feed_forward() of this thread round the factors of their products
/// to bf16 or tf32, in the backward pass too. On a GPU, attention() and pattern_attention() do so as well; on
/// a CPU with AMX attention() rounds to bf16 where there are more than three queries. No other op rounds.
/// Weights, their gradients and sums stay f32. On a GPU layers keep the rounded factors for their gradients.
/// Transformers also pass activations on as bf16: see narrowed().
class Autocast {
 public:
  explicit Autocast(Rounding rounding);  ///< Rounding::none makes products exact inside another Autocast

 private:
  ScopedValue<Rounding> rounding_;
};

/// The rounding of this thread's innermost Autocast, or none.
Rounding product_rounding();

/// x rounded to bf16 where it is f32 and products round to bf16, else x itself: the precision in which
/// activations pass from layer to layer. linear(), feed_forward(), norms, dropouts, add_dropout() and
/// products of two tensors take bf16; for other ops it is widened().
Tensor narrowed(const Tensor& x);
/// x in f32 where it is bf16, else x itself.
Tensor widened(const Tensor& x);

}  // namespace heed

// Autocast: the current rounding of products in each thread.
#include "heed/autograd/autocast.h"

#include "heed/autograd/ops.h"

namespace heed {
namespace {

thread_local Rounding current_rounding = Rounding::none;

}  // namespace

Autocast::Autocast(Rounding rounding) : rounding_(current_rounding, rounding) {}

Rounding product_rounding() { return current_rounding; }

Tensor narrowed(const Tensor& x) {
  return current_rounding == Rounding::bf16 && x.dtype() == DType::f32 ? cast(x, DType::bf16) : x;
}

Tensor widened(const Tensor& x) { return x.dtype() == DType::bf16 ? cast(x, DType::f32) : x; }

}  // namespace heed

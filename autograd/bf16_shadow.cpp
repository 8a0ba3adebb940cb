// Rounds all weights at once, and finds the copy of one of them.
#include "heed/autograd/bf16_shadow.h"

#include <utility>

#include "heed/autograd/autocast.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

thread_local const Bf16Shadow* innermost = nullptr;

}  // namespace

Bf16Shadow::Bf16Shadow(const Tensor& values) : outer_(std::exchange(innermost, this)) {
  if (values.device() == Device::cpu || values.dtype() != DType::f32 || product_rounding() != Rounding::bf16)
    return;
  values_ = values.detach();
  copy_ = Tensor(values.shape(), DType::bf16, values.device());
  launch<kernel::Copy>(values.device(), values_, copy_);
}

Bf16Shadow::~Bf16Shadow() { innermost = outer_; }

Tensor Bf16Shadow::of(const Tensor& weight) {
  if (innermost == nullptr || !innermost->copy_ || weight.storage() != innermost->values_.storage())
    return {};
  return innermost->copy_.seen_as(weight.shape(), weight.strides(),
                                  weight.offset() - innermost->values_.offset());
}

}  // namespace heed

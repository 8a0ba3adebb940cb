// Softmax and its logarithm.
#include "heed/core/kernels/norm/softmax.h"

#include "heed/autograd/ops.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

void check(const char* op, const Tensor& x) {
  if (x.rank() == 0) fail(op, ": a single number has no rows. Give it an axis with reshape.");
}

}  // namespace

Tensor softmax(const Tensor& x) {
  check("softmax", x);
  const Tensor y = empty_like(x);
  launch<kernel::Softmax>(x.device(), contiguous(x.detach()), y);
  return record("softmax", y, {&x}, [y](const Tensor& dy) -> Gradients {
    const Tensor dx = empty_like(y);
    launch<kernel::SoftmaxBack>(y.device(), y, contiguous(dy), dx);
    return {dx};
  });
}

Tensor log_softmax(const Tensor& x) {
  check("log_softmax", x);
  const Tensor y = empty_like(x);
  launch<kernel::LogSoftmax>(x.device(), contiguous(x.detach()), y);
  return record("log_softmax", y, {&x}, [y](const Tensor& dy) -> Gradients {
    const Tensor dx = empty_like(y);
    launch<kernel::LogSoftmaxBack>(y.device(), y, contiguous(dy), dx);
    return {dx};
  });
}

}  // namespace heed

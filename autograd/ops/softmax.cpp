// Softmax and its logarithm.
#include "heed/core/kernels/norm/softmax.h"

#include "heed/autograd/ops.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

template <class Forward, class Backward>
Tensor over_rows(const char* op, const Tensor& x) {
  if (x.rank() == 0) fail(op, ": a single number has no rows. Give it an axis with reshape.");
  check_float(op, x);
  const Tensor y = empty_like(x);
  launch<Forward>(x.device(), contiguous(x.detach()), y);
  return record(op, y, {&x}, [y](const Tensor& dy) -> Gradients {
    const Tensor dx = empty_like(y);
    launch<Backward>(y.device(), y, contiguous(dy), dx);
    return {dx};
  });
}

}  // namespace

Tensor softmax(const Tensor& x) { return over_rows<kernel::Softmax, kernel::SoftmaxBack>("softmax", x); }

Tensor log_softmax(const Tensor& x) {
  return over_rows<kernel::LogSoftmax, kernel::LogSoftmaxBack>("log_softmax", x);
}

}  // namespace heed

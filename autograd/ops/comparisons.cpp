// Comparisons, arguments of extrema, one-hot rows.
#include "heed/autograd/comparisons.h"

#include <numeric>
#include <vector>

#include "heed/autograd/ops.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/constant_table.h"
#include "heed/core/kernels/content/sort.h"
#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/kernels/norm/reduce.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

/// F of a and b, or with `swapped` of b and a.
template <class F>
Tensor compared(const char* op, const Tensor& first, const Tensor& second, bool swapped = false) {
  agree(op, first, second);
  if (first.dtype() == DType::bf16) check_float(op, first);
  const Tensor out(broadcast(op, first.shape(), second.shape()), DType::u8, first.device());
  const Tensor &a = swapped ? second : first, &b = swapped ? first : second;
  launch<kernel::Compare<F>>(a.device(), view::expand(a.detach(), out.shape()),
                             view::expand(b.detach(), out.shape()), out);
  return out;
}

Tensor constant_like(const char* op, const Tensor& x, double value) {
  check_not_empty(op, x);
  return Tensor::full(Shape{}, value, x.dtype(), x.device());
}

}  // namespace

Tensor equal(const Tensor& a, const Tensor& b) { return compared<Equal>("equal", a, b); }
Tensor not_equal(const Tensor& a, const Tensor& b) { return equal(compared<Equal>("not_equal", a, b), 0); }
Tensor less(const Tensor& a, const Tensor& b) { return compared<Less>("less", a, b); }
Tensor less_equal(const Tensor& a, const Tensor& b) { return compared<LessEqual>("less_equal", a, b); }
Tensor greater(const Tensor& a, const Tensor& b) { return compared<Less>("greater", a, b, true); }
Tensor greater_equal(const Tensor& a, const Tensor& b) {
  return compared<LessEqual>("greater_equal", a, b, true);
}
Tensor equal(const Tensor& x, double value) { return equal(x, constant_like("equal", x, value)); }
Tensor not_equal(const Tensor& x, double value) { return not_equal(x, constant_like("not_equal", x, value)); }
Tensor less(const Tensor& x, double value) { return less(x, constant_like("less", x, value)); }
Tensor less_equal(const Tensor& x, double value) {
  return less_equal(x, constant_like("less_equal", x, value));
}
Tensor greater(const Tensor& x, double value) { return greater(x, constant_like("greater", x, value)); }
Tensor greater_equal(const Tensor& x, double value) {
  return greater_equal(x, constant_like("greater_equal", x, value));
}

Tensor argmax(const Tensor& x, int64_t axis) {
  check_float("argmax", x);
  axis = axis_of("argmax", x, axis);
  if (x.extent(axis) == 0) fail("argmax: axis ", axis, " of ", x.shape(), " has no element.");
  Shape shape = x.shape();
  shape[axis] = 1;
  const Tensor largest = empty_like(x, shape), index(shape, DType::i64, x.device());
  launch<kernel::Max>(x.device(), x.detach(), largest, index);
  return select(cast(index, DType::i32), axis, 0);
}

TopK top_k(const Tensor& x, int64_t k) {
  check_float("top_k", x);
  if (x.rank() == 0 || k < 1 || k > x.extent(-1))
    fail("top_k: k = ", k, " for rows of x ", x.shape(), ". It must be 1 to the last extent.");
  const Tensor ascending(x.shape(), DType::i32, x.device());
  launch<kernel::Argsort>(x.device(), contiguous(-x.detach()), ascending);
  const Tensor indices = contiguous(view::slice(ascending, -1, 0, k));
  return {.values = gather(x, -1, indices), .indices = indices};
}

Tensor one_hot(const Tensor& ids, int64_t classes, DType dtype) {
  if (ids.dtype() != DType::i32 || classes < 1)
    fail("one_hot: ids ", ids.dtype(), " ", ids.shape(), " of ", classes,
         " classes. They must be i32, and the classes at least 1.", index_advice("ids", ids));
  std::vector<int32_t> all(static_cast<size_t>(classes));
  std::iota(all.begin(), all.end(), 0);
  const Tensor row = constant_table(std::span<const int32_t>(all), Shape{classes}, ids.device());
  Shape shape = ids.shape();
  shape.push_back(1);
  return cast(equal(reshape(ids.detach(), shape), row), dtype);
}

}  // namespace heed

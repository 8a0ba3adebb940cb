// Products of matrices.
#include "heed/autograd/autocast.h"
#include "heed/autograd/ops.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/kernels/gemm/gemm.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

Tensor ready(const Tensor& x) { return kernel::gemm_ready(x) ? x.detach() : contiguous(x.detach()); }

/// c = a b detached from the graph, batch axes broadcast. [..., M, K] [..., K, N] -> [..., M, N]
Tensor product(const Tensor& a, const Tensor& b, Rounding rounding) {
  if (a.rank() < 2 || b.rank() < 2) {
    fail("matmul: ", a.shape(), " times ", b.shape(), ". Both need at least two axes; add one with reshape.");
  }
  if (a.extent(-1) != b.extent(-2))
    fail("matmul: inner extents differ, ", a.shape(), " times ", b.shape(), ".");
  agree("matmul", a, b);
  if (!is_float(a.dtype())) check_float("matmul", a);
  const auto batch_of = [](const Tensor& x) {
    return Shape(std::span(x.shape().begin(), x.shape().end() - 2));
  };
  Shape shape_a = broadcast("matmul", batch_of(a), batch_of(b));
  Shape shape_b = shape_a;
  Shape shape_c = shape_a;
  shape_a.push_back(a.extent(-2));
  shape_a.push_back(a.extent(-1));
  shape_b.push_back(b.extent(-2));
  shape_b.push_back(b.extent(-1));
  shape_c.push_back(a.extent(-2));
  shape_c.push_back(b.extent(-1));
  const Tensor c = empty_like(a, shape_c);
  launch<kernel::Gemm>(a.device(), view::expand(ready(a), shape_a), view::expand(ready(b), shape_b), c, 1.0,
                       0.0, rounding);
  return c;
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  const Rounding rounding = product_rounding();
  // a is kept only where b needs a gradient, and b only where a does.
  return record("matmul", product(a, b, rounding), {&a, &b},
                [a = b.node() ? a.detach() : Tensor(), b = a.node() ? b.detach() : Tensor(), sa = a.shape(),
                 sb = b.shape(), rounding](const Tensor& dy) -> Gradients {
                  return {b ? sum_to(product(dy, view::transpose(b, -1, -2), rounding), sa) : Tensor(),
                          a ? sum_to(product(view::transpose(a, -1, -2), dy, rounding), sb) : Tensor()};
                });
}

}  // namespace heed

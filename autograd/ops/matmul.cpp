// Products of matrices.
#include "autograd/narrow_weights.h"
#include "autograd/ops.h"
#include "autograd/ops/agree.h"
#include "autograd/rounding.h"
#include "core/kernels/copy.h"
#include "core/kernels/gemm.h"
#include "core/kernels/narrow_rows.h"
#include "core/launch.h"

namespace heed {
namespace {

Tensor ready(const Tensor& x) { return kernel::gemm_ready(x) ? x.detach() : contiguous(x.detach()); }

/// c = a b without history, batch axes broadcast. [..., M, K] [..., K, N] -> [..., M, N]
Tensor product(const Tensor& a, const Tensor& b, Rounding rounding) {
  if (a.rank() < 2 || b.rank() < 2) {
    fail("matmul: ", a.shape(), " times ", b.shape(), ". Both need at least two axes; add one with reshape.");
  }
  if (a.extent(-1) != b.extent(-2))
    fail("matmul: inner extents differ, ", a.shape(), " times ", b.shape(), ".");
  agree("matmul", a, b);
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
  const Tensor c = like(a, shape_c);
  launch<kernel::Gemm>(a.device(), view::expand(ready(a), shape_a), view::expand(ready(b), shape_b), c, 1.0,
                       0.0, rounding);
  return c;
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  // Only the factor that the other's gradient needs is kept.
  const Rounding rounding = product_rounding();
  return record("matmul", product(a, b, rounding), {&a, &b},
                [a = b.node() ? a.detach() : Tensor(), b = a.node() ? b.detach() : Tensor(), sa = a.shape(),
                 sb = b.shape(), rounding](const Tensor& dy) -> Gradients {
                  return {b ? sum_to(product(dy, view::transpose(b, -1, -2), rounding), sa) : Tensor(),
                          a ? sum_to(product(view::transpose(a, -1, -2), dy, rounding), sb) : Tensor()};
                });
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (weight.rank() != 2 || x.rank() < 1 || x.extent(-1) != weight.extent(1)) {
    fail("linear: an input ", x.shape(), " does not fit the weight ", weight.shape(),
         " [out, in]: the last extent must be ", weight.rank() == 2 ? weight.extent(1) : 0, ".");
  }
  const int64_t in = weight.extent(1);
  const int64_t out = weight.extent(0);
  if (bias && !(bias.shape() == Shape{out})) {
    fail("linear: the bias is ", bias.shape(), " for the weight ", weight.shape(), " [out, in]; it must be [",
         out, "].");
  }
  agree("linear", x, weight);
  if (bias) agree("linear", weight, bias);
  Shape shape = x.shape();
  shape[-1] = out;
  const Tensor rows =
      view::reshape(contiguous(x.detach()), Shape{in > 0 ? x.size() / in : 0, in});  // [N, in]
  const Tensor y = like(rows, Shape{rows.extent(0), out});                           // [N, out]
  if (bias) launch<kernel::Copy>(y.device(), view::expand(bias, y.shape()), y);
  const Rounding rounding = product_rounding();
  const bool few = !recording() && rows.extent(0) <= kernel::NarrowRows::few_rows;
  if (const Tensor* narrow = few ? narrow_copy(weight) : nullptr) {
    launch<kernel::NarrowRows>(y.device(), rows, *narrow, y, bias ? 1.0 : 0.0);
  } else {
    launch<kernel::Gemm>(y.device(), rows, ready(view::transpose(weight, 0, 1)), y, 1.0, bias ? 1.0 : 0.0,
                         rounding);
  }
  const auto vjp = [rows = weight.node() ? rows : Tensor(), weight = weight.detach(), from = x.shape(),
                    wx = x.node() != nullptr, wb = bias.node() != nullptr, rounding](const Tensor& dy) {
    const int64_t width = weight.extent(0);
    const Tensor flat =
        view::reshape(contiguous(dy), Shape{width > 0 ? dy.size() / width : 0, width});  // [N, out]
    Gradients gradients(3);
    if (wx) gradients[0] = view::reshape(product(flat, weight, rounding), from);
    if (rows) gradients[1] = product(view::transpose(flat, 0, 1), rows, rounding);
    if (wb) gradients[2] = sum_to(flat, Shape{width});
    return gradients;
  };
  return record("linear", view::reshape(y, shape), {&x, &weight, &bias}, vjp);
}

}  // namespace heed

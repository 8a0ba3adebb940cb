// Products in bf16: where the rounding applies, and where it does not.
#include "autograd/rounding.h"

#include <thread>

#include "autograd/checkpoint.h"
#include "autograd/ops.h"
#include "autograd/tape.h"
#include "core/kernels/copy.h"
#include "core/launch.h"
#include "tests/core/numbers.h"

using namespace heed;

namespace {

Tensor rounded(const Tensor& x) {
  const Tensor narrow(x.shape(), DType::bf16), wide(x.shape());
  launch<kernel::Copy>(Device::cpu, x, narrow);
  launch<kernel::Copy>(Device::cpu, narrow, wide);
  return wide;
}

/// Value and gradients of sum((x w^T) * dy) with the rounding in force while it is recorded.
struct Sweep {
  Tensor y, dx, dw;

  Sweep(const Tensor& at, const Tensor& weight, const Tensor& dy, Rounding rounding, bool again) {
    const Tensor x = leaf(at), w = leaf(weight);
    Tensor out;
    {
      const ProductsRounded scope(rounding);
      const auto f = [](std::span<const Tensor> in) { return linear(in[0], in[1], {}); };
      const Tensor inputs[] = {x, w};
      out = again ? checkpoint(f, inputs) : f(inputs);
    }
    CHECK(product_rounding() == Rounding::none);
    backward(out, dy);
    y = out.detach();
    dx = grad_of(x);
    dw = grad_of(w);
  }
};

}  // namespace

TEST_CASE("rounding: a linear layer and its gradients round their factors, checkpointed or not") {
  const Tensor x = random_tensor(Shape{48, 64}, DType::f32, 1),
               w = random_tensor(Shape{40, 64}, DType::f32, 2);
  const Tensor dy = random_tensor(Shape{48, 40}, DType::f32, 3);
  const Sweep exact(x, w, dy, Rounding::none, false), plain(x, w, dy, Rounding::bf16, false),
      again(x, w, dy, Rounding::bf16, true);
  const NoTape no_tape;
  const Tensor r = rounded(x), s = rounded(w), d = rounded(dy);
  for (const Sweep& one : {plain, again}) {
    CHECK(distance(one.y, matmul(r, transpose(s, 0, 1))) < 1e-5);
    CHECK(distance(one.dx, matmul(d, s)) < 1e-5);
    CHECK(distance(one.dw, matmul(transpose(d, 0, 1), r)) < 1e-5);
    CHECK(distance(one.y, exact.y) > 1e-3);
    CHECK(distance(one.dx, exact.dx) > 1e-3);
    CHECK(distance(one.dw, exact.dw) > 1e-3);
  }
}

TEST_CASE("rounding: the scope ends with its block, and is one thread's own") {
  CHECK(product_rounding() == Rounding::none);
  {
    const ProductsRounded outer(Rounding::bf16);
    CHECK(product_rounding() == Rounding::bf16);
    {
      const ProductsRounded inner(Rounding::none);
      CHECK(product_rounding() == Rounding::none);
    }
    CHECK(product_rounding() == Rounding::bf16);
    Rounding other = Rounding::bf16;
    std::thread([&] { other = product_rounding(); }).join();
    CHECK(other == Rounding::none);
  }
  CHECK(product_rounding() == Rounding::none);
}

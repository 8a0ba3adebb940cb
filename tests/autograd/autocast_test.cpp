// Autocast to bf16: which products it rounds, and which it does not.
#include "heed/autograd/autocast.h"

#include <thread>

#include "heed/autograd/ops.h"
#include "heed/autograd/recompute.h"
#include "heed/autograd/tape.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"
#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

Tensor rounded(const Tensor& x) {
  const Tensor narrow(x.shape(), DType::bf16), wide(x.shape());
  launch<kernel::Copy>(Device::cpu, x, narrow);
  launch<kernel::Copy>(Device::cpu, narrow, wide);
  return wide;
}

/// The largest difference as a share of the largest number.
double off(const Tensor& found, const Tensor& wanted) {
  const auto a = found.to_doubles(), b = wanted.to_doubles();
  double maximum = 0, largest = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    maximum = std::max(maximum, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(b[i]));
  }
  return maximum / largest;
}

/// Value and gradients of sum((x w^T) * dy) with the rounding in force while it is recorded.
struct Sweep {
  Tensor y, dx, dw;

  Sweep(const Tensor& at, const Tensor& weight, const Tensor& dy, Rounding rounding, bool again) {
    const Tensor x = leaf(at), w = leaf(weight);
    Tensor out;
    {
      const Autocast scope(rounding);
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
  const NoGrad no_grad;
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

TEST_CASE("rounding: the hidden layer of a feed-forward network may lie in bf16, its gradients in f32") {
  const OnEachDevice here;
  Mirror there(device_here());
  const Tensor x = random_tensor(Shape{480, 64}, DType::f32, 1),
               dy = random_tensor(Shape{480, 40}, DType::f32, 6);
  const Tensor weights[] = {
      random_tensor(Shape{96, 64}, DType::f32, 2), random_tensor(Shape{96}, DType::f32, 3),
      random_tensor(Shape{40, 96}, DType::f32, 4), random_tensor(Shape{40}, DType::f32, 5)};
  struct Found {
    Tensor y;
    std::vector<Tensor> gradients;
    int64_t kept;
  };
  const auto sweep = [&](Rounding rounding) {
    std::vector<Tensor> in = {leaf(there(x))};
    for (const Tensor& weight : weights) in.push_back(leaf(there(weight)));
    const Autocast scope(rounding);
    const int64_t before = memory_use(device_here()).live;
    const Tensor y = feed_forward(in[0], in[1], in[2], in[3], in[4]);
    Found found{y.detach(), {}, memory_use(device_here()).live - before};
    backward(y, there(dy));
    for (const Tensor& one : in) {
      found.gradients.push_back(grad_of(one));
      CHECK(found.gradients.back().dtype() == DType::f32);
    }
    return found;
  };
  sweep(Rounding::none);  // takes the room in which products work, once
  const Found exact = sweep(Rounding::none), rounded = sweep(Rounding::bf16);
  CHECK(distance(rounded.y, exact.y) > 1e-3);
  CHECK(off(rounded.y, exact.y) < 0.01);
  for (size_t i = 0; i < exact.gradients.size(); ++i) {
    CAPTURE(i);
    CHECK(off(rounded.gradients[i], exact.gradients[i]) < 0.01);
  }
  // Before and behind GELU twice 480 x 96 numbers of half the size, less the input and the weights in bf16.
  const int64_t saved = 2 * (2 * 480 * 96 - 480 * 64 - 96 * 64 - 40 * 96);
  if (device_here() != Device::cpu) CHECK(exact.kept - rounded.kept > saved * 9 / 10);
}

TEST_CASE("rounding: the scope ends with its block, and is one thread's own") {
  CHECK(product_rounding() == Rounding::none);
  {
    const Autocast outer(Rounding::bf16);
    CHECK(product_rounding() == Rounding::bf16);
    {
      const Autocast inner(Rounding::none);
      CHECK(product_rounding() == Rounding::none);
    }
    CHECK(product_rounding() == Rounding::bf16);
    Rounding other = Rounding::bf16;
    std::thread([&] { other = product_rounding(); }).join();
    CHECK(other == Rounding::none);
  }
  CHECK(product_rounding() == Rounding::none);
}

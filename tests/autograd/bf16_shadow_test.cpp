// Bf16Shadow: linear layers on a GPU read weights that were rounded together, with the bits of their own.
#include "heed/autograd/bf16_shadow.h"

#include "heed/autograd/autocast.h"
#include "heed/autograd/ops.h"
#include "heed/autograd/tape.h"
#include "heed/core/kernel_log.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

constexpr int64_t width = 48;

Tensor random(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  const Tensor x(shape, DType::f32, default_device);
  fill_normal(x, 0, 1, rng);
  return x;
}

/// A weight [width, width] that begins at this element of `values`.
Tensor weight_at(const Tensor& values, int64_t offset) {
  const Shape shape{width, width};
  return leaf(values.seen_as(shape, Strides::contiguous(shape), offset));
}

int64_t num_copies(const KernelLog& log) {
  int64_t found = 0;
  for (const KernelCall& call : log.calls()) found += call.kernel == "Copy" ? 1 : 0;
  return found;
}

}  // namespace

TEST_CASE("bf16 shadow: layers give the same bits with it, and round no weight of their own") {
  const DefaultDevice device(any_device());
  const Tensor values = random(Shape{3 * width * width}, 1);
  const Tensor first = weight_at(values, 0), second = weight_at(values, 2 * width * width),
               x = random(Shape{64, width}, 2);
  const Autocast rounding(Rounding::bf16);
  const auto run = [&] {
    first.node()->grad = second.node()->grad = Tensor();
    const Tensor y = linear(linear(x, first, {}), second, {});
    backward(sum(square(y)));
    return std::vector{y.to_host(), grad_of(first).to_host(), grad_of(second).to_host()};
  };
  int64_t alone = 0, shared = 0;
  std::vector<std::vector<float>> expected, found;
  {
    const KernelLog log;
    expected = run();
    alone = num_copies(log);
  }
  {
    const KernelLog log;
    const Bf16Shadow weights(values);
    found = run();
    shared = num_copies(log);
  }
  CHECK(found == expected);
  CHECK(alone - shared == (default_device == Device::cpu ? 0 : 1));  // one copy in place of two
}

TEST_CASE("bf16 shadow: only of the weights that it was made of, while it lives and products round") {
  const DefaultDevice device(any_device());
  const bool has_copies = default_device != Device::cpu;
  const Tensor values = random(Shape{2 * width * width}, 1), weight = weight_at(values, width * width);
  CHECK_FALSE(Bf16Shadow::of(weight));
  {
    const Bf16Shadow exact(values);
    CHECK_FALSE(Bf16Shadow::of(weight));
  }
  const Autocast rounding(Rounding::bf16);
  const Bf16Shadow weights(values);
  const Tensor copy = Bf16Shadow::of(weight);
  REQUIRE(bool(copy) == has_copies);
  CHECK_FALSE(Bf16Shadow::of(random(Shape{width, width}, 3)));
  if (has_copies) {
    CHECK(copy.dtype() == DType::bf16);
    CHECK(copy.to_host() == cast(weight.detach(), DType::bf16).to_host());
    const Bf16Shadow others(random(Shape{width * width}, 4));
    CHECK_FALSE(Bf16Shadow::of(weight));
  }
  CHECK(bool(Bf16Shadow::of(weight)) == has_copies);
}

}  // namespace heed

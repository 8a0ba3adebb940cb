// Weights in bf16 for inference: when linear() reads the copies, and that they agree with the weights.
#include "heed/autograd/bf16_weights.h"

#include <array>
#include <thread>

#include "heed/autograd/ops.h"
#include "heed/autograd/tape.h"
#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/launch.h"
#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

/// A weight whose copy differs from it, so that one sees which of the two was read.
struct Marked {
  Tensor weight = random_tensor(Shape{40, 24});
  Bf16Weights narrow{std::array{weight}};
  Tensor rounded = Tensor::of<float>(floats(weight), weight.shape());

  Marked() { launch<kernel::Affine>(Device::cpu, weight, 2.0, 0.0, weight); }
  static std::vector<float> floats(const Tensor& x) {
    const auto wide = x.to_doubles();
    return {wide.begin(), wide.end()};
  }
  bool reads_copy(const Tensor& x) const {
    const Tensor y = linear(x, weight, {});
    const double from_copy = distance(y, matmul(x, transpose(rounded, 0, 1)));
    const double from_weight = distance(y, matmul(x, transpose(weight, 0, 1)));
    REQUIRE((from_copy < 1e-5) != (from_weight < 1e-5));
    return from_copy < 1e-5;
  }
};

}  // namespace

TEST_CASE("narrow weights: the weights are rounded to what their copies hold") {
  const Tensor weight = random_tensor(Shape{30, 20}), before = cast(weight, DType::bf16);
  const Tensor vector = random_tensor(Shape{30}), wide = random_tensor(Shape{4, 4}, DType::f64);
  const auto vector_was = vector.to_doubles(), wide_was = wide.to_doubles();
  const Bf16Weights narrow(std::array{weight, vector, wide, weight});
  CHECK(weight.to_doubles() == before.to_doubles());
  REQUIRE(narrow.find(weight) != nullptr);
  CHECK(narrow.find(weight)->dtype() == DType::bf16);
  CHECK(narrow.find(weight)->to_doubles() == weight.to_doubles());
  CHECK(narrow.find(vector) == nullptr);
  CHECK(narrow.find(wide) == nullptr);
  CHECK(vector.to_doubles() == vector_was);
  CHECK(wide.to_doubles() == wide_was);
}

TEST_CASE("narrow weights: linear reads the copy for few rows, without a tape, of the whole weight") {
  const Marked marked;
  const NoGrad no_grad;
  const Tensor one = random_tensor(Shape{1, 24}), six = random_tensor(Shape{2, 3, 24}),
               seven = random_tensor(Shape{7, 24});
  CHECK_FALSE(marked.reads_copy(one));
  const Bf16Weights::Used used(marked.narrow);
  CHECK(marked.reads_copy(one));
  CHECK(marked.reads_copy(six));
  CHECK_FALSE(marked.reads_copy(seven));
  const Tensor part = view::slice(marked.weight, 0, 0, 10);
  CHECK(distance(linear(one, part, {}), matmul(one, transpose(part, 0, 1))) < 1e-5);
  {
    const EnableGrad recording;
    CHECK_FALSE(marked.reads_copy(one));
  }
  {
    const Bf16Weights none;
    const Bf16Weights::Used other(none);
    CHECK_FALSE(marked.reads_copy(one));
  }
  CHECK(marked.reads_copy(one));
  bool elsewhere = true;
  std::thread([&] {
    const NoGrad there;
    elsewhere = marked.reads_copy(one);
  }).join();
  CHECK_FALSE(elsewhere);
}

TEST_CASE("narrow weights: the bias is added") {
  const NoGrad no_grad;
  const Tensor weight = random_tensor(Shape{12, 8}), bias = random_tensor(Shape{12}),
               x = random_tensor(Shape{2, 8});
  const Bf16Weights narrow(std::array{weight});
  const Tensor plain = linear(x, weight, bias);
  const Bf16Weights::Used used(narrow);
  CHECK(distance(linear(x, weight, bias), plain) < 1e-6);
}

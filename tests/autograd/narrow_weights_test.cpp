// Weights in fewer bytes for inference: when linear() reads the copies, and that they agree with the weights.
#include "heed/autograd/narrow_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
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
  NarrowWeights narrow{std::array{weight}, WeightFormat::bf16};
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
  const NarrowWeights narrow(std::array{weight, vector, wide, weight}, WeightFormat::bf16);
  CHECK(weight.to_doubles() == before.to_doubles());
  REQUIRE(narrow.find(weight) != nullptr);
  CHECK(narrow.find(weight)->numbers.dtype() == DType::bf16);
  CHECK(narrow.find(weight)->numbers.to_doubles() == weight.to_doubles());
  CHECK(narrow.find(vector) == nullptr);
  CHECK(narrow.find(wide) == nullptr);
  CHECK(vector.to_doubles() == vector_was);
  CHECK(wide.to_doubles() == wide_was);
}

TEST_CASE("narrow weights: q8_0 rounds each block of 32 to whole multiples of its largest magnitude / 127") {
  const OnEachDevice here;
  const Tensor weight = random_tensor(Shape{6, 96}).to(device_here()),
               odd = random_tensor(Shape{6, 40}).to(device_here());
  Tensor zeros = Tensor::full(Shape{1, 32}, 0.0).to(device_here());
  const auto before = weight.to_doubles(), odd_was = odd.to_doubles();
  const std::array all{weight, odd, zeros};
  const NarrowWeights narrow(all, WeightFormat::q8_0);
  const auto after = weight.to_doubles(), scales = narrow.find(weight)->scales.to_doubles();
  const Tensor bytes = narrow.find(weight)->numbers.to(Device::cpu);
  const auto* numbers = reinterpret_cast<const int8_t*>(bytes.data<uint8_t>());
  REQUIRE(scales.size() == 6 * 3);
  for (size_t block = 0; block < scales.size(); ++block) {
    double largest = 0;
    for (size_t i = 32 * block; i < 32 * block + 32; ++i) largest = std::max(largest, std::abs(before[i]));
    CHECK(scales[block] == Approx(largest / 127));
    for (size_t i = 32 * block; i < 32 * block + 32; ++i) {
      CHECK(after[i] == Approx(numbers[i] * scales[block]));
      CHECK(std::abs(after[i] - before[i]) <= 0.5001 * scales[block]);
    }
  }
  CHECK(narrow.find(odd) == nullptr);
  CHECK(odd.to_doubles() == odd_was);
  CHECK(zeros.to_doubles() == std::vector<double>(32, 0.0));
  const NarrowWeights again(all, WeightFormat::q8_0);
  CHECK(weight.to_doubles() == after);
}

TEST_CASE("narrow weights: q8_0 leaves what a GGUF file of q8_0 held, and shows NaN and infinity") {
  std::vector<float> held(64);
  for (int64_t i = 0; i < 64; ++i)
    held[static_cast<size_t>(i)] = static_cast<float>((i * 37) % 255 - 127) * 0.0021743774F;
  held[0] = -127 * 0.0021743774F;  // a scale of f16, and a number of 127 in each block
  held[32] = 127 * 0.0021743774F;
  const Tensor weight = Tensor::of<float>(held, Shape{1, 64});
  const auto before = weight.to_doubles();
  const NarrowWeights narrow(std::array{weight}, WeightFormat::q8_0);
  CHECK(weight.to_doubles() == before);
  held[8] = std::numeric_limits<float>::infinity();
  held[40] = std::nanf("");
  const Tensor broken = Tensor::of<float>(held, Shape{2, 32}), sound = Tensor::full(Shape{1, 32}, 1.0);
  const NarrowWeights of_broken(std::array{broken, sound}, WeightFormat::q8_0);
  for (const double x : broken.to_doubles()) CHECK(std::isnan(x));
  for (const double x : sound.to_doubles()) CHECK(x == 1.0);
}

TEST_CASE("narrow weights: linear of q8_0 is linear of the rounded weight") {
  const OnEachDevice here;
  const NoGrad no_grad;
  const Tensor weight = random_tensor(Shape{70, 64}).to(device_here()),
               bias = random_tensor(Shape{70}).to(device_here());
  const int64_t rows = GENERATE(1, 3, 6);
  const Tensor x = random_tensor(Shape{rows, 64}).to(device_here());
  const NarrowWeights narrow(std::array{weight}, WeightFormat::q8_0);
  const Tensor plain = linear(x, weight, bias);
  const NarrowWeights::Used used(narrow);
  CHECK(distance(linear(x, weight, bias), plain) < tolerance(DType::f32));
}

TEST_CASE("narrow weights: linear reads the copy for few rows, without a tape, of the whole weight") {
  const Marked marked;
  const NoGrad no_grad;
  const Tensor one = random_tensor(Shape{1, 24}), six = random_tensor(Shape{2, 3, 24}),
               seven = random_tensor(Shape{7, 24});
  CHECK_FALSE(marked.reads_copy(one));
  const NarrowWeights::Used used(marked.narrow);
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
    const NarrowWeights none;
    const NarrowWeights::Used other(none);
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
  const NarrowWeights narrow(std::array{weight}, WeightFormat::bf16);
  const Tensor plain = linear(x, weight, bias);
  const NarrowWeights::Used used(narrow);
  CHECK(distance(linear(x, weight, bias), plain) < 1e-6);
}

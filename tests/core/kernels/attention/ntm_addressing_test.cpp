// Tests core/kernels/attention/ntm_addressing.h beyond the op table: omitted steps, sums, huge powers.
#include "heed/core/kernels/attention/ntm_addressing.h"

#include "heed/core/launch.h"
#include "heed/tests/core/kernels/arguments_on_device.h"
#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

Tensor shares(const Shape& shape, uint32_t seed) {
  const Tensor x = random_tensor(shape, DType::f64, seed, 0, 1);
  double* value = x.data<double>();
  const int64_t width = shape[-1];
  for (int64_t row = 0; row < x.size() / width; ++row) {
    double total = 0;
    for (int64_t j = 0; j < width; ++j) total += value[row * width + j];
    for (int64_t j = 0; j < width; ++j) value[row * width + j] /= total;
  }
  return x;
}

}  // namespace

TEST_CASE("addressing: without steps the content comes out") {
  const OnEachDevice here;
  const Tensor content = shares(Shape{2, 1, 3, 6}, 1), out = empty_like(content);
  launch_here<kernel::NtmAddressing>(
      kernel::AddressingInputs{
          .content = content, .before = Tensor(), .gate = Tensor(), .shift = Tensor(), .sharp = Tensor()},
      kernel::AddressingParams{}, out);
  CHECK(distance(out, content) == 0);
}

TEST_CASE("addressing: weights go on summing to one, and a high power leaves one key") {
  const OnEachDevice here;
  const Tensor content = shares(Shape{1, 2, 9, 7}, 2),
               gate = random_tensor(Shape{1, 2, 9}, DType::f64, 3, 0, 1);
  const Tensor shift = shares(Shape{1, 2, 9, 3}, 4), out = empty_like(content);
  for (const double power : {1.0, 3.0, 4000.0}) {
    const Tensor sharp = Tensor::full(Shape{1, 2, 9}, power, DType::f64);
    launch_here<kernel::NtmAddressing>(
        kernel::AddressingInputs{
            .content = content, .before = Tensor(), .gate = gate, .shift = shift, .sharp = sharp},
        kernel::AddressingParams{}, out);
    const auto weights = out.to_doubles();
    for (size_t row = 0; row < 18; ++row) {
      double total = 0, maximum = 0;
      for (size_t j = 0; j < 7; ++j) {
        total += weights[row * 7 + j];
        maximum = std::max(maximum, weights[row * 7 + j]);
      }
      CHECK(total == Approx(1));
      if (power == 4000) CHECK(maximum > 0.9);
    }
  }
}

// Tests core/kernels/attention/additive_score.h beyond the op table: huge numbers and costs.
#include "heed/core/kernels/attention/additive_score.h"

#include "heed/core/launch.h"
#include "heed/core/operation_count.h"
#include "heed/tests/core/kernels/tensors_on_device.h"
#include "heed/tests/core/numbers.h"

using namespace heed;

TEST_CASE("additive_score: huge sums saturate, and their gradient is zero") {
  const OnEachDevice here;
  const Tensor left = Tensor::full(Shape{1, 1, 2, 3}, 1e15), right = Tensor::full(Shape{1, 1, 3, 5}, 1e20);
  const Tensor units = Tensor::full(Shape{1, 3}, 0.5), score(Shape{1, 1, 2, 5});
  launch_here<kernel::AdditiveScore>(left, right, units, score);
  for (const double value : score.to_doubles()) CHECK(value == Approx(1.5));
  const Tensor dleft = empty_like(left), dright = empty_like(right), dunits(Shape{1, 1, 3});
  launch_here<kernel::AdditiveScoreBack>(
      kernel::AdditiveInputs{.left = left, .right = right, .units = units}, Tensor::full(score.shape(), 1),
      kernel::AdditiveInputs{.left = dleft, .right = dright, .units = dunits});
  for (const double value : dleft.to_doubles()) CHECK(value == 0);
  for (const double value : dright.to_doubles()) CHECK(value == 0);
  for (const double value : dunits.to_doubles()) CHECK(value == Approx(10));
}

TEST_CASE("additive_score: counts four operations a unit of a pair") {
  const OnEachDevice here;
  const Tensor left = random_tensor(Shape{2, 3, 7, 5}), right = random_tensor(Shape{2, 3, 5, 11});
  const Tensor score(Shape{2, 3, 7, 11});
  Count::reset();
  launch_here<kernel::AdditiveScore>(left, right, random_tensor(Shape{3, 5}), score);
  CHECK(Count::flops().load() == 4 * 2 * 3 * 7 * 11 * 5);
}

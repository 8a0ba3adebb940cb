// Tests core/kernels/attention/local_attention.h beyond the op table: costs, and centres outside the
// sequence.
#include "heed/core/kernels/attention/local_attention.h"

#include <limits>

#include "heed/core/launch.h"
#include "heed/core/operation_count.h"
#include "heed/tests/core/kernels/arguments_on_device.h"
#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

Tensor attended(int64_t keys, double centre, const kernel::LocalParams& params) {
  const Tensor q = random_tensor(Shape{1, 1, 1, 4}), k = random_tensor(Shape{1, 1, keys, 4}, DType::f32, 2);
  const Tensor at = Tensor::full(Shape{1, 1, 1}, centre), out(q.shape());
  launch_here<kernel::LocalAttention>(q, k, k, at, params, out);
  return out;
}

int64_t flops(int64_t keys, int64_t half_width) {
  Count::reset();
  attended(keys, static_cast<double>(keys) / 2, {.half_width = half_width});
  return Count::flops().load();
}

}  // namespace

TEST_CASE("local_attention: work follows the window, not the keys") {
  const OnEachDevice here;
  CHECK(flops(100, 5) == flops(10000, 5));
  CHECK(flops(10000, 10) > 18 * flops(10000, 0));
}

TEST_CASE("local_attention: a window beside all keys gives zeros, a centre that is no number shows") {
  const OnEachDevice here;
  for (const double centre : {-50.0, 60.0, 1e30, -1e30}) {
    for (const double value : attended(9, centre, {.half_width = 3}).to_doubles()) CHECK(value == 0);
  }
  const double none = std::numeric_limits<double>::quiet_NaN();
  for (const double value : attended(9, none, {.half_width = 3}).to_doubles()) CHECK(std::isnan(value));
}

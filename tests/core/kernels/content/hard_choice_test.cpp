// Tests core/kernels/content/hard_choice.h: the heaviest key, and keys sampled by weight.
#include "heed/core/kernels/content/hard_choice.h"

#include "heed/core/distributed/batch_shard.h"
#include "heed/core/launch.h"
#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

std::vector<double> picked(const Tensor& weights, const Draw& draw) {
  const Tensor out(weights.shape(), DType::u8);
  launch_here<kernel::HardChoice>(weights, draw, out);
  return out.to_doubles();
}

}  // namespace

TEST_CASE("pick: the first of the heaviest, and nothing where nothing has weight") {
  const OnEachDevice here;
  const Tensor weights = Tensor::from(std::vector<float>{0.1f, 0.6f, 0.6f, 0, 0, 0, 0, 0, 0.2f}, Shape{3, 3});
  CHECK(picked(weights, {}) == std::vector<double>{0, 1, 0, 0, 0, 0, 0, 0, 1});
  Rng rng(1);
  const auto drawn = picked(weights, rng.next());
  for (size_t j : {3, 4, 5, 6, 7}) CHECK(drawn[j] == 0);
  CHECK(drawn[8] == 1);
}

TEST_CASE("pick: keys are drawn as often as they weigh") {
  const OnEachDevice here;
  const double wanted[] = {0.5, 0, 0.125, 0.25, 0.125};
  const int64_t rows = 40000;
  std::vector<float> values;
  for (int64_t row = 0; row < rows; ++row) {
    for (const double weight : wanted)
      values.push_back(static_cast<float>(weight * 3));  // no matter their sum
  }
  const Tensor weights = Tensor::from(values, Shape{rows, 5});
  Rng rng(7);
  const auto first = picked(weights, rng.next()), second = picked(weights, rng.next());
  double share[5] = {}, agreed = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    share[i % 5] += first[i] / static_cast<double>(rows);
    agreed += first[i] * second[i] / static_cast<double>(rows);
  }
  for (int j = 0; j < 5; ++j) {
    const double deviation = std::sqrt(wanted[j] * (1 - wanted[j]) / static_cast<double>(rows));
    CHECK(std::abs(share[j] - wanted[j]) <= 4 * deviation);
  }
  CHECK(agreed == Approx(0.25 + 2 / 64.0 + 1 / 16.0).margin(0.01));  // draws do not know of each other
}

TEST_CASE("pick: the same draw gives the same keys, for any number of threads") {
  const OnEachDevice here;
  const Tensor weights = random_tensor(Shape{3000, 40}, DType::f64, 3, 0, 1);
  Rng rng(5);
  const Draw draw = rng.next();
  CHECK(same_for_any_threads([&] {
    const Tensor out(weights.shape(), DType::u8);
    launch_here<kernel::HardChoice>(weights, draw, out);
    return out;
  }));
}

TEST_CASE("pick: a process draws for its rows of a batch what one process draws for them") {
  const OnEachDevice here;
  const Tensor weights = random_tensor(Shape{5, 8, 6}, DType::f64, 3, 0, 1);
  Rng rng(5);
  const Draw draw = rng.next();
  const auto whole = picked(weights, draw);
  const Tensor part = view::slice(weights, 0, 2, 5);
  const auto alone = picked(part, draw);
  const SharedRows shared({2, 3});
  const auto joined = picked(part, draw);
  CHECK(std::equal(joined.begin(), joined.end(), whole.begin() + 2 * 8 * 6));
  CHECK(alone != joined);
}

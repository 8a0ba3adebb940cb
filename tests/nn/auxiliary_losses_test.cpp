// Tests nn/attention.h: auxiliary losses that need the likelihood of each sequence.
#include <cmath>

#include "heed/nn/attention.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

Tensor logits_of(int64_t rows, int64_t classes) {
  Rng rng(1);
  const Tensor x(Shape{rows, classes}, DType::f64);
  fill_normal(x, 0, 1, rng);
  return x;
}

double log_chance(const std::vector<double>& logits, size_t row, size_t classes, int32_t target) {
  double total = 0;
  for (size_t c = 0; c < classes; ++c) total += std::exp(logits[row * classes + c]);
  return logits[row * classes + static_cast<size_t>(target)] - std::log(total);
}

}  // namespace

TEST_CASE("terms: what waits gets the likelihood of each sequence") {
  const DefaultDevice device(any_device());
  const Tensor logits = logits_of(6, 5);
  const std::vector<int32_t> targets{0, 4, -1, 2, -1, 1};
  const std::vector<double> values = logits.to_doubles();
  AuxiliaryLosses terms;
  std::vector<double> seen;
  terms.add("seen", [&](const Likelihood& likelihood) {
    CHECK_FALSE(likelihood.log_likelihood.node());
    seen = likelihood.log_likelihood.to_doubles();
    return likelihood.weight * 2;
  });
  const Tensor trained = leaf(logits);
  resolve_auxiliary_losses(&terms, reshape(trained, Shape{2, 3, 5}),
                           Tensor::of<int32_t>(targets, Shape{2, 3}));
  REQUIRE(seen.size() == 2);
  CHECK(seen[0] == Approx(log_chance(values, 0, 5, 0) + log_chance(values, 1, 5, 4)));
  CHECK(seen[1] == Approx(log_chance(values, 3, 5, 2) + log_chance(values, 5, 5, 1)));
  CHECK(terms.sum().item() == 8);  // four targets count
  CHECK(terms.waiting.empty());
}

TEST_CASE("terms: sequences of unlike length, one of them empty") {
  const DefaultDevice device(any_device());
  const Tensor logits = logits_of(4, 3);
  const std::vector<int32_t> targets{0, 1, 2, 1};
  const std::vector<double> values = logits.to_doubles();
  const std::vector<int64_t> rows{1, 0, 3};
  AuxiliaryLosses terms;
  std::vector<double> seen;
  terms.add("seen", [&](const Likelihood& likelihood) {
    seen = likelihood.log_likelihood.to_doubles();
    return likelihood.weight;
  });
  resolve_auxiliary_losses(&terms, logits, Tensor::of<int32_t>(targets, Shape{4}), rows);
  REQUIRE(seen.size() == 3);
  CHECK(seen[0] == Approx(log_chance(values, 0, 3, 0)));
  CHECK(seen[1] == 0);
  CHECK(seen[2] ==
        Approx(log_chance(values, 1, 3, 1) + log_chance(values, 2, 3, 2) + log_chance(values, 3, 3, 1)));
}

TEST_CASE("terms: they add up, and one that still waits is an error") {
  const DefaultDevice device(any_device());
  AuxiliaryLosses terms;
  CHECK_FALSE(terms.sum());
  resolve_auxiliary_losses(nullptr, logits_of(1, 2), Tensor::of<int32_t>(std::vector<int32_t>{0}, Shape{1}));
  terms.add("one", Tensor::full(Shape{}, 1.5));
  terms.add("two", Tensor::full(Shape{}, 2));
  CHECK(terms.sum().item() == 3.5);
  terms.add("late", [](const Likelihood&) { return Tensor::full(Shape{}, 1); });
  CHECK_THROWS_WITH(terms.sum(), containing("'late'") && containing("resolve_auxiliary_losses"));
}

}  // namespace heed

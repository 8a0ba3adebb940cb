// Accuracy, mean loss and perplexity over batches of different weight.
#include "heed/train/metrics/metric.h"

#include <cmath>

#include "heed/tests/catch.h"

using namespace heed;

namespace {

LossOutput output(double loss, const std::vector<float>& logits, const std::vector<int32_t>& targets) {
  const auto rows = static_cast<int64_t>(targets.size());
  return {.loss = Tensor::full(Shape{}, loss),
          .logits = Tensor::from(logits, Shape{rows, static_cast<int64_t>(logits.size()) / rows}),
          .targets = Tensor::of<int32_t>(targets, Shape{rows})};
}

Batch weighing(double weight) {
  Batch batch;
  batch.weight = weight;
  return batch;
}

}  // namespace

TEST_CASE("metric: accuracy counts targets that have the largest logit, without ignored ones") {
  const auto metric = accuracy();
  CHECK(metric->name() == "accuracy");
  CHECK(!metric->lower_is_better());
  CHECK(std::isnan(metric->value()));
  metric->add(output(0, {0, 1, 2, 5, 4, 3}, {2, 1}), weighing(2));
  CHECK(metric->value() == 0.5);
  metric->add(output(0, {0, 9, 1, 1}, {-1, 0}), weighing(2));  // equal logits: the first
  CHECK(metric->value() == Approx(2.0 / 3));
  metric->reset();
  metric->add(output(0, {0, 9}, {1}), weighing(1));
  CHECK(metric->value() == 1);
  const auto of_zero = accuracy(0);
  of_zero->add(output(0, {0, 9, 9, 0}, {1, 0}), weighing(2));
  CHECK(of_zero->value() == 1);
}

TEST_CASE("metric: accuracy refuses outputs that it cannot compare") {
  const auto metric = accuracy();
  CHECK_THROWS_WITH(metric->add({.loss = Tensor::full(Shape{}, 1)}, {}), containing("no logits and targets"));
  LossOutput wrong = output(0, {0, 1, 2, 3}, {0, 1});
  wrong.targets = Tensor::of<int32_t>(std::vector<int32_t>{0, 1, 2}, Shape{3});
  CHECK_THROWS_WITH(metric->add(wrong, {}), containing("logits [2, 2] do not fit targets [3]"));
}

TEST_CASE("metric: the mean loss weighs batches by what their loss is a mean over") {
  for (const bool exponential : {false, true}) {
    const auto metric = exponential ? perplexity() : mean_loss();
    const auto of = [&](double mean) { return exponential ? std::exp(mean) : mean; };
    CHECK(metric->name() == (exponential ? "perplexity" : "loss"));
    CHECK(metric->lower_is_better());
    CHECK(std::isnan(metric->value()));
    metric->add({.loss = Tensor::full(Shape{}, 1)}, weighing(3));
    metric->add({.loss = Tensor::full(Shape{}, 2)}, weighing(1));
    CHECK(metric->value() == Approx(of(1.25)));
    metric->add({.loss = Tensor::full(Shape{}, 0.5), .weight = 4}, weighing(100));
    CHECK(metric->value() == Approx(of(7.0 / 8)));
  }
}

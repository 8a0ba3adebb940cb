// The batches chosen for measuring include the largest for any model.
#include "heed/train/loop/worst_case_batches.h"

#include <random>

#include "heed/tests/catch.h"

using namespace heed;

namespace {

/// A task that has planned batches of these extents, and nothing else.
class Planned final : public Task {
 public:
  using Extents = std::vector<double>;
  using Epochs = std::vector<std::vector<Extents>>;
  explicit Planned(Epochs epochs) : epochs_(std::move(epochs)) {}
  int64_t plan(int64_t epoch) override {
    now_ = static_cast<size_t>(epoch) % epochs_.size();
    return static_cast<int64_t>(epochs_[now_].size());
  }
  Extents batch_cost(int64_t position) const override {
    return epochs_[now_].at(static_cast<size_t>(position));
  }
  const Extents& at(const BatchPlace& place) const {
    return epochs_.at(static_cast<size_t>(place.epoch)).at(static_cast<size_t>(place.position));
  }

  std::unique_ptr<Module> model(const Config&, Rng&) const override { return nullptr; }
  Batch batch(int64_t) const override { return {}; }
  Tensor loss(Module&, const Batch&, const ForwardContext&) const override { return {}; }
  Scores validate(Module&) const override { return {}; }

 private:
  Epochs epochs_;
  size_t now_ = 0;
};

double weighed(const std::vector<double>& weights, const std::vector<double>& batch_cost) {
  double total = weights[0];
  for (size_t k = 0; k < batch_cost.size(); ++k) total += weights[k + 1] * batch_cost[k];
  return total;
}

/// Measures as a model with these weights would; the extents asked for, in their order.
std::vector<std::vector<double>> measured(WorstCaseBatches& survey, const Planned& task,
                                          const std::vector<double>& weights) {
  std::vector<std::vector<double>> asked;
  while (const std::optional<BatchPlace> place = survey.next()) {
    asked.push_back(task.at(*place));
    const double taken = weighed(weights, asked.back());
    survey.record(taken, 1000 * taken);
  }
  return asked;
}

}  // namespace

TEST_CASE("survey: of batches that are alike one is measured") {
  Planned task(Planned::Epochs{{{1}, {1}, {1}}});
  WorstCaseBatches survey(task, 12);
  CHECK(measured(survey, task, {5, 3}) == std::vector<std::vector<double>>{{1}});
  CHECK(survey.mean_over_typical() == Approx(1));
}

TEST_CASE("survey: a batch that has most of nothing may be the largest") {
  Planned task(Planned::Epochs{{{10, 1}, {1, 10}, {3, 3}, {8, 8}, {6, 6}}});
  WorstCaseBatches survey(task, 5);
  CHECK(measured(survey, task, {1, 1, 1}) ==
        std::vector<std::vector<double>>{{6, 6}, {10, 1}, {1, 10}, {8, 8}});
  CHECK(task.at(survey.typical()) == std::vector<double>{6, 6});
  CHECK(survey.mean_over_typical() == Approx((1 + 5.6 + 5.6) / 13).epsilon(0.001));
}

TEST_CASE("survey: the largest batch is found for every sum of the extents") {
  const uint64_t seed = GENERATE(range(0, 20));
  CAPTURE(seed);
  std::mt19937_64 generator(seed);
  const auto below = [&](uint64_t count) { return 1 + static_cast<double>(generator() % count); };
  std::vector<std::vector<double>> epoch;
  for (int i = 0; i < 300; ++i) {
    const double source = below(40), target = below(40), rows = below(100);
    epoch.push_back({rows * source, rows * target, rows * source * source, rows * source * target});
  }
  // Which extents count, and how much, differs from model to model.
  std::vector<double> weights{below(100000)};
  for (const double scale : {1000, 1000, 30, 30}) weights.push_back(generator() % 2 * scale * below(9));
  Planned task(Planned::Epochs{epoch});
  WorstCaseBatches survey(task, 300);
  const std::vector<std::vector<double>> asked = measured(survey, task, weights);
  CHECK(asked.size() <= 1 + 4 + 3);
  double largest = 0, found = 0, mean = 0;
  for (const auto& batch_cost : epoch) {
    largest = std::max(largest, weighed(weights, batch_cost));
    mean += weighed(weights, batch_cost) / 300;
  }
  for (const auto& batch_cost : asked) found = std::max(found, weighed(weights, batch_cost));
  CHECK(found > 0.97 * largest);
  CHECK(survey.mean_over_typical() ==
        Approx(mean / weighed(weights, task.at(survey.typical()))).epsilon(0.05));
}

TEST_CASE("survey: as many epochs count as the run will see") {
  Planned task(Planned::Epochs{{{1}, {2}}, {{3}, {4}}, {{5}, {6}}});
  const auto largest = [&](int64_t batches) {
    WorstCaseBatches survey(task, batches);
    return measured(survey, task, {0, 1}).back()[0];
  };
  CHECK(largest(1) == 1);
  CHECK(largest(2) == 2);
  CHECK(largest(3) == 3);
  CHECK(largest(6) == 6);
}

// Chooses batches to measure: first the extremes, then those that a fitted cost model expects to be larger.
#include "heed/train/loop/worst_case_batches.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace heed {
namespace {

constexpr int64_t max_planned = 20000;  // batches that are planned, but for the end of an epoch
// Batches measured because of the fit, after the typical one and the extremes.
constexpr size_t max_expected = 3;

/// weights[0] + sum over i of weights[i + 1] batch_cost[i].
double sum_of(const std::vector<double>& weights, const std::vector<double>& batch_cost) {
  return std::inner_product(batch_cost.begin(), batch_cost.end(), weights.begin() + 1, weights[0]);
}

}  // namespace

WorstCaseBatches::WorstCaseBatches(Task& task, int64_t batches) {
  std::map<std::vector<double>, Kind> found;
  int64_t seen = 0;
  for (int64_t epoch = 0; seen < std::min(batches, max_planned); ++epoch) {
    const int64_t planned = task.plan(epoch);
    for (int64_t i = 0; i < planned && seen < batches; ++i, ++seen) {
      std::vector<double> batch_cost = task.batch_cost(i);
      Kind& kind = found[batch_cost];
      if (++kind.count == 1) {
        kind.first = {epoch, i};
        kind.batch_cost = std::move(batch_cost);
      }
    }
  }
  for (auto& [batch_cost, kind] : found) kinds_.push_back(std::move(kind));
  std::vector<double> largest(kinds_.front().batch_cost.size());
  for (const Kind& kind : kinds_) {
    for (size_t k = 0; k < largest.size(); ++k) largest[k] = std::max(largest[k], kind.batch_cost[k]);
  }
  mean_.assign(largest.size(), 0);
  for (Kind& kind : kinds_) {
    for (size_t k = 0; k < largest.size(); ++k) {
      if (largest[k] > 0) kind.batch_cost[k] /= largest[k];
      mean_[k] += kind.batch_cost[k] * kind.count / static_cast<double>(seen);
    }
  }
  typical_ = nearest_to_mean();
}

size_t WorstCaseBatches::nearest_to_mean() const {
  const auto distance = [&](const Kind& kind) {
    double total = 0;
    for (size_t k = 0; k < mean_.size(); ++k) total += std::pow(kind.batch_cost[k] - mean_[k], 2);
    return total;
  };
  const auto nearest = std::min_element(
      kinds_.begin(), kinds_.end(), [&](const Kind& a, const Kind& b) { return distance(a) < distance(b); });
  return static_cast<size_t>(nearest - kinds_.begin());
}

std::optional<BatchPlace> WorstCaseBatches::next() {
  const auto largest = [&](const auto& value) {
    const auto found = std::max_element(kinds_.begin(), kinds_.end(),
                                        [&](const Kind& a, const Kind& b) { return value(a) < value(b); });
    return static_cast<size_t>(found - kinds_.begin());
  };
  const auto ask = [&](size_t kind) {
    asked_ = kind;
    kinds_[kind].measured = true;
    return kinds_[kind].first;
  };
  if (measured_.empty()) return ask(typical_);
  // Among batches with the largest value of one cost, take the one with the largest sum.
  const auto total = [](const Kind& kind) {
    return std::accumulate(kind.batch_cost.begin(), kind.batch_cost.end(), 0.0);
  };
  for (size_t k = 0; k < mean_.size(); ++k) {
    const size_t extreme =
        largest([&](const Kind& kind) { return std::pair(kind.batch_cost[k], total(kind)); });
    if (!kinds_[extreme].measured) return ask(extreme);
  }
  if (measured_.size() > mean_.size() + max_expected || measured_.size() == kinds_.size()) return {};
  const std::vector<double> weights = fit(&Measured::bytes);
  const size_t expected = largest([&](const Kind& kind) { return sum_of(weights, kind.batch_cost); });
  if (!kinds_[expected].measured) return ask(expected);
  return {};
}

void WorstCaseBatches::record(double bytes, double operations) {
  measured_.push_back({asked_, bytes, operations});
}

double WorstCaseBatches::mean_over_typical() const {
  const std::vector<double> weights = fit(&Measured::operations);
  const double typical = sum_of(weights, kinds_[typical_].batch_cost);
  return typical > 0 ? sum_of(weights, mean_) / typical : 1;
}

/// Non-negative least squares by coordinate descent. With more weights than measurements the solution is not
/// unique: a small ridge penalty shares the effect among costs that grow together.
std::vector<double> WorstCaseBatches::fit(double Measured::*what) const {
  constexpr double ridge = 1e-6;
  std::vector<double> weights(mean_.size() + 1), residuals;
  for (const Measured& one : measured_) residuals.push_back(one.*what);
  const auto cost = [&](size_t i, size_t k) {  // the first weight is the constant term
    return k == 0 ? 1.0 : kinds_[measured_[i].kind].batch_cost[k - 1];
  };
  for (int iteration = 0; iteration < 3000; ++iteration) {
    for (size_t k = 0; k < weights.size(); ++k) {
      double along = 0, square = ridge;
      for (size_t i = 0; i < residuals.size(); ++i) {
        along += cost(i, k) * residuals[i];
        square += cost(i, k) * cost(i, k);
      }
      const double to = std::max(0.0, weights[k] + (along - ridge * weights[k]) / square);
      for (size_t i = 0; i < residuals.size(); ++i) residuals[i] -= (to - weights[k]) * cost(i, k);
      weights[k] = to;
    }
  }
  return weights;
}

}  // namespace heed

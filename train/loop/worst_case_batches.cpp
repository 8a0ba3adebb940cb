// Chooses batches to measure: first the extremes, then those that a fitted cost model expects to be larger.
#include "heed/train/loop/worst_case_batches.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace heed {
namespace {

constexpr int64_t max_planned = 20000;  // number of batches after which no further epoch is planned
// Number of batches proposed by the fit, after the typical one and the extremes.
constexpr size_t max_proposed_by_fit = 3;

/// The prediction of the fitted cost model: weights[0] + sum over i of weights[i + 1] batch_cost[i].
double predicted(const std::vector<double>& weights, const std::vector<double>& batch_cost) {
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
  const auto kind_with_largest = [&](const auto& quantity) {
    const auto found = std::max_element(kinds_.begin(), kinds_.end(), [&](const Kind& a, const Kind& b) {
      return quantity(a) < quantity(b);
    });
    return static_cast<size_t>(found - kinds_.begin());
  };
  const auto propose = [&](size_t kind) {
    proposed_ = kind;
    kinds_[kind].measured = true;
    return kinds_[kind].first;
  };
  if (measured_.empty()) return propose(typical_);
  // Several batches may have the largest value of one cost: propose the one with the largest sum of costs.
  const auto total = [](const Kind& kind) {
    return std::accumulate(kind.batch_cost.begin(), kind.batch_cost.end(), 0.0);
  };
  for (size_t k = 0; k < mean_.size(); ++k) {
    const size_t extreme =
        kind_with_largest([&](const Kind& kind) { return std::pair(kind.batch_cost[k], total(kind)); });
    if (!kinds_[extreme].measured) return propose(extreme);
  }
  if (measured_.size() > mean_.size() + max_proposed_by_fit || measured_.size() == kinds_.size()) return {};
  const std::vector<double> weights = fit(&Measured::bytes);
  const size_t expected =
      kind_with_largest([&](const Kind& kind) { return predicted(weights, kind.batch_cost); });
  if (!kinds_[expected].measured) return propose(expected);
  return {};
}

void WorstCaseBatches::record(double bytes, double operations) {
  measured_.push_back({proposed_, bytes, operations});
}

double WorstCaseBatches::mean_over_typical() const {
  const std::vector<double> weights = fit(&Measured::operations);
  const double typical = predicted(weights, kinds_[typical_].batch_cost);
  return typical > 0 ? predicted(weights, mean_) / typical : 1;
}

/// Fits predicted() to a measured quantity, by non-negative least squares with coordinate descent. With more
/// weights than measurements the solution is not unique: a small ridge penalty divides the effect among costs
/// that grow together.
std::vector<double> WorstCaseBatches::fit(double Measured::*quantity) const {
  constexpr double ridge = 1e-6;
  std::vector<double> weights(mean_.size() + 1), residuals;
  for (const Measured& measurement : measured_) residuals.push_back(measurement.*quantity);
  const auto cost = [&](size_t i, size_t k) {  // the first weight is the constant term
    return k == 0 ? 1.0 : kinds_[measured_[i].kind].batch_cost[k - 1];
  };
  constexpr int iterations = 3000;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    for (size_t k = 0; k < weights.size(); ++k) {
      double projection = 0, square = ridge;
      for (size_t i = 0; i < residuals.size(); ++i) {
        projection += cost(i, k) * residuals[i];
        square += cost(i, k) * cost(i, k);
      }
      const double weight = std::max(0.0, weights[k] + (projection - ridge * weights[k]) / square);
      for (size_t i = 0; i < residuals.size(); ++i) residuals[i] -= (weight - weights[k]) * cost(i, k);
      weights[k] = weight;
    }
  }
  return weights;
}

}  // namespace heed

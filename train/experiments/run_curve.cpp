// Joins the series of a run's metrics into points, and thins them out.
#include "heed/train/experiments/run_curve.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace heed {
namespace {

/// The number by which validations are compared: higher is better.
double rank_of(const RunCurve& curve, const CurvePoint& point) {
  if (curve.score.empty()) return -point.valid_loss;
  return curve.higher_is_better ? point.valid_score : -point.valid_score;
}

bool was_validated(const CurvePoint& point) {
  return std::isfinite(point.valid_loss) || std::isfinite(point.valid_score);
}

/// Sum of training losses, each weighted by the number of steps that it is the mean of.
struct LossSum {
  double sum = 0, steps = 0;
  void add(const CurvePoint& point, int64_t step_before) {
    if (!std::isfinite(point.train_loss)) return;
    const auto num_steps = static_cast<double>(std::max<int64_t>(point.step - step_before, 1));
    sum += num_steps * point.train_loss;
    steps += num_steps;
  }
  double mean() const { return steps > 0 ? sum / steps : CurvePoint::none; }
};

}  // namespace

bool higher_is_better(const std::string& score) { return score == "accuracy" || score == "bleu"; }

const CurvePoint* RunCurve::best() const {
  const CurvePoint* best = nullptr;
  for (const CurvePoint& point : points) {
    const double rank = rank_of(*this, point);
    if (std::isfinite(rank) && (best == nullptr || rank > rank_of(*this, *best))) best = &point;
  }
  return best;
}

const CurvePoint* RunCurve::last() const {
  const auto last = std::find_if(points.rbegin(), points.rend(), was_validated);
  return last == points.rend() ? nullptr : &*last;
}

double seconds_at(const MetricSeries& seconds, int64_t step) {
  if (seconds.values.empty()) return NAN;
  const auto next = std::ranges::lower_bound(seconds.steps, step);
  if (next == seconds.steps.end()) return seconds.values.back();
  const auto i = static_cast<size_t>(next - seconds.steps.begin());
  const double step_before = i == 0 ? 0 : static_cast<double>(seconds.steps[i - 1]);
  const double seconds_before = i == 0 ? 0 : seconds.values[i - 1];
  const double fraction =
      (static_cast<double>(step) - step_before) / (static_cast<double>(*next) - step_before);
  return seconds_before + fraction * (seconds.values[i] - seconds_before);
}

RunCurve joined_curve(const std::vector<MetricSeries>& metrics, const std::string& score) {
  std::map<int64_t, CurvePoint> points;  // by step
  for (const MetricSeries& series : metrics) {
    const std::string& name = series.name;
    double CurvePoint::*const quantity = name == "loss"         ? &CurvePoint::train_loss
                                         : name == "seconds"    ? &CurvePoint::seconds
                                         : name == "valid_loss" ? &CurvePoint::valid_loss
                                         : score != "loss" && name == "valid_" + score
                                             ? &CurvePoint::valid_score
                                             : nullptr;
    if (quantity == nullptr) continue;
    for (size_t i = 0; i < series.steps.size(); ++i) {
      CurvePoint& point = points[series.steps[i]];
      point.step = series.steps[i];
      point.*quantity = series.values[i];
    }
  }
  RunCurve curve{.score = "", .higher_is_better = higher_is_better(score), .points = {}};
  const auto clock = std::ranges::find(metrics, "seconds", &MetricSeries::name);
  for (auto& [step, point] : points) {
    if (std::isfinite(point.valid_score)) curve.score = score;
    if (!std::isfinite(point.seconds))
      point.seconds = clock == metrics.end() || clock->values.empty() ? 0 : seconds_at(*clock, step);
    curve.points.push_back(point);
  }
  return curve;
}

RunCurve read_curve(const Path& metrics, const std::string& score) {
  return joined_curve(read_metrics(metrics), score);
}

RunCurve thinned(const RunCurve& curve, size_t max_points) {
  const std::vector<CurvePoint>& all = curve.points;
  max_points = std::max<size_t>(max_points, 3);
  if (all.size() <= max_points) return curve;
  std::vector<bool> stays(all.size(), false);
  stays.front() = stays.back() = true;
  if (const CurvePoint* best = curve.best(); best != nullptr)
    stays[static_cast<size_t>(best - all.data())] = true;
  // The points are cut into as many parts as points may be added; of each part its last validation stays.
  const size_t num_parts = max_points - static_cast<size_t>(std::ranges::count(stays, true));
  for (size_t part = 0; part < num_parts; ++part) {
    const size_t begin = part * all.size() / num_parts, end = (part + 1) * all.size() / num_parts;
    size_t chosen = end - 1;
    for (size_t i = begin; i < end; ++i) {
      if (was_validated(all[i])) chosen = i;
    }
    stays[chosen] = true;
  }
  RunCurve thin{.score = curve.score, .higher_is_better = curve.higher_is_better, .points = {}};
  LossSum losses;
  int64_t step_before = 0;  // step of the last logged training loss
  for (size_t i = 0; i < all.size(); ++i) {
    losses.add(all[i], step_before);
    if (std::isfinite(all[i].train_loss)) step_before = all[i].step;
    if (!stays[i]) continue;
    thin.points.push_back(all[i]);
    thin.points.back().train_loss = losses.mean();
    losses = {};
  }
  return thin;
}

std::vector<MetricSeries> curve_series(const RunCurve& curve, size_t max_points) {
  std::vector<MetricSeries> out;
  const RunCurve few = thinned(curve, max_points);
  const auto add = [&](const std::string& name, double CurvePoint::*quantity) {
    MetricSeries series{.name = name, .steps = {}, .values = {}};
    for (const CurvePoint& point : few.points) {
      if (!std::isfinite(point.*quantity)) continue;
      series.steps.push_back(point.step);
      series.values.push_back(point.*quantity);
    }
    if (!series.steps.empty()) out.push_back(std::move(series));
  };
  add("loss", &CurvePoint::train_loss);
  add("seconds", &CurvePoint::seconds);
  add("valid_loss", &CurvePoint::valid_loss);
  if (!curve.score.empty()) add("valid_" + curve.score, &CurvePoint::valid_score);
  return out;
}

}  // namespace heed

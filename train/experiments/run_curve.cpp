// Joins the series of a run's metrics into points, and thins them out.
#include "heed/train/experiments/run_curve.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace heed {
namespace {

/// The score that orders validations: higher is better.
double rank_of(const RunCurve& curve, const CurvePoint& point) {
  if (curve.score.empty()) return -point.valid_loss;
  return curve.higher_is_better ? point.valid_score : -point.valid_score;
}

bool was_validated(const CurvePoint& point) {
  return std::isfinite(point.valid_loss) || std::isfinite(point.valid_score);
}

/// Fills seconds of points between logged steps from their neighbours.
void fill_seconds(std::vector<CurvePoint>& points) {
  CurvePoint before{.step = 0, .seconds = 0};
  for (size_t i = 0; i < points.size(); ++i) {
    if (std::isfinite(points[i].seconds)) {
      before = points[i];
      continue;
    }
    const auto next = std::find_if(points.begin() + static_cast<std::ptrdiff_t>(i), points.end(),
                                   [](const CurvePoint& one) { return std::isfinite(one.seconds); });
    if (next == points.end()) {
      points[i].seconds = before.seconds;  // at the end: no step was logged since
      continue;
    }
    const double share = static_cast<double>(points[i].step - before.step) /
                         static_cast<double>(std::max<int64_t>(next->step - before.step, 1));
    points[i].seconds = before.seconds + share * (next->seconds - before.seconds);
  }
}

/// Sums of training losses over the steps that they are means of.
struct LossSum {
  double sum = 0, steps = 0;
  void add(const CurvePoint& point, int64_t since) {
    if (!std::isfinite(point.train_loss)) return;
    const auto weight = static_cast<double>(std::max<int64_t>(point.step - since, 1));
    sum += weight * point.train_loss;
    steps += weight;
  }
  double mean() const { return steps > 0 ? sum / steps : CurvePoint::none; }
};

}  // namespace

bool higher_is_better(const std::string& score) { return score == "accuracy" || score == "bleu"; }

const CurvePoint* RunCurve::best() const {
  const CurvePoint* found = nullptr;
  for (const CurvePoint& point : points) {
    const double rank = rank_of(*this, point);
    if (std::isfinite(rank) && (found == nullptr || rank > rank_of(*this, *found))) found = &point;
  }
  return found;
}

const CurvePoint* RunCurve::last() const {
  const auto found = std::find_if(points.rbegin(), points.rend(), was_validated);
  return found == points.rend() ? nullptr : &*found;
}

RunCurve joined_curve(const std::vector<MetricSeries>& metrics, const std::string& score) {
  std::map<int64_t, CurvePoint> points;
  RunCurve out{.score = score, .higher_is_better = higher_is_better(score), .points = {}};
  for (const MetricSeries& one : metrics) {
    double CurvePoint::*where = one.name == "loss"                                ? &CurvePoint::train_loss
                                : one.name == "seconds"                           ? &CurvePoint::seconds
                                : one.name == "valid_loss"                        ? &CurvePoint::valid_loss
                                : score != "loss" && one.name == "valid_" + score ? &CurvePoint::valid_score
                                                                                  : nullptr;
    if (where == nullptr) continue;
    for (size_t i = 0; i < one.steps.size(); ++i) {
      CurvePoint& point = points[one.steps[i]];
      point.step = one.steps[i];
      point.*where = one.values[i];
    }
  }
  bool scored = false;
  for (const auto& [step, point] : points) {
    out.points.push_back(point);
    scored = scored || std::isfinite(point.valid_score);
  }
  if (!scored) out.score.clear();
  fill_seconds(out.points);
  return out;
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
  const size_t free = max_points - static_cast<size_t>(std::count(stays.begin(), stays.end(), true));
  for (size_t part = 0; part < free; ++part) {
    const size_t begin = part * all.size() / free, end = (part + 1) * all.size() / free;
    size_t chosen = end - 1;
    for (size_t i = begin; i < end; ++i) {
      if (was_validated(all[i])) chosen = i;
    }
    stays[chosen] = true;
  }
  RunCurve out{.score = curve.score, .higher_is_better = curve.higher_is_better, .points = {}};
  LossSum losses;
  int64_t before = 0;  // the step of the last logged loss
  for (size_t i = 0; i < all.size(); ++i) {
    losses.add(all[i], before);
    if (std::isfinite(all[i].train_loss)) before = all[i].step;
    if (!stays[i]) continue;
    out.points.push_back(all[i]);
    out.points.back().train_loss = losses.mean();
    losses = {};
  }
  return out;
}

std::vector<MetricSeries> curve_series(const RunCurve& curve, size_t max_points) {
  std::vector<MetricSeries> out;
  const RunCurve few = thinned(curve, max_points);
  const auto add = [&](const std::string& name, double CurvePoint::*what) {
    MetricSeries series{.name = name, .steps = {}, .values = {}};
    for (const CurvePoint& point : few.points) {
      if (!std::isfinite(point.*what)) continue;
      series.steps.push_back(point.step);
      series.values.push_back(point.*what);
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

// Joins the series of a run's metrics into points, and thins them out.
#include "heed/train/experiments/run_curve.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <sstream>

#include "heed/core/error.h"
#include "heed/core/io/files.h"
#include "heed/core/io/number_text.h"

namespace heed {
namespace {

/// The score that orders validations: higher is better.
double rank_of(const RunCurve& curve, const CurvePoint& point) {
  if (curve.score.empty()) return -point.valid_loss;
  return curve.higher_is_better ? point.valid_score : -point.valid_score;
}

bool grows_better(const std::string& score) { return score == "accuracy" || score == "bleu"; }

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

std::string number(double value) { return std::isfinite(value) ? formatted("%.5g", value) : ""; }

std::string seconds_text(double value) { return std::isfinite(value) ? formatted("%.2f", value) : ""; }

std::string lines_of(const RunCurve& curve) {
  std::string out = "step,seconds,train_loss,valid_loss";
  if (!curve.score.empty()) out += ",valid_" + curve.score;
  out += "\n";
  for (const CurvePoint& point : curve.points) {
    out += text(point.step, ",", seconds_text(point.seconds), ",", number(point.train_loss), ",",
                number(point.valid_loss));
    if (!curve.score.empty()) out += "," + number(point.valid_score);
    out += "\n";
  }
  return out;
}

/// A line of numbers between commas; a cell without a number is NaN.
CurvePoint point_of(const std::string& line, const std::string& where) {
  std::vector<double> cells;
  for (size_t at = 0; at <= line.size();) {
    const size_t end = std::min(line.find(',', at), line.size());
    const std::string cell = line.substr(at, end - at);
    double value = CurvePoint::none;
    if (!cell.empty()) {
      const auto [stop, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
      if (error != std::errc() || stop != cell.data() + cell.size())
        fail(Fault::data, where, "'", cell, "' is not a number.");
    }
    cells.push_back(value);
    at = end + 1;
  }
  if (cells.size() < 4 || !std::isfinite(cells[0]))
    fail(Fault::data, where, "a point has a step, seconds, a training loss and a validation loss.");
  return {.step = static_cast<int64_t>(cells[0]),
          .seconds = cells[1],
          .train_loss = cells[2],
          .valid_loss = cells[3],
          .valid_score = cells.size() > 4 ? cells[4] : CurvePoint::none};
}

}  // namespace

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
  RunCurve out{.score = score, .higher_is_better = grows_better(score), .points = {}};
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

RunCurve thinned(const RunCurve& curve, size_t most) {
  const std::vector<CurvePoint>& all = curve.points;
  most = std::max<size_t>(most, 3);
  if (all.size() <= most) return curve;
  std::vector<bool> stays(all.size(), false);
  stays.front() = stays.back() = true;
  if (const CurvePoint* best = curve.best(); best != nullptr)
    stays[static_cast<size_t>(best - all.data())] = true;
  const size_t free = most - static_cast<size_t>(std::count(stays.begin(), stays.end(), true));
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

std::string curve_csv(const RunCurve& curve, const std::vector<std::pair<std::string, std::string>>& facts,
                      size_t max_bytes) {
  std::string head;
  for (const auto& [name, value] : facts) {
    std::string line = text("# ", name, ": ", value);
    std::replace_if(
        line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    head += line + "\n";
  }
  RunCurve few = curve;
  for (size_t most = curve.points.size();; most = most * 9 / 10) {
    if (most < curve.points.size()) few = thinned(curve, most);
    const std::string out =
        text(head, "# points: ", few.points.size(), " of ", curve.points.size(),
             "; train_loss is the mean over the steps since the point before\n", lines_of(few));
    if (out.size() <= max_bytes || most <= 3) return out;
  }
}

CurveFile read_curve_csv(const Path& file) {
  CurveFile out;
  std::istringstream lines(io::read(file));
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string where = text(file.string(), ", line ", ++number, ": ");
    if (line.starts_with("# ")) {
      const size_t end = line.find(": ");
      if (end != std::string::npos) out.facts[line.substr(2, end - 2)] = line.substr(end + 2);
    } else if (line.starts_with("step,")) {
      const size_t score = line.find(",valid_loss,valid_");
      if (score != std::string::npos) out.curve.score = line.substr(score + 18);
      out.curve.higher_is_better = grows_better(out.curve.score);
    } else if (!line.empty()) {
      out.curve.points.push_back(point_of(line, where));
    }
  }
  return out;
}

std::vector<MetricSeries> curve_series(const RunCurve& curve, size_t most) {
  std::vector<MetricSeries> out;
  const RunCurve few = thinned(curve, most);
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

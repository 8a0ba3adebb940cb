// Chooses points of a grid, and draws scores over its settings.
#include "heed/train/experiments/comparison_sweep.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/number_text.h"
#include "heed/train/experiments/run_curve.h"
#include "heed/train/metrics/score_name.h"

namespace heed {
namespace {

bool is_better(double a, double b, bool higher_is_better) { return higher_is_better ? a > b : a < b; }

/// The validation score by which points are chosen; empty where no run has one.
std::string selection_of(const std::vector<ComparedRun>& runs) {
  for (const std::string& name : {compared_score(runs), std::string("loss")}) {
    const bool is_there = std::ranges::any_of(
        runs, [&](const ComparedRun& run) { return std::isfinite(run.validation(name)); });
    if (is_there) return name;
  }
  return "";
}

/// The validation score over the runs of a point; without a mean where one has none.
Spread validation_of(const std::vector<const ComparedRun*>& runs, const std::string& name) {
  std::vector<double> values;
  for (const ComparedRun* run : runs) values.push_back(run->failure.empty() ? run->validation(name) : NAN);
  return spread_of(values);
}

/// The points of all labels as a grid.
std::vector<GridPoint> grid_of(const std::vector<SweptPoint>& points) {
  std::vector<GridPoint> out;
  for (const SweptPoint& one : points) out.push_back(one.point);
  return out;
}

/// True where the numbers span a decade or more and all are above 0.
bool is_logarithmic(const std::vector<double>& numbers) {
  return numbers.front() > 0 && numbers.back() >= 10 * numbers.front();
}

/// The best validation score of a label over the numbers of a setting.
Series series_of(const std::vector<SweptPoint>& points, const std::string& label, size_t axis,
                 bool higher_is_better) {
  std::map<double, double> best;
  for (const SweptPoint& one : points) {
    if (one.label != label || !std::isfinite(one.valid.mean)) continue;
    const double x = *parsed_number(one.point[axis].second);
    const auto place = best.emplace(x, one.valid.mean).first;
    if (is_better(one.valid.mean, place->second, higher_is_better)) place->second = one.valid.mean;
  }
  Series out{.name = label};
  for (const auto& [x, y] : best) {
    out.x.push_back(x);
    out.y.push_back(y);
  }
  return out;
}

}  // namespace

std::vector<SweptPoint> swept_points(const Comparison& comparison) {
  std::vector<SweptPoint> out;
  std::vector<std::vector<const ComparedRun*>> runs_of;
  for (const ComparedRun& run : comparison.runs) {
    if (run.point.empty()) continue;
    auto place = std::ranges::find_if(
        out, [&](const SweptPoint& one) { return one.label == run.label && one.point == run.point; });
    if (place == out.end()) {
      place = out.insert(out.end(), {.label = run.label, .point = run.point, .is_chosen = run.chosen});
      runs_of.emplace_back();
    }
    if (place->failure.empty()) place->failure = run.failure;
    runs_of[static_cast<size_t>(place - out.begin())].push_back(&run);
  }
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].valid = validation_of(runs_of[i], comparison.selection);
    std::vector<double> scores;
    for (const ComparedRun* run : runs_of[i])
      if (run->failure.empty()) scores.push_back(run->score(comparison.score));
    out[i].score = spread_of(scores);
  }
  return out;
}

std::string choose_points(std::vector<ComparedRun>& runs) {
  const std::string selection = selection_of(runs);
  if (selection.empty() && !compared_score(runs).empty())
    fail(Fault::data,
         "a grid of settings: no run has a validation score, by which the best point is chosen. "
         "Give the task validation data, or name one setting instead of a grid.");
  const bool higher = higher_is_better(selection);
  std::map<std::string, GridPoint> best;
  std::map<std::string, std::pair<double, double>> scores;  // validation score and loss of the best
  for (const ComparedRun& first : runs) {
    std::vector<const ComparedRun*> same;
    for (const ComparedRun& run : runs)
      if (run.label == first.label && run.point == first.point) same.push_back(&run);
    const double score = validation_of(same, selection).mean, loss = validation_of(same, "loss").mean;
    best.emplace(first.label, first.point);
    if (!std::isfinite(score)) continue;
    const auto [place, is_first] = scores.emplace(first.label, std::pair(score, loss));
    if (is_first || is_better(score, place->second.first, higher) ||
        (score == place->second.first && loss < place->second.second)) {
      place->second = {score, loss};
      best[first.label] = first.point;
    }
  }
  for (ComparedRun& run : runs) run.chosen = run.point == best[run.label];
  return selection;
}

std::vector<std::pair<std::string, Chart>> sweep_charts(const Comparison& comparison) {
  std::vector<std::pair<std::string, Chart>> out;
  const std::vector<SweptPoint> points = swept_points(comparison);
  for (size_t axis = 0; !points.empty() && axis < points.front().point.size(); ++axis) {
    const std::string& name = points.front().point[axis].first;
    const std::vector<double> numbers = numbers_of(grid_of(points), axis);
    if (numbers.size() < 2) continue;
    Chart chart{.title = text("validation ", score_name(comparison.selection), " over ", name),
                .x_label = name,
                .logarithmic_x = is_logarithmic(numbers),
                .max_y = max_score(comparison.selection)};
    for (const ComparedRow& row : comparison.rows) {
      Series series = series_of(points, row.label, axis, higher_is_better(comparison.selection));
      if (!series.x.empty()) chart.series.push_back(std::move(series));
    }
    if (!chart.series.empty()) out.emplace_back("sweep-" + name, std::move(chart));
  }
  return out;
}

std::vector<std::string> sweep_notes(const Comparison& comparison) {
  const std::vector<SweptPoint> points = swept_points(comparison);
  if (points.empty()) return {};
  const auto of_first = std::ranges::count(points, points.front().label, &SweptPoint::label);
  std::vector<std::string> out{text("each attention has the best of ", of_first, " settings by validation ",
                                    score_name(comparison.selection))};
  for (const SweptPoint& one : points) {
    if (!one.is_chosen || !std::isfinite(one.valid.mean)) continue;
    for (const auto& [name, value] : settings_at_edge(one.point, grid_of(points)))
      out.push_back(text("the best ", name, " of ", one.label, ", ", value,
                         ", is at the edge of the grid: a wider one may have a better"));
  }
  return out;
}

}  // namespace heed

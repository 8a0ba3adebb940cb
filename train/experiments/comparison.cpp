// Reads runs and averages over their seeds.
#include "heed/train/experiments/comparison.h"

#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/train/experiments/run_curve.h"
#include "heed/train/metrics/score_name.h"
#include "heed/train/report/chart.h"

namespace heed {
namespace {

double mean(const std::vector<const ComparedRun*>& runs, double ComparedRun::*quantity) {
  double sum = 0;
  for (const ComparedRun* run : runs) sum += run->*quantity;
  return sum / static_cast<double>(runs.size());
}

/// The mean over the runs with a known quantity (above 0); 0: none.
double mean_known(std::vector<const ComparedRun*> runs, double ComparedRun::*quantity) {
  std::erase_if(runs, [&](const ComparedRun* run) { return !(run->*quantity > 0); });
  return runs.empty() ? 0 : mean(runs, quantity);
}

/// Sets the machine_difference of each run with a known speed: to the first such run.
void compare_machines(std::vector<ComparedRun>& runs) {
  const auto first =
      std::ranges::find_if(runs, [](const ComparedRun& run) { return run.steps_per_second > 0; });
  for (ComparedRun& run : runs) {
    if (!(run.steps_per_second > 0)) continue;
    run.machine_difference = picture::joined(differences(first->measured_on, run.measured_on), "; ");
  }
}

/// The row of a label: failure and means of its runs.
ComparedRow row_of(const Comparison& comparison, const std::string& label) {
  ComparedRow row{.label = label, .failure = "", .score = {}};
  std::vector<const ComparedRun*> finished;
  std::vector<double> scores;
  for (const ComparedRun* run : chosen_runs(comparison, label)) {
    row.point = run->point;
    if (!run->failure.empty()) {
      row.failure = run->failure;
      continue;
    }
    finished.push_back(run);
    scores.push_back(run->score(comparison.score));
    if (row.machine_difference.empty()) row.machine_difference = run->machine_difference;
  }
  row.score = spread_of(scores);
  if (finished.empty()) return row;
  row.parameters = mean(finished, &ComparedRun::parameters);
  row.flops = mean(finished, &ComparedRun::flops);
  row.steps_per_second = mean_known(finished, &ComparedRun::steps_per_second);
  row.memory = mean_known(finished, &ComparedRun::memory);
  row.seconds = mean(finished, &ComparedRun::seconds);
  row.validation_seconds = mean(finished, &ComparedRun::validation_seconds);
  return row;
}

/// Sets the to_best of each row but the best.
void compare_to_best(Comparison& comparison) {
  ComparedRow* best = nullptr;
  const auto is_better = [&](double a, double b) { return comparison.higher_is_better ? a > b : a < b; };
  for (ComparedRow& row : comparison.rows) {
    if (row.score.count > 0 && (best == nullptr || is_better(row.score.mean, best->score.mean))) best = &row;
  }
  if (best == nullptr) return;
  best->is_best = true;
  for (ComparedRow& row : comparison.rows) {
    if (!row.is_best) row.to_best = difference_of(row.score, best->score);
  }
}

/// The mean of a metric over runs at the steps that all have, over steps or over their mean seconds; with a
/// band from the lowest to the highest of several runs.
Series mean_series(const std::vector<const ComparedRun*>& runs, const std::string& metric,
                   bool against_seconds) {
  Series series{.name = runs.front()->label};
  for (const int64_t step : runs.front()->metric(metric)->steps) {
    std::vector<double> values;
    double seconds = 0;
    const bool all_have_it = std::ranges::all_of(runs, [&](const ComparedRun* run) {
      const MetricSeries& logged = *run->metric(metric);
      const MetricSeries* clock = run->metric("seconds");
      const auto place = std::ranges::lower_bound(logged.steps, step);
      if (place == logged.steps.end() || *place != step || (against_seconds && clock == nullptr))
        return false;
      values.push_back(logged.values[static_cast<size_t>(place - logged.steps.begin())]);
      if (against_seconds) seconds += seconds_at(*clock, step);
      return true;
    });
    if (!all_have_it) continue;
    const auto count = static_cast<double>(runs.size());
    series.x.push_back(against_seconds ? seconds / count : static_cast<double>(step));
    series.y.push_back(spread_of(values).mean);
    if (runs.size() == 1) continue;
    const auto [low, high] = std::ranges::minmax(values);
    series.low.push_back(low);
    series.high.push_back(high);
  }
  return series;
}

}  // namespace

Comparison compare_runs(const std::string& title, std::vector<ComparedRun> runs) {
  compare_machines(runs);
  Comparison out{.title = title, .score = compared_score(runs), .runs = std::move(runs)};
  if (!out.score.empty()) out.higher_is_better = higher_is_better(out.score);
  for (const ComparedRun& run : out.runs) {
    if (std::ranges::count(out.rows, run.label, &ComparedRow::label) == 0)
      out.rows.push_back(row_of(out, run.label));
  }
  compare_to_best(out);
  return out;
}

std::string compared_score(const std::vector<ComparedRun>& runs) {
  const auto scored = std::ranges::find_if(runs, [](const ComparedRun& run) { return !run.scores.empty(); });
  if (scored == runs.end()) return "";
  for (const char* preferred : {"accuracy", "bleu"}) {
    if (!std::isnan(scored->score(preferred))) return preferred;
  }
  return scored->scores.front().first;
}

std::vector<const ComparedRun*> chosen_runs(const Comparison& comparison, const std::string& label) {
  std::vector<const ComparedRun*> out;
  for (const ComparedRun& run : comparison.runs) {
    if (run.chosen && run.label == label) out.push_back(&run);
  }
  return out;
}

int exit_code(const Comparison& comparison) {
  for (const ComparedRun& run : comparison.runs) {
    if (run.chosen && !run.failure.empty()) return run.code;
  }
  return 0;
}

Chart comparison_chart(const Comparison& comparison, const std::string& metric, bool against_seconds) {
  Chart chart{.title = (metric == "loss" ? "training loss" : score_name(metric)) +
                       (against_seconds ? " over seconds of training" : " over steps")};
  chart.max_y = max_score(metric);
  chart.last_values = true;
  if (against_seconds) chart.x_label = "seconds";
  for (const ComparedRow& row : comparison.rows) {
    std::vector<const ComparedRun*> runs;
    for (const ComparedRun* run : chosen_runs(comparison, row.label)) {
      if (run->metric(metric) != nullptr) runs.push_back(run);
    }
    if (!runs.empty()) chart.series.push_back(mean_series(runs, metric, against_seconds));
  }
  return chart;
}

}  // namespace heed

// Reads the progress of a training from its manifest and metrics.
#include "heed/train/experiments/run_progress.h"

#include <algorithm>
#include <limits>

#include "heed/core/io/json.h"
#include "heed/train/experiments/comparison_plan.h"
#include "heed/train/run/metrics_log.h"
#include "heed/train/run/run_folder.h"

namespace heed {
namespace {

constexpr int64_t name_columns = 28;  // columns in front of the steps of run_line()

/// The seconds of scoring the test that the manifest of a run predicts; 0: it predicts none.
double expected_test_seconds(const Path& run) {
  const std::optional<Json> manifest = RunFolder::elsewhere(run).read_manifest();
  const Json* estimate = manifest ? manifest->find("estimate") : nullptr;
  const Json* seconds = estimate != nullptr ? estimate->find("seconds_of_test") : nullptr;
  return seconds != nullptr && seconds->is_number() ? seconds->real() : 0;
}

}  // namespace

RunProgress read_progress(const Path& run, bool has_ended) {
  RunProgress out{.steps = {.total = total_steps(run)}};
  Progress::Now& now = out.steps;
  double seconds = 0;
  for (const MetricSeries& series : read_metrics(run / "metrics.jsonl")) {
    if (series.values.empty()) continue;
    const double last = series.values.back();
    if (series.name == "loss") {
      now.loss = last;
      now.step = series.steps.back();
    }
    if (series.name == "learning_rate") now.rate = last;
    if (series.name == "gradient_norm") now.norm = last;
    if (series.name.starts_with("valid_")) now.take_score(series.steps.back(), series.name.substr(6), last);
    if (series.name == "tokens_per_second") now.tokens_per_second = last;
    if (series.name == "examples_per_second") now.examples_per_second = last;
    if (series.name == "seconds") seconds = last;
  }
  const auto logged_steps = static_cast<double>(now.step);
  if (logged_steps == 0) return out;
  now.step = std::max(now.step, now.validated);
  // The validation scores of the last step are logged after its loss.
  out.is_testing = now.step >= now.total && !has_ended;
  out.test_seconds = expected_test_seconds(run);
  const double seconds_of_steps = seconds / logged_steps * static_cast<double>(now.total);
  out.seconds = seconds_of_steps + out.test_seconds;
  now.seconds_left = seconds_of_steps - seconds + (has_ended ? 0 : out.test_seconds);
  return out;
}

Progress::Work test_progress(const RunProgress& progress, double began) {
  const double expected = progress.test_seconds, spent = seconds_now() - began;
  const bool is_known = expected > spent;  // else the test takes longer than expected, and its end is unknown
  return {.label = "test",
          .share = is_known ? spent / expected : -1,
          .seconds_left = expected - spent,
          .began = began};
}

std::string run_line(const std::string& name, const RunProgress& progress, double test_began,
                     int64_t columns) {
  std::string begin = "  " + name.substr(0, name_columns - 2);
  begin.resize(name_columns, ' ');
  const int64_t left = std::max<int64_t>(columns - name_columns, 1);
  if (progress.is_testing) return begin + work_line(test_progress(progress, test_began), false, left);
  if (progress.steps.step == 0) return begin + work_line({.label = "begins"}, false, left);
  return begin + progress_line(progress.steps, false, left);
}

}  // namespace heed

// Judges the cells of a table by the scores of their runs: values, errors, remarks and verdicts.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/metrics/score_name.h"

namespace heed {
namespace {

/// The number of logged losses in the last tenth of a series.
size_t last_tenth(const MetricSeries& losses) { return std::max<size_t>(1, losses.values.size() / 10); }

/// The first second at which the mean over a window of logged losses, as long as the last tenth of the run's,
/// is at most `level`; NaN: never.
double seconds_to(const ComparedRun& run, double level) {
  const MetricSeries *loss = run.metric("loss"), *seconds = run.metric("seconds");
  if (loss == nullptr || seconds == nullptr) return NAN;
  constexpr double rounding = 1e-12;  // the run that sets the level reaches it in spite of rounding
  const size_t window = last_tenth(*loss);
  double sum = 0;
  for (size_t i = 0; i < loss->values.size(); ++i) {
    sum += loss->values[i] - (i >= window ? loss->values[i - window] : 0);
    if (i + 1 >= window && sum / static_cast<double>(window) <= level * (1 + rounding))
      return seconds_at(*seconds, loss->steps[i]);
  }
  return NAN;
}

/// The mean of the last tenth of logged losses.
double last_loss(const ComparedRun& run) {
  const MetricSeries* loss = run.metric("loss");
  if (loss == nullptr || loss->values.empty()) return NAN;
  const auto window = static_cast<std::ptrdiff_t>(last_tenth(*loss));
  return std::accumulate(loss->values.end() - window, loss->values.end(), 0.0) / static_cast<double>(window);
}

/// A run's test score in the unit of the table; NaN for a measure that is no score.
double score_in(const PublishedTable& table, const ComparedRun& run) {
  switch (table.measure) {
    case Measure::accuracy:
      return 100 * run.score("accuracy");
    case Measure::loss:
      return run.score("loss");
    case Measure::bleu:
      return run.score("bleu");
    default:
      return NAN;
  }
}

/// The value of a run that is compared with the paper's: a speedup over `baseline_run`, the table's
/// validation metric, or a test score.
double value_of(const PublishedTable& table, const ComparedRun& run, const ComparedRun* baseline_run) {
  if (table.measure == Measure::sooner) {
    if (baseline_run == nullptr) return NAN;
    const double level = last_loss(*baseline_run);
    return seconds_to(*baseline_run, level) / seconds_to(run, level);
  }
  return table.metric.empty() ? score_in(table, run) : run.validation(table.metric);
}

/// The validation score of a point as text, an accuracy in percent; the loss for a curve without scores.
std::string score_text(const RunCurve& curve, const CurvePoint& point) {
  if (curve.score == "accuracy") return picture::fixed(100 * point.valid_score, 1) + " %";
  return picture::fixed(curve.score.empty() ? point.valid_loss : point.valid_score, 3);
}

/// The validation scores of a run: "tested at step 3,000 with validation accuracy 38.1 %; the best was 38.5 %
/// at step 2,500; at the last step, 5,000, it was 37.5 %".
std::string validation_text(const PublishedTable& table, const ComparedRun& run) {
  const RunCurve curve = joined_curve(run.metrics, curve_score(table));
  const CurvePoint *best = curve.best(), *last = curve.last();
  if (best == nullptr || last == nullptr) return "";
  const auto tested = std::ranges::find(curve.points, run.step, &CurvePoint::step);
  const bool at_last = last->step == run.step;
  std::string out = text("tested at step ", grouped(run.step), at_last ? ", the last one," : "");
  const std::string score = score_name("valid_" + (curve.score.empty() ? "loss" : curve.score));
  if (tested != curve.points.end() && tested->step == best->step)
    out += text(" with the best ", score, ", ", score_text(curve, *best));
  else if (tested != curve.points.end())
    out += text(" with ", score, " ", score_text(curve, *tested), "; the best was ", score_text(curve, *best),
                " at step ", grouped(best->step));
  if (at_last) return out;
  out += text("; at the last step, ", grouped(last->step), ", it was ", score_text(curve, *last));
  if (const double accuracy = run.score("last_accuracy"); !std::isnan(accuracy))
    out += text(", and the test accuracy ", picture::fixed(100 * accuracy, 1), " %");
  return out;
}

/// The best baseline that is not above an accuracy, else the lowest: "majority 17.2".
std::string baseline_text(const ComparedRun& run, double percent) {
  const std::pair<std::string, double>*best_reached = nullptr, *lowest = nullptr;
  for (const auto& baseline : run.accuracy_baselines) {
    const double accuracy = baseline.second;
    if (lowest == nullptr || accuracy < lowest->second) lowest = &baseline;
    const bool is_reached = 100 * accuracy <= percent;
    if (is_reached && (best_reached == nullptr || accuracy > best_reached->second)) best_reached = &baseline;
  }
  const auto* shown = best_reached != nullptr ? best_reached : lowest;
  return shown == nullptr ? "" : text(shown->first, " ", picture::fixed(100 * shown->second, 1));
}

/// The state of a cell's runs without scores: "seed 1 at step 1,200 of 50,000"; with a grid, how many
/// settings have ended, and the state of the runs that have begun. Sets CellResult::has_begun, and counts the
/// steps of these runs.
std::string unfinished_text(const PublishedTable& table, const ReproductionOptions& options,
                            const PlannedCell& planned, const EndedRuns& ended, CellResult& result) {
  std::string words;
  const auto add = [&](const GridPoint& point, int64_t seed, const std::string& state) {
    std::string name = point_text(point);
    picture::append_part(name, text("seed ", seed, " ", state), ", ");
    picture::append_part(words, name, point.empty() ? ", " : "; ");
  };
  const auto position = [&](int64_t step, int64_t total, double seconds) {
    result.step += step;
    result.steps += total;
    result.seconds += seconds;
    return text("at step ", grouped(step), " of ", grouped(total));
  };
  result.has_begun = !planned.unfinished_on_file.empty();
  const bool is_choosing = planned.plans.empty() && !planned.trials.empty();
  if (is_choosing && planned.finished_on_file.empty()) words = ended_points_text(table, planned, ended);
  for (const PlannedRun& plan : planned.trainings()) {
    const bool has_ended = ended.contains(plan.name);
    result.has_begun = result.has_begun || (is_choosing && has_ended);
    if (has_ended || counts_from_file(planned, plan.seed)) continue;
    ++result.open_runs;
    const Path run = folder_of(plan, options.runs.folder);
    const RunCurve curve = read_curve(run / "metrics.jsonl", "loss");
    if (curve.points.empty())
      result.steps += config_of(planned, options, plan.seed - 1, plan.point).train.max_steps;
    const bool is_begun = has_begun(plan, options.runs.folder);
    if (!is_begun && is_choosing) continue;
    result.has_begun = result.has_begun || !curve.points.empty();
    add(plan.point, plan.seed,
        !is_begun ? "not started"
        : curve.points.empty()
            ? "started"
            : position(curve.points.back().step, total_steps(run), curve.points.back().seconds));
  }
  for (const FiledRun& filed : planned.unfinished_on_file) {
    ++result.open_runs;
    const MetricSeries* seconds = filed.run.metric("seconds");
    add({}, filed.run.seed,
        position(filed.run.step, filed.run.steps, seconds != nullptr ? seconds->values.back() : NAN));
  }
  return words;
}

/// Takes the verdict away from a value on other data than the paper's, and adds the reason to its remark.
void withhold_verdict_on_other_data(const PublishedTable& table, const ReproductionOptions& options,
                                    const PlannedCell& planned, CellResult& result) {
  const PublishedColumn& column = *planned.column;
  const bool has_real_data =
      options.data.contains(column.name) || (planned.plans.empty() && !planned.finished_on_file.empty() &&
                                             planned.finished_on_file.front().run.data == given_data);
  if (table.measure == Measure::steps_per_second || column.real_data.empty() || has_real_data) return;
  result.verdict = Verdict::unknown;
  result.remark = text("no verdict, since the data are generated; for the paper's give --data ", column.name,
                       "=PATH, ", column.real_data, result.remark.empty() ? "" : "; ", result.remark);
}

/// Takes the verdict "below" of a speedup away if a run had fewer steps than its recipe: with all of them it
/// might have reached the loss, or a lower one sooner.
void withhold_verdict_on_few_steps(const PlannedCell& planned, const std::vector<const ComparedRun*>& runs,
                                   CellResult& result) {
  const int64_t recipe_steps = recipe_of(planned).train.max_steps;
  for (const ComparedRun* run : runs) {
    if (result.verdict != Verdict::below || run->steps == 0 || run->steps >= recipe_steps) continue;
    result.verdict = Verdict::unknown;
    picture::append_part(result.remark, text(grouped(run->steps), " of the recipe's ", grouped(recipe_steps),
                                             " steps are too few for a verdict"));
  }
}

/// The mean and deviation over runs of the number that `number_of` returns for each.
template <class NumberOf>
Spread spread_over(const std::vector<const ComparedRun*>& runs, const NumberOf& number_of) {
  std::vector<double> numbers;
  for (const ComparedRun* run : runs) numbers.push_back(number_of(*run));
  return spread_of(numbers);
}

/// The remark of a value that has no other: what else its runs have measured; empty: nothing.
std::string remark_of(const PublishedTable& table, const PlannedCell& planned,
                      const std::vector<const ComparedRun*>& runs, const CellResult& result) {
  if (runs.size() > 1 && result.error > 0)
    return text(runs.size(), " seeds, deviation ", picture::fixed(result.ours.deviation, 2));
  if (!table.metric.empty()) {
    const Spread scores = spread_over(runs, [&](const ComparedRun& run) { return score_in(table, run); });
    return text("over all of validation ", to_string(scores), "; ", planned.column->note);
  }
  if (table.measure != Measure::bleu) return "";
  const Spread loss = spread_over(runs, [](const ComparedRun& run) { return run.score("loss"); });
  const Spread speed = spread_over(runs, [](const ComparedRun& run) { return run.steps_per_second; });
  return text("loss ", picture::fixed(loss.mean, 3), ", ", picture::fixed(speed.mean, 1), " steps/s");
}

}  // namespace

std::string grouped(int64_t number) {
  std::string out = std::to_string(number);
  for (size_t end = out.size(); end > 3; end -= 3) out.insert(end - 3, ",");
  return out;
}

std::string curve_score(const PublishedTable& table) {
  if (!table.metric.empty()) return table.metric;
  return table.measure == Measure::bleu ? "bleu" : "accuracy";
}

const ComparedRun* finished_run(const EndedRuns& ended, const PlannedRun& plan) {
  const auto run = ended.find(plan.name);
  return run != ended.end() && run->second.failure.empty() ? &run->second : nullptr;
}

CellResult judged_cell(const PublishedTable& table, const ReproductionOptions& options,
                       const PlannedCell& planned, const EndedRuns& ended, const ComparedRun* baseline_run) {
  CellResult result = planned.result;
  std::vector<const ComparedRun*> runs;  // those with scores
  for (const PlannedRun& plan : planned.plans) {
    const auto run = ended.find(plan.name);
    if (run == ended.end()) continue;
    if (run->second.failure.empty()) {
      runs.push_back(&run->second);
    } else {
      result.remark = run->second.failure;
      if (result.code == 0) result.code = run->second.code;
    }
  }
  for (const FiledRun& filed : planned.finished_on_file) runs.push_back(&filed.run);
  const std::string unfinished = unfinished_text(table, options, planned, ended, result);
  if (result.remark.empty()) result.remark = unfinished;
  if (runs.empty()) return result;
  const Spread ours =
      spread_over(runs, [&](const ComparedRun& run) { return value_of(table, run, baseline_run); });
  result.setting = best_point_text(table, planned, ended, runs);
  result.validation = validation_text(table, *runs.front());
  result.baselines = runs.back()->baselines;
  result.examples = runs.back()->examples;
  if (table.measure == Measure::accuracy) result.baseline = baseline_text(*runs.back(), ours.mean);
  if (table.measure == Measure::sooner && !std::isfinite(ours.mean)) {
    const std::string& baseline = table.rows.front().name;
    picture::append_part(result.remark, baseline_run == nullptr
                                            ? "no run of " + baseline + " to compare with"
                                            : "the last training loss of " + baseline + " was never reached");
    // A run that never reached the loss has a lower speedup than the paper's.
    if (baseline_run != nullptr && std::isfinite(result.paper)) result.verdict = Verdict::below;
    withhold_verdict_on_other_data(table, options, planned, result);
  } else {
    result.ours = ours;
    if (table.measure == Measure::accuracy) result.error = two_standard_errors(ours.mean, result.examples);
    if (result.remark.empty()) result.remark = remark_of(table, planned, runs, result);
    set_verdict(table, options, planned, result);
  }
  if (table.measure == Measure::sooner) withhold_verdict_on_few_steps(planned, runs, result);
  return result;
}

void set_verdict(const PublishedTable& table, const ReproductionOptions& options, const PlannedCell& planned,
                 CellResult& result) {
  if (result.ours.count == 0) return;
  result.verdict = verdict_on(table, result.paper, result.ours.mean,
                              std::max(result.ours.deviation, result.error), planned.row->tolerance);
  withhold_verdict_on_other_data(table, options, planned, result);
  if (result.remark.empty()) result.remark = planned.row->note;
}

}  // namespace heed

// Judges the cells of a table by the scores of their runs.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/files.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/metrics/score_name.h"

namespace heed {
namespace {

/// How many logged losses are the last tenth of a series.
size_t last_tenth(const MetricSeries& losses) { return std::max<size_t>(1, losses.values.size() / 10); }

/// The first second at which the mean of the last tenth of logged losses is at most `level`; NaN: never.
double seconds_to(const ComparedRun& run, double level) {
  const MetricSeries *loss = run.metric("loss"), *seconds = run.metric("seconds");
  if (loss == nullptr || seconds == nullptr) return NAN;
  const size_t window = last_tenth(*loss);
  double sum = 0;
  for (size_t i = 0; i < loss->values.size(); ++i) {
    sum += loss->values[i] - (i >= window ? loss->values[i - window] : 0);
    if (i + 1 >= window && sum / static_cast<double>(window) <= level * (1 + 1e-12))
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

/// A run's score in the unit of the table.
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

/// A validation metric of the scored checkpoint.
double validated(const ComparedRun& run, const std::string& metric) {
  const MetricSeries* series = run.metric("valid_" + metric);
  if (series == nullptr) return NAN;
  const auto at = std::find(series->steps.begin(), series->steps.end(), run.step);
  return at == series->steps.end() ? NAN : series->values[static_cast<size_t>(at - series->steps.begin())];
}

double value_of(const PublishedTable& table, const ComparedRun& run, const ComparedRun* first) {
  if (table.measure == Measure::sooner) {
    if (first == nullptr) return NAN;
    const double level = last_loss(*first);
    return seconds_to(*first, level) / seconds_to(run, level);
  }
  return table.metric.empty() ? score_in(table, run) : validated(run, table.metric);
}

/// A validation score as people read it: percent for an accuracy.
std::string score_text(const RunCurve& curve, const CurvePoint& point) {
  if (curve.score == "accuracy") return picture::fixed(100 * point.valid_score, 1) + " %";
  return picture::fixed(curve.score.empty() ? point.valid_loss : point.valid_score, 3);
}

/// "tested at step 3,000 with validation accuracy 38.1 %; the best was 38.5 % at step 2,500; at the last
/// step, 5,000, it was 37.5 %": of one run.
std::string validation_text(const PublishedTable& table, const ComparedRun& run) {
  const RunCurve curve = joined_curve(run.metrics, curve_score(table));
  const CurvePoint *best = curve.best(), *last = curve.last();
  if (best == nullptr || last == nullptr) return "";
  const auto tested = std::find_if(curve.points.begin(), curve.points.end(),
                                   [&](const CurvePoint& one) { return one.step == run.step; });
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
  const std::pair<std::string, double>*below = nullptr, *lowest = nullptr;
  for (const auto& one : run.accuracy_baselines) {
    if (lowest == nullptr || one.second < lowest->second) lowest = &one;
    if (100 * one.second <= percent && (below == nullptr || one.second > below->second)) below = &one;
  }
  const auto* shown = below != nullptr ? below : lowest;
  return shown == nullptr ? "" : text(shown->first, " ", picture::fixed(100 * shown->second, 1));
}

/// How far the runs of a cell without scores are: "seed 1 at step 1,200 of 50,000". `begun` becomes true
/// where one has taken a step.
std::string state_of(const ReproductionOptions& options, const PlannedCell& planned, const EndedRuns& ended,
                     bool& begun) {
  std::string out;
  begun = !planned.begun.empty();
  for (const PlannedRun& plan : planned.plans) {
    if (ended.contains(plan.name) || is_filed(planned, plan.seed)) continue;
    const Path run = folder_of(plan, options.runs.folder);
    const RunCurve curve = read_curve(run / "metrics.jsonl", "loss");
    begun = begun || !curve.points.empty();
    std::string state = text("seed ", plan.seed);
    if (!io::exists(run / "config.toml"))
      state += " not started";
    else if (curve.points.empty())
      state += " started";
    else
      state += text(" at step ", grouped(curve.points.back().step), " of ", grouped(total_steps(run)));
    picture::append_part(out, state, ", ");
  }
  for (const FiledRun& one : planned.begun)
    picture::append_part(
        out, text("seed ", one.run.seed, " at step ", grouped(one.run.step), " of ", grouped(one.run.steps)),
        ", ");
  return out;
}

/// Says where a value is of other data than the paper's, and takes its verdict away.
void withhold_verdict_on_other_data(const PublishedTable& table, const ReproductionOptions& options,
                                    const PlannedCell& planned, Cell& cell) {
  const PublishedColumn& column = *planned.column;
  const bool given = options.data.contains(column.name) || (planned.plans.empty() && !planned.filed.empty() &&
                                                            planned.filed.front().run.data == given_data);
  const bool other_data = table.measure != Measure::steps_per_second && !column.real_data.empty() && !given;
  if (!other_data) return;
  cell.verdict = Verdict::unknown;
  cell.remark = text("no verdict, since the data are generated; for the paper's give --data ", column.name,
                     "=PATH, ", column.real_data, cell.remark.empty() ? "" : "; ", cell.remark);
}

/// Says that a cell has no speedup, since its losses, or the first row's, do not tell when the level is
/// reached. With the first row's run at hand, less than the paper's speedup is known.
void give_no_speedup(const PublishedTable& table, const ReproductionOptions& options,
                     const PlannedCell& planned, const ComparedRun* first, Cell& cell) {
  const std::string& base = table.rows.front().name;
  picture::append_part(cell.remark, first == nullptr
                                        ? "no run of " + base + " to compare with"
                                        : "the last training loss of " + base + " was never reached");
  if (first != nullptr && std::isfinite(cell.paper)) cell.verdict = Verdict::below;
  withhold_verdict_on_other_data(table, options, planned, cell);
}

/// Takes the verdict "below" of a speedup away where a run had fewer steps than its recipe: with all of them
/// it might have reached the loss, or a lower one sooner.
void withhold_verdict_on_few_steps(const PlannedCell& planned, const std::vector<int64_t>& steps,
                                   Cell& cell) {
  const int64_t wanted = recipe_of(planned).train.max_steps;
  for (const int64_t taken : steps) {
    if (cell.verdict != Verdict::below || taken == 0 || taken >= wanted) continue;
    cell.verdict = Verdict::unknown;
    picture::append_part(cell.remark, text(grouped(taken), " of the recipe's ", grouped(wanted),
                                           " steps are too few for a verdict"));
  }
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
  const auto found = ended.find(plan.name);
  return found != ended.end() && found->second.failure.empty() ? &found->second : nullptr;
}

Cell judged(const PublishedTable& table, const ReproductionOptions& options, const PlannedCell& planned,
            const EndedRuns& ended, const ComparedRun* first) {
  Cell cell = planned.cell;
  std::vector<double> values, scores, losses, speeds;
  std::vector<int64_t> steps;
  const auto take = [&](const ComparedRun& run) {
    values.push_back(value_of(table, run, first));
    scores.push_back(score_in(table, run));
    steps.push_back(run.steps);
    cell.baselines = run.baselines;
    cell.examples = run.examples;
    if (values.size() == 1) cell.validation = validation_text(table, run);
    if (table.measure == Measure::bleu)
      losses.push_back(run.score("loss")), speeds.push_back(run.steps_per_second);
    if (table.measure == Measure::accuracy) cell.baseline = baseline_text(run, spread_of(values).mean);
  };
  for (const PlannedRun& plan : planned.plans) {
    const auto found = ended.find(plan.name);
    if (found == ended.end()) continue;
    if (found->second.failure.empty()) {
      take(found->second);
      continue;
    }
    cell.remark = found->second.failure;
    if (cell.code == 0) cell.code = found->second.code;
  }
  for (const FiledRun& one : planned.filed) take(one.run);
  const std::string state = state_of(options, planned, ended, cell.begun);
  if (!state.empty() && cell.remark.empty()) cell.remark = state;
  if (values.empty()) return cell;
  const Spread ours = spread_of(values);
  if (table.measure == Measure::sooner && !std::isfinite(ours.mean)) {
    give_no_speedup(table, options, planned, first, cell);
    withhold_verdict_on_few_steps(planned, steps, cell);
    return cell;
  }
  cell.ours = ours;
  if (table.measure == Measure::accuracy) cell.error = two_standard_errors(cell.ours.mean, cell.examples);
  if (values.size() > 1 && cell.error > 0 && cell.remark.empty())
    cell.remark = text(values.size(), " seeds, deviation ", picture::fixed(cell.ours.deviation, 2));
  if (!table.metric.empty() && cell.remark.empty())
    cell.remark = text("over all of validation ", to_string(spread_of(scores)), "; ", planned.column->note);
  if (!losses.empty() && cell.remark.empty())
    cell.remark = text("loss ", picture::fixed(spread_of(losses).mean, 3), ", ",
                       picture::fixed(spread_of(speeds).mean, 1), " steps/s");
  set_verdict(table, options, planned, cell);
  if (table.measure == Measure::sooner) withhold_verdict_on_few_steps(planned, steps, cell);
  return cell;
}

void set_verdict(const PublishedTable& table, const ReproductionOptions& options, const PlannedCell& planned,
                 Cell& cell) {
  if (cell.ours.count == 0) return;
  cell.verdict = verdict_on(table, cell.paper, cell.ours.mean, std::max(cell.ours.deviation, cell.error),
                            planned.row->tolerance);
  withhold_verdict_on_other_data(table, options, planned, cell);
  if (!planned.row->note.empty() && cell.remark.empty()) cell.remark = planned.row->note;
}

}  // namespace heed

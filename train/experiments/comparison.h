// Compares runs: scores, cost and curves.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/core/error.h"
#include "heed/train/report/bubble_chart.h"
#include "heed/train/report/chart.h"
#include "heed/train/report/report.h"
#include "heed/train/run/metrics_log.h"
#include "heed/train/run/session_history.h"

namespace heed {

/// A finished run in a comparison, or why there is none.
struct ComparedRun {
  std::string label;                                     ///< runs with the same label differ by their seed
  std::string folder;                                    ///< run folder; empty: the run is missing
  std::string failure;                                   ///< why the run is missing; empty: it is there
  int code = 0;                                          ///< exit code of the failure
  int64_t seed = 0;                                      ///< train.seed of the run
  int64_t step = 0;                                      ///< step of the scored checkpoint
  int64_t steps = 0;                                     ///< number of steps that the run took
  int64_t examples = 0;                                  ///< number of scored test examples; 0: unknown
  std::vector<std::pair<std::string, double>> scores{};  ///< on the test split
  std::string baselines{};                               ///< baselines of the test split, as text
  /// Baselines of the accuracy on the test split: name and value.
  std::vector<std::pair<std::string, double>> accuracy_baselines{};
  ReportSettings settings{};            ///< changes to the preset by the manifest, and config.toml
  std::string data{};                   ///< hashes of the training and test data
  double parameters = 0;                ///< parameter count
  double flops = 0;                     ///< floating-point operations of a step
  double steps_per_second = 0;          ///< training steps per second; 0: unknown
  double memory = 0;                    ///< peak bytes of the process; 0: unknown
  double seconds = 0;                   ///< seconds of training
  std::vector<MetricSeries> metrics{};  ///< all metrics of metrics.jsonl, for curves
  SessionTraits measured_on{};          ///< program and machine of the speed and memory
  std::string machine_difference{};     ///< what differs from the first run's machine, by compare_runs()

  /// The score of this name on the test split; NaN where there is none.
  double score(const std::string& name) const;
  /// The metric of this name; null where it was not logged.
  const MetricSeries* metric(const std::string& name) const;
};

/// Reads a run with test scores. Fault::file or Fault::data that names what is missing.
ComparedRun read_compared(const Path& run, const std::string& label);

/// Mean and sample standard deviation of the runs of one label.
struct Spread {
  double mean = 0;       ///< sum divided by count
  double deviation = 0;  ///< sample standard deviation; 0 for one value
  int64_t count = 0;     ///< number of values
};
/// The spread of some values.
Spread spread_of(const std::vector<double>& values);
/// "0.913 ± 0.004", or only the mean for one value.
std::string to_string(const Spread& spread);

/// The runs of one label.
struct ComparedRow {
  std::string label;            ///< label of all its runs
  std::string failure;          ///< failure of its first failed run; empty: none failed
  Spread score;                 ///< mean and deviation of Comparison::score
  double parameters = 0;        ///< mean parameter count
  double flops = 0;             ///< mean floating-point operations of a step
  double steps_per_second = 0;  ///< mean training steps per second
  double memory = 0;            ///< mean of the peak bytes
  double seconds = 0;           ///< mean seconds of training
  std::string
      machine_difference{};  ///< ComparedRun::machine_difference of its runs: their speed is not comparable
};

/// A comparison: runs, rows in order of first appearance of their labels, and the score that is compared
/// (accuracy, else bleu, else the task's first).
struct Comparison {
  std::string title;                ///< heading of the page
  std::string score;                ///< name of the score that is compared
  bool higher_is_better = true;     ///< whether a higher `score` is better
  std::vector<ComparedRun> runs{};  ///< in the order given
  std::vector<ComparedRow> rows{};  ///< one for each label
  std::string maps{};               ///< file beside the page with attention maps side by side; empty: none
  std::string maps_missing{};       ///< why there are no maps, where they were tried
};
/// Groups runs by label and computes the means of each group.
Comparison compare_runs(const std::string& title, std::vector<ComparedRun> runs);
/// The exit code of the program: that of the first failed run, or 0.
int exit_code(const Comparison& comparison);

/// Notes below the table, one line each: the baselines of the test data ("baselines: majority 0.172, ..."),
/// with labels where runs differ; which runs have which data, if they differ; and whose speed was measured on
/// another machine.
std::vector<std::string> comparison_notes(const Comparison& comparison);
/// The mark of a speed measured on another machine or by another program than the first run's.
std::string_view speed_mark(const ComparedRow& row);
/// The table as text for a terminal.
std::string comparison_text(const Comparison& comparison);
/// CSV with one line per run: label, seed, every score, `baselines` (baselines, if any), speed, memory,
/// parameters, FLOPs, seconds, folder, failure, machine and program, and their differences to the first
/// run's.
std::string comparison_csv(const Comparison& comparison);
/// A metric over steps (or seconds of training), one line per label: the mean of its runs at the steps that
/// all have.
Chart comparison_chart(const Comparison& comparison, const std::string& metric, bool against_seconds);
/// Charts of validation score and training loss over steps and over seconds, if logged, each with its file
/// name.
std::vector<std::pair<std::string, Chart>> comparison_charts(const Comparison& comparison);
/// Score over speed, with peak memory as area.
BubbleChart comparison_bubbles(const Comparison& comparison);
/// One page without network access: the table, score over speed, curves over steps and seconds.
std::string comparison_html(const Comparison& comparison);

}  // namespace heed

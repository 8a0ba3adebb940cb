// Compares runs: scores, cost and curves.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/core/error.h"
#include "heed/train/experiments/setting_grid.h"
#include "heed/train/metrics/spread.h"
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
  double seconds = 0;                   ///< seconds of training steps
  double validation_seconds = 0;        ///< seconds of validation while it trained
  std::vector<MetricSeries> metrics{};  ///< all metrics of metrics.jsonl, for curves
  SessionTraits measured_on{};          ///< program and machine of the speed and memory
  std::string machine_difference{};     ///< what differs from the first run's machine, by compare_runs()
  std::string commit{};                 ///< commit of the program; empty: unknown
  std::string started{};                ///< date and time of its start
  GridPoint point{};                    ///< its settings of the grid; empty: no grid
  bool chosen = true;                   ///< whether its point is the best of its label: see choose_points()

  /// The score of this name on the test split; NaN where there is none.
  double score(const std::string& name) const;
  /// The validation score of this name of the scored checkpoint; NaN where it was not logged.
  double validation(const std::string& name) const;
  /// The metric of this name; null where it was not logged.
  const MetricSeries* metric(const std::string& name) const;
};

/// Reads a run with test scores. Fault::file or Fault::data that names what is missing.
ComparedRun read_compared(const Path& run, const std::string& label);

/// The chosen runs of one label.
struct ComparedRow {
  std::string label;    ///< label of all its runs
  std::string failure;  ///< failure of its first failed run; empty: none failed
  GridPoint point{};    ///< their settings of the grid; empty: no grid
  Spread score;         ///< mean and deviation of Comparison::score
  /// Its score less that of the row with the best mean; empty for that row, and where one has one seed only.
  std::optional<DifferenceInterval> to_best{};
  bool is_best = false;           ///< whether its mean is the best of all rows
  double parameters = 0;          ///< mean parameter count
  double flops = 0;               ///< mean floating-point operations of a step
  double steps_per_second = 0;    ///< mean training steps per second
  double memory = 0;              ///< mean of the peak bytes
  double seconds = 0;             ///< mean seconds of training steps
  double validation_seconds = 0;  ///< mean seconds of validation
  /// Numbers that its attention keeps per head after max_length tokens; empty: unknown.
  std::optional<double> state{};
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
  std::string selection{};          ///< validation score by which points were chosen; empty: no grid
  std::string command{};            ///< command line that made it; empty: unknown
  int64_t state_length = 0;         ///< number of tokens of ComparedRow::state; 0: unknown
  std::string maps{};               ///< file beside the page with attention maps side by side; empty: none
  std::string maps_missing{};       ///< why there are no maps, where they were tried
};
/// The score of finished runs that is compared; empty where there is none.
std::string compared_score(const std::vector<ComparedRun>& runs);
/// Groups the chosen runs by label and computes the means of each group.
Comparison compare_runs(const std::string& title, std::vector<ComparedRun> runs);
/// The chosen runs of a label, in order.
std::vector<const ComparedRun*> chosen_runs(const Comparison& comparison, const std::string& label);
/// The exit code of the program: that of the first chosen run that failed, or 0.
int exit_code(const Comparison& comparison);

/// Notes below the table, one line each: what ± is; how settings were chosen, and which best ones are at an
/// edge of the grid; the baselines of the test data ("baselines: majority 0.172, ..."), with labels where
/// runs differ; which runs have which data, if they differ; whose speed was measured on another machine; how
/// far parameter counts differ; the command, date, commit and machine.
std::vector<std::string> comparison_notes(const Comparison& comparison);
/// The mark of a speed measured on another machine or by another program than the first run's.
std::string_view speed_mark(const ComparedRow& row);
/// The table: headings, then a row for each label. Columns without any value are left out. A row without a
/// score has two cells, its label and why it failed.
std::vector<std::vector<std::string>> comparison_table(const Comparison& comparison);
/// The table and its notes as text for a terminal.
std::string comparison_text(const Comparison& comparison);
/// The table and its notes in Markdown.
std::string comparison_markdown(const Comparison& comparison);
/// The table as LaTeX with the rules of booktabs, its notes as comments.
std::string comparison_latex(const Comparison& comparison);
/// CSV with one line per run, chosen or not: label, seed, the settings of the grid, whether it is chosen,
/// every score, `baselines` (baselines, if any), speed, memory, parameters, FLOPs, seconds, folder, failure,
/// machine and program, and their differences to the first run's.
std::string comparison_csv(const Comparison& comparison);
/// A metric over steps (or seconds of training), one line per label: the mean of its chosen runs at the steps
/// that all have, with a band between the lowest and the highest.
Chart comparison_chart(const Comparison& comparison, const std::string& metric, bool against_seconds);
/// Charts of validation score and training loss over steps and over seconds, if logged, each with its file
/// name.
std::vector<std::pair<std::string, Chart>> comparison_charts(const Comparison& comparison);
/// Score over speed, with peak memory as area.
BubbleChart comparison_bubbles(const Comparison& comparison);
/// One page without network access: the table, score over speed, curves over steps and seconds.
std::string comparison_html(const Comparison& comparison);

}  // namespace heed

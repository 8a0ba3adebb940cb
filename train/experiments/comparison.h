// Runs side by side: what each reached, and what it took.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "train/bubbles.h"
#include "train/chart.h"
#include "train/metrics_log.h"
#include "train/sessions.h"

namespace heed {

/// A finished run as a comparison sees it, or one that there is not.
struct ComparedRun {
  std::string label;    ///< what it is compared as; runs of one label differ by their seed
  std::string folder;   ///< empty when there is no run
  std::string failure;  ///< why there is none
  int code = 0;         ///< what it failed with, as an exit code
  int64_t seed = 0;
  int64_t step = 0;                                      ///< of the checkpoint that was scored
  std::vector<std::pair<std::string, double>> scores{};  ///< on the test data
  std::string anchors{};                                 ///< what little knowledge scores there, in words
  std::string data{};                                    ///< what it was trained and scored on, by hash
  double parameters = 0, flops = 0;                      ///< flops of a step
  double steps_per_second = 0, memory = 0;  ///< peak bytes of the process; 0 where it is not known
  double seconds = 0;                       ///< of training
  std::vector<MetricSeries> metrics{};
  SessionTraits measured_on{};  ///< program and machine that its speed and memory are of
  std::string otherwise{};      ///< how these differ from those of the first run; compare_runs() fills it in
};

/// Reads a finished run. Fault::file or Fault::data naming what is missing: a run that has not been scored
/// has no place in a comparison.
ComparedRun read_compared(const Path& run, const std::string& label);

/// Mean and sample deviation of the runs of one label.
struct Spread {
  double mean = 0, deviation = 0;
  int64_t count = 0;
};
Spread spread_of(const std::vector<double>& values);
/// "0.913 ± 0.004", or the mean alone for a single value.
std::string to_string(const Spread& spread);

/// The runs of one label together.
struct ComparedRow {
  std::string label, failure;
  Spread score;                                                                     ///< of Comparison::score
  double parameters = 0, flops = 0, steps_per_second = 0, memory = 0, seconds = 0;  ///< means
  std::string otherwise{};  ///< ComparedRun::otherwise of its runs: its speed says nothing beside others
};

/// What a comparison says: runs, rows in the order in which labels first appear, and the score that rows are
/// compared by (accuracy, else bleu, else the first that the task names).
struct Comparison {
  std::string title, score;
  bool higher_is_better = true;
  std::vector<ComparedRun> runs{};
  std::vector<ComparedRow> rows{};
};
Comparison compare_runs(const std::string& title, std::vector<ComparedRun> runs);
/// What the program ends with: the code of the first run that failed, or 0.
int exit_code(const Comparison& comparison);

/// What belongs below the table, a line each. What little knowledge scores on the test data: "anchors:
/// majority 0.172, ..."; where that is not the same for all runs, with the labels of those it is for. And
/// where runs were not all scored on the same data, which had which. And whose speed was measured elsewhere.
std::vector<std::string> comparison_notes(const Comparison& comparison);
/// Stands behind a speed that was measured on another machine, or by another program, than the first.
std::string_view speed_mark(const ComparedRow& row);
/// A table for the terminal.
std::string comparison_text(const Comparison& comparison);
/// One line a run: label, seed, every score, anchors where a run has any, speed, memory, parameters, flops,
/// seconds, folder, failure, what it was measured on, and how that differs from the first.
std::string comparison_csv(const Comparison& comparison);
/// The value of a metric over steps (or seconds of training), one line a label: the mean of its runs at the
/// steps that all of them have.
Chart comparison_chart(const Comparison& comparison, const std::string& metric, bool against_seconds);
/// Validation score and training loss over steps and over seconds, those that were logged, each with a name
/// for its file.
std::vector<std::pair<std::string, Chart>> comparison_charts(const Comparison& comparison);
/// Speed against score, with peak memory as area.
BubbleChart comparison_bubbles(const Comparison& comparison);
/// One offline page: the table, the picture of speed against score, curves against steps and seconds.
std::string comparison_html(const Comparison& comparison);

}  // namespace heed

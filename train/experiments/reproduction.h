// Reproduces published tables: chooses cells, estimates their time, runs and judges them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heed/train/experiments/comparison_plan.h"
#include "heed/train/experiments/published_results.h"

namespace heed {

/// Settings of a reproduction.
struct ReproductionOptions {
  std::vector<std::string>
      rows{};         ///< ROW, COLUMN or ROW/COLUMN to run however long they take; empty: all below the limit
  int64_t seeds = 1;  ///< runs of each cell, with seeds 1, 2, ...
  double limit = 600;  ///< maximum predicted seconds of a cell that `rows` does not name
  std::map<std::string, std::string> data{};  ///< --data of each column
  ComparisonOptions runs;                     ///< folder of the runs, machine options, quiet, budget
  Path results{};  ///< where curves, pictures and the page go; empty: `results` in runs.folder
  /// Changes settings of every run: what the command line says.
  std::function<void(Config&)> adjust = [](Config&) {};
  std::string adjusted{};   ///< these settings as typed, for the header of curves: "--steps 100"
  int64_t max_length = 0;   ///< longest sequence of a crossover; 0: twice the paper's crossover
  Path run{};               ///< run of the trained language model, for Measure::swapped
  int64_t max_windows = 0;  ///< windows of each portion of the text, for Measure::swapped; 0: all

  /// `results`, or where they go by default.
  Path results_folder() const { return results.empty() ? runs.folder / "results" : results; }
};

/// One published value and ours.
struct Cell {
  std::string name;                    ///< ROW/COLUMN
  double paper = 0;                    ///< the paper's value; NaN: none
  Spread ours{};                       ///< our value in the paper's unit; empty where `remark` says why
  double error = 0;                    ///< two standard errors of the test set; 0: not known
  int64_t examples = 0;                ///< test examples of a run; 0: not known
  Verdict verdict = Verdict::unknown;  ///< verdict on our value beside the paper's
  std::string baseline{};    ///< the best baseline that ours reaches, or the lowest of all: "majority 17.2"
  std::string validation{};  ///< validation scores of the tested, the best and the last checkpoint
  std::string changed{};     ///< settings that are not the recipe's
  bool begun = false;        ///< a run of it has begun, here or on file
  std::string remark{};      ///< why there is no value, or what differs from the paper
  std::string left_out{};    ///< curves on file that are of other settings or data, and do not count
  std::string baselines{};   ///< baselines of the test split, as text
  int code = 0;              ///< exit code of a failed run
};

/// What a reproduction has given so far.
struct Reproduction {
  std::vector<Cell> cells;         ///< in the order of columns, then rows
  std::vector<Cell> averages;      ///< means of the rows over all columns; `ours` empty: a column is missing
  std::optional<Stopped> stopped;  ///< a signal or the budget ended it before its end
  int64_t runs = 0;                ///< trainings, or measured cells, that were wanted
  int64_t done = 0;                ///< wanted trainings, or measured cells, that have scores

  /// Cells, then averages.
  std::vector<const Cell*> lines() const;
};

/// True if a pattern (ROW, COLUMN or ROW/COLUMN, case-insensitive) matches this cell.
bool names_cell(const std::string& pattern, const PublishedRow& row, const PublishedColumn& column);

/// Runs the wanted cells in the folder of the options; reuses existing runs. Writes curves, pictures and a
/// page into results_folder() while it goes on. Fault::file before anything runs when --data does not exist.
Reproduction reproduce(const PublishedTable& table, const ReproductionOptions& options);

/// The rows' averages over the columns of a table of accuracies; none for other tables and for one column.
std::vector<Cell> averages_of(const PublishedTable& table, const std::vector<Cell>& cells);

/// "37.2 ± 2.2 of 2,000" where the error of the test set is known, else the mean with the deviation over
/// seeds.
std::string ours_text(const Cell& cell);
/// What stands behind the verdict: validation scores, changed settings and remarks.
std::string note_text(const Cell& cell);
/// A sentence that explains the verdicts; empty where no cell has one.
std::string verdict_words(const PublishedTable& table, const Reproduction& result);
/// A table as text: name, source, one line per cell and average, then the baselines, one line per group of
/// cells.
std::string reproduction_text(const PublishedTable& table, const Reproduction& result);
/// CSV with one line per cell and average: name, paper, mean, deviation, seeds, error, examples, verdict,
/// remark, validation, changed, baselines.
std::string reproduction_csv(const Reproduction& result);

}  // namespace heed

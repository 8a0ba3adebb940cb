// Reproduces published tables: chooses cells, estimates their time, runs and judges them.
#pragma once

#include <cmath>
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
  /// Patterns ROW, COLUMN or ROW/COLUMN of cells to run however long they take; empty: all below the limit.
  std::vector<std::string> rows{};
  int64_t seeds = 1;       ///< runs of each cell, with seeds 1, 2, ...
  double limit = 600;      ///< maximum predicted seconds of a cell that `rows` does not name
  bool page_only = false;  ///< runs and estimates nothing: writes the page of what is there
  std::map<std::string, std::string> data{};  ///< argument of --data, by the column's name
  ComparisonOptions runs;                     ///< folder of the runs, machine options, quiet, budget
  Path results{};  ///< folder of curves, pictures and page; empty: `results` in runs.folder
  /// Applies the settings of the command line, and those of a point of the table's grid, to the settings of a
  /// run.
  std::function<void(Config&, const GridPoint&)> adjust = [](Config&, const GridPoint&) {};
  std::string adjusted{};   ///< these settings as typed, for the header of curves: "--steps 100"
  int64_t max_length = 0;   ///< longest sequence of a crossover; 0: twice the paper's crossover
  Path run{};               ///< run of the trained language model, for Measure::swapped
  int64_t max_windows = 0;  ///< windows of each portion of the text, for Measure::swapped; 0: all

  /// `results`, or its default.
  Path results_folder() const { return results.empty() ? runs.folder / "results" : results; }
};

/// The published value of a cell of a table, and ours.
struct CellResult {
  std::string name;                    ///< ROW/COLUMN
  double paper = 0;                    ///< the paper's value; NaN: none
  Spread ours{};                       ///< our value in the paper's unit; empty where `remark` says why
  double error = 0;                    ///< two standard errors of the test set; 0: not known
  int64_t examples = 0;                ///< test examples of a run; 0: not known
  Verdict verdict = Verdict::unknown;  ///< verdict on our value beside the paper's
  std::string baseline{};    ///< the best baseline that ours reaches, or the lowest of all: "majority 17.2"
  std::string validation{};  ///< validation scores of the tested, the best and the last checkpoint
  std::string changed{};     ///< settings that differ from the recipe's
  std::string setting{};   ///< best point of the table's grid, and whether it is at the edge; empty: no grid
  bool has_begun = false;  ///< whether a run of the cell has begun, here or on file
  int64_t open_runs = 0;   ///< number of its runs that have no scores yet
  int64_t step = 0;        ///< steps that these runs have taken
  int64_t steps = 0;       ///< steps of these runs in all; 0: unknown
  double seconds = 0;      ///< seconds of training of the steps taken; NaN: unknown
  double estimate = NAN;   ///< estimated seconds of its trainings on this machine; NaN: not estimated
  std::string remark{};    ///< why there is no value, or what differs from the paper
  std::string ignored_curves{};  ///< curves on file that do not count, having other settings or data
  std::string baselines{};       ///< baselines of the test split, as text
  int code = 0;                  ///< exit code of a failed run
};

/// The results of a reproduction as far as it has come.
struct Reproduction {
  std::vector<CellResult> cells;  ///< in the order of columns, then rows
  std::vector<CellResult>
      averages;                    ///< means of the rows over all columns; `ours` empty: a column is missing
  std::optional<Stopped> stopped;  ///< set when a signal or the budget ended it early
  int64_t runs = 0;                ///< number of trainings, or of cells to measure
  int64_t done = 0;                ///< number of those trainings or cells that have scores

  /// Cells, then averages.
  std::vector<const CellResult*> lines() const;
};

/// True if a pattern (ROW, COLUMN or ROW/COLUMN, case-insensitive) matches this cell.
bool names_cell(const std::string& pattern, const PublishedRow& row, const PublishedColumn& column);

/// Runs the cells that the options ask for in runs.folder; reuses existing runs. Updates curves, pictures and
/// page in results_folder() after each run. Fault::file before anything runs when --data does not exist.
Reproduction reproduce(const PublishedTable& table, const ReproductionOptions& options);

/// The rows' averages over the columns of a table of accuracies; none for other tables and for one column.
std::vector<CellResult> averages_of(const PublishedTable& table, const std::vector<CellResult>& cells);

/// "37.2 ± 2.2 of 2,000" where the error of the test set is known, else the mean with the deviation over
/// seeds.
std::string ours_text(const CellResult& cell);
/// The grounds of the verdict: changed settings, best point of a grid, validation scores and remarks.
std::string note_text(const CellResult& cell);
/// A sentence that says which settings each cell is the best of; empty for a table without a grid.
std::string grid_words(const PublishedTable& table);
/// A sentence that explains the verdicts, or why there are none; empty where no cell has one.
std::string verdict_words(const PublishedTable& table, const Reproduction& result);
/// A table as text: name, source, one line per cell and average, then the baselines, one line per group of
/// cells.
std::string reproduction_text(const PublishedTable& table, const Reproduction& result);
/// CSV with one line per cell and average: name, paper, mean, deviation, seeds, error, examples, verdict,
/// remark, validation, changed, setting, baselines.
std::string reproduction_csv(const Reproduction& result);

}  // namespace heed

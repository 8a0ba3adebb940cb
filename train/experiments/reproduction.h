// Reproduces published tables: chooses cells, estimates their time, runs and judges them.
#pragma once

#include <map>
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
  ComparisonOptions place;                    ///< folder, machine options, quiet
};

/// One published value and ours.
struct Cell {
  std::string name;                    ///< ROW/COLUMN
  double paper = 0;                    ///< NaN: none
  Spread ours{};                       ///< in the paper's unit; empty where `remark` says why
  Verdict verdict = Verdict::unknown;  ///< of ours on the paper's
  std::string remark{};                ///< why there is no value, or what differs from the paper
  std::string baselines{};             ///< baselines of the test split, as text
  int code = 0;                        ///< exit code of a failed run
};

/// True if a pattern (ROW, COLUMN or ROW/COLUMN, case-insensitive) matches this cell.
bool names_cell(const std::string& pattern, const PublishedRow& row, const PublishedColumn& column);

/// Runs the wanted cells in the folder of the options; reuses existing runs. Throws Stopped like make_runs(),
/// and Fault::file before anything runs when --data does not exist.
std::vector<Cell> reproduce(const PublishedTable& table, const ReproductionOptions& options);

/// A table as text: name, source, one line per cell, then the baselines, one line per group of cells.
std::string reproduction_text(const PublishedTable& table, const std::vector<Cell>& cells);
/// CSV with one line per cell: name, paper, mean, deviation, seeds, verdict, remark, `baselines` (baselines).
std::string reproduction_csv(const std::vector<Cell>& cells);

}  // namespace heed

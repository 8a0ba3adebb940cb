// Published tables run again: which cells, what they would take, what came out.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "train/comparison_plan.h"
#include "train/published.h"

namespace heed {

/// How a table is run again.
struct ReproductionOptions {
  std::vector<std::string>
      rows{};  ///< ROW, COLUMN or ROW/COLUMN that are wanted however long; empty: all that fit
  int64_t seeds = 1;
  double limit = 600;                         ///< seconds of one cell that are not asked for by name
  std::map<std::string, std::string> data{};  ///< column -> what --data would give
  ComparisonOptions place;
};

/// One value of a table beside ours.
struct Cell {
  std::string name;  ///< ROW/COLUMN
  double paper = 0;  ///< NaN: none
  Spread ours{};     ///< in the paper's unit; of no runs where `remark` says why
  Verdict verdict = Verdict::unknown;
  std::string remark{};   ///< why there is nothing, or what differs from the paper
  std::string anchors{};  ///< what little knowledge scores on the test data, in words
  int code = 0;           ///< what a run of it failed with, as an exit code
};

/// Whether a pattern (ROW, COLUMN or ROW/COLUMN, in any case of letters) means this cell.
bool names_cell(const std::string& pattern, const PublishedRow& row, const PublishedColumn& column);

/// Runs what is wanted and fits, in the folder of the options: nothing twice. Throws Stopped as make_runs
/// does, and Fault::file before anything runs when data are not where --data says.
std::vector<Cell> reproduce(const PublishedTable& table, const ReproductionOptions& options);

/// Name, source, one line a cell, and below them what little knowledge scores, a line for the cells of which
/// it is known.
std::string reproduction_text(const PublishedTable& table, const std::vector<Cell>& cells);
/// One line a cell: name, paper, mean, deviation, seeds, verdict, remark, anchors.
std::string reproduction_csv(const std::vector<Cell>& cells);

}  // namespace heed

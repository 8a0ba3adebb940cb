// Runs the cells of a published table, and averages them.
#include "heed/train/experiments/reproduction.h"

#include <algorithm>
#include <cmath>

#include "heed/core/io/files.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/tasks/find_data.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

void check_data(const PublishedTable& table, const ReproductionOptions& options) {
  for (const auto& [column, path] : options.data) {
    const bool known =
        std::any_of(table.columns.begin(), table.columns.end(),
                    [&, &wanted = column](const PublishedColumn& one) { return one.name == wanted; });
    if (!known) {
      std::vector<std::string> columns;
      for (const PublishedColumn& one : table.columns) columns.push_back(one.name);
      fail("--data ", column, "=", path, ": ", table.name, " has no column ", column, ".",
           suggestion(column, columns));
    }
    find_data(path);
  }
}

/// Measures the cells of a table that needs no training.
void measure_cells(const PublishedTable& table, const ReproductionOptions& options,
                   std::vector<PlannedCell>& all, Reproduction& result) {
  try {
    if (table.measure == Measure::steps_per_second)
      time_cells(table, options, all);
    else if (table.measure == Measure::map_distance)
      distance_cells(table, options, all);
    else if (table.measure == Measure::swapped)
      swap_cells(table, options, all);
    else
      cross_cells(table, options, all);
  } catch (const Stopped& stopped) {
    result.stopped = stopped;
  }
  for (PlannedCell& planned : all) {
    if (runs(planned)) ++result.runs;
    if (planned.cell.ours.count > 0) ++result.done;
    set_verdict(table, options, planned, planned.cell);
    result.cells.push_back(planned.cell);
  }
  write_page({table, options, all, {}}, result);
}

/// The average of a row whose cells have values in all columns; else only the paper's.
Cell average_of(const PublishedTable& table, const PublishedRow& row, const std::vector<Cell>& cells) {
  Cell out{.name = row.name + "/average", .paper = 0};
  const auto count = static_cast<double>(table.columns.size());
  double ours = 0, squares = 0, seeds = INFINITY;
  bool complete = true, judged = true;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    out.paper += row.values[i] / count;  // NaN where one is missing
    const std::string name = row.name + "/" + table.columns[i].name;
    const auto cell =
        std::find_if(cells.begin(), cells.end(), [&](const Cell& one) { return one.name == name; });
    complete = complete && cell != cells.end() && cell->ours.count > 0;
    if (!complete) continue;
    judged = judged && cell->verdict != Verdict::unknown;
    ours += cell->ours.mean / count;
    squares += cell->error * cell->error;
    seeds = std::min(seeds, static_cast<double>(cell->ours.count));
  }
  if (!complete) return out;
  out.ours = {ours, 0, static_cast<int64_t>(seeds)};
  out.error = std::sqrt(squares) / count;
  if (judged)
    out.verdict = verdict_on(table, out.paper, ours, out.error);
  else
    out.remark = "not all columns can be compared with the paper's";
  return out;
}

}  // namespace

std::vector<Cell> averages_of(const PublishedTable& table, const std::vector<Cell>& cells) {
  std::vector<Cell> out;
  if (table.measure != Measure::accuracy || table.columns.size() < 2) return out;
  for (const PublishedRow& row : table.rows) {
    const bool wanted = std::any_of(cells.begin(), cells.end(),
                                    [&](const Cell& cell) { return cell.name.starts_with(row.name + "/"); });
    if (wanted) out.push_back(average_of(table, row, cells));
  }
  return out;
}

Reproduction reproduce(const PublishedTable& table, const ReproductionOptions& options) {
  check_data(table, options);
  std::vector<PlannedCell> all = wanted_cells(table, options);
  Reproduction result;
  if (trains(table.measure))
    train_cells(table, options, all, result);
  else
    measure_cells(table, options, all, result);
  return result;
}

}  // namespace heed

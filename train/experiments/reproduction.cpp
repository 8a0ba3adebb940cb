// Reproduces a table: trains or measures its cells, and averages rows over columns.
#include "heed/train/experiments/reproduction.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/core/io/files.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/tasks/find_data.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

/// Fails if --data names a column that the table does not have, or a file that is not found.
void check_data(const PublishedTable& table, const ReproductionOptions& options) {
  std::vector<std::string> columns;
  for (const PublishedColumn& column : table.columns) columns.push_back(column.name);
  for (const auto& [column, path] : options.data) {
    if (std::ranges::count(columns, column) == 0)
      fail("--data ", column, "=", path, ": ", table.name, " has no column ", column, ".",
           suggestion(column, columns));
    find_data(path);
  }
}

/// Measures and judges the cells of a table whose measure trains no models.
void measure_cells(const PublishedTable& table, const ReproductionOptions& options,
                   std::vector<PlannedCell>& all, Reproduction& result) {
  try {
    if (table.measure == Measure::steps_per_second)
      measure_speeds(table, options, all);
    else if (table.measure == Measure::map_distance)
      measure_map_distances(table, options, all);
    else if (table.measure == Measure::score_gradient)
      measure_score_gradients(table, options, all);
    else if (table.measure == Measure::swapped)
      measure_swapped_attention(table, options, all);
    else
      measure_crossovers(table, options, all);
  } catch (const Stopped& stopped) {
    result.stopped = stopped;
  }
  for (PlannedCell& planned : all) {
    if (can_run(planned)) ++result.runs;
    if (planned.result.ours.count > 0) ++result.done;
    set_verdict(table, options, planned, planned.result);
    result.cells.push_back(planned.result);
  }
  write_page({table, options, all, {}}, result);
}

/// The average of a row over all columns: of the paper's values, and of ours if every cell has one.
CellResult average_of(const PublishedTable& table, const PublishedRow& row,
                      const std::vector<CellResult>& cells) {
  CellResult average{.name = row.name + "/average", .paper = 0};
  const auto num_columns = static_cast<double>(table.columns.size());
  double ours = 0, squared_errors = 0;
  int64_t min_seeds = std::numeric_limits<int64_t>::max();
  bool is_complete = true, is_judged = true;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    average.paper += row.values[i] / num_columns;  // NaN where one is missing
    const auto cell = std::ranges::find(cells, row.name + "/" + table.columns[i].name, &CellResult::name);
    is_complete = is_complete && cell != cells.end() && cell->ours.count > 0;
    if (!is_complete) continue;
    is_judged = is_judged && cell->verdict != Verdict::unknown;
    ours += cell->ours.mean / num_columns;
    squared_errors += cell->error * cell->error;
    min_seeds = std::min(min_seeds, cell->ours.count);
  }
  if (!is_complete) return average;
  average.ours = {.mean = ours, .count = min_seeds};
  average.error = std::sqrt(squared_errors) / num_columns;
  if (is_judged)
    average.verdict = verdict_on(table, average.paper, ours, average.error);
  else
    average.remark = "not all columns can be compared with the paper's";
  return average;
}

}  // namespace

std::vector<CellResult> averages_of(const PublishedTable& table, const std::vector<CellResult>& cells) {
  std::vector<CellResult> averages;
  if (table.measure != Measure::accuracy || table.columns.size() < 2) return averages;
  for (const PublishedRow& row : table.rows) {
    if (std::ranges::any_of(cells,
                            [&](const CellResult& cell) { return cell.name.starts_with(row.name + "/"); }))
      averages.push_back(average_of(table, row, cells));
  }
  return averages;
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

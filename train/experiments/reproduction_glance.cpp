// A published table at a glance: what is done, begun and open, each beside the paper's value.
#include <algorithm>
#include <cmath>

#include "heed/attention/variant.h"
#include "heed/core/io/number_text.h"
#include "heed/core/io/table_text.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/progress/progress.h"
#include "heed/train/run/csv.h"

namespace heed {
namespace {

/// A cell of the whole table, whether this call asked for it or not.
struct GlanceCell {
  PlannedCell planned;            ///< its row and column, and the paper's value
  const char* state = "open";     ///< done, begun, failed, open, or none: there is nothing to run for it
  const CellResult* result = {};  ///< null: no run has begun, and this call did not ask for it
  double seconds_left = NAN;      ///< expected seconds until its runs have ended; NaN: unknown
};

/// The state of a cell by its runs, as GlanceCell::state has it.
const char* state_of(const CellResult& result) {
  const bool has_scores =
      result.ours.count > 0 || result.verdict != Verdict::unknown || !result.validation.empty();
  if (has_scores && result.open_runs == 0) return "done";
  if (has_scores || result.has_begun) return "begun";
  return result.code != 0 ? "failed" : "open";
}

/// The expected seconds until the runs of a cell have ended, at the speed that they had; NaN: unknown.
double seconds_left_of(const CellResult& result) {
  if (result.open_runs == 0) return result.estimate;
  if (result.step == 0 || result.steps < result.step) return NAN;
  return result.seconds / static_cast<double>(result.step) * static_cast<double>(result.steps - result.step);
}

/// The cell of a row and a column, with what is known of it in `all`.
GlanceCell glance_at(const PublishedTable& table, const Reproduction& all, const PublishedRow& row,
                     size_t column_index) {
  GlanceCell cell{.planned = PlannedCell::of(table, row, column_index)};
  const auto found = std::ranges::find(all.cells, cell.planned.result.name, &CellResult::name);
  const std::string& spec = row.attention_on(*cell.planned.column);
  if (found != all.cells.end()) {
    cell.result = &*found;
    cell.state = state_of(*found);
    cell.seconds_left = std::string_view(cell.state) == "done" ? 0 : seconds_left_of(*found);
  }
  if (std::string_view(cell.state) == "open" && (spec.empty() || !why_unknown(spec).empty()))
    cell.state = "none";
  return cell;
}

/// "36.5 ± 2.2 of 2,000 (38.37), below", "begun, step 1,200 of 50,000, 3:20:00 left (38.37)", "open, 5:00:00
/// (38.37)".
std::string cell_text(const GlanceCell& cell) {
  const CellResult none;
  const CellResult& result = cell.result != nullptr ? *cell.result : none;
  std::string words = ours_text(result);
  if (std::string_view(cell.state) != "done") picture::append_part(words, cell.state, ", ");
  if (words.empty()) words = cell.state;
  if (result.step > 0) words += text(", step ", grouped(result.step));
  if (result.step > 0 && result.steps >= result.step) words += text(" of ", grouped(result.steps));
  if (cell.seconds_left > 0)
    words += text(", ", clock_text(cell.seconds_left), result.step > 0 ? " left" : "");
  if (std::isfinite(cell.planned.result.paper))
    words += text(" (", picture::fixed(cell.planned.result.paper, 2), ")");
  if (result.verdict != Verdict::unknown) words += text(", ", to_string(result.verdict));
  return words;
}

/// One line of the CSV for a cell; numbers that are not known are left empty.
std::string csv_line(const GlanceCell& cell) {
  const CellResult none;
  const CellResult& result = cell.result != nullptr ? *cell.result : none;
  const bool is_done = result.ours.count > 0;
  const auto number = [](double value) { return std::isfinite(value) ? exact_number(value) : ""; };
  const auto value = [&](double of_ours) { return is_done ? number(of_ours) : ""; };
  return text(csv_name(cell.planned.row->name), ",", csv_name(cell.planned.column->name), ",", cell.state,
              ",", number(cell.planned.result.paper), ",", value(result.ours.mean), ",",
              value(result.ours.deviation), ",", result.ours.count, ",", value(result.error), ",",
              to_string(result.verdict), ",", result.step, ",", result.steps, ",",
              number(std::round(cell.seconds_left)), "\n");
}

}  // namespace

std::string draw_glance(const PageInput& input, const Reproduction& result) {
  const PublishedTable& table = input.table;
  if (!trains(table.measure)) return "";
  std::vector<std::string> heading{""};
  for (const PublishedColumn& column : table.columns) heading.push_back(markdown_escaped(column.name));
  std::string lines = table_line(heading) + "|---|";
  for (size_t i = 0; i < table.columns.size(); ++i) lines += "---|";
  lines += "\n";
  std::string csv = "row,column,state,paper,ours,deviation,seeds,error,verdict,step,steps,seconds_left\n";
  for (const PublishedRow& row : table.rows) {
    std::vector<std::string> cells{markdown_escaped(row.name)};
    for (size_t i = 0; i < table.columns.size(); ++i) {
      const GlanceCell cell = glance_at(table, result, row, i);
      cells.push_back(cell_text(cell));
      csv += csv_line(cell);
    }
    lines += table_line(cells);
  }
  const std::string file = input.write_file("", "cells.csv", csv);
  return text(
      "## At a glance\n\n", lines, "\n",
      wrapped(text(
          "Values in parentheses are the paper's. A cell is done where all of its runs have scores, begun "
          "where some have taken steps, failed where a run ended with an error, and open before; *none*: "
          "the program has nothing to run for it. Times are those until its trainings end: of begun cells "
          "at the speed that they had, of open ones where this machine has estimated it. The same as CSV: [",
          file, "](", file, ").")),
      "\n");
}

}  // namespace heed

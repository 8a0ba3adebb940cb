// The results of a reproduction as text for the terminal and as CSV.
#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/number_text.h"
#include "heed/core/io/table_text.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/run/csv.h"

namespace heed {
namespace {

/// The tolerance of a table's verdicts: "1 points", "10 % of it"; empty for a table without one.
std::string tolerance_text(const PublishedTable& table) {
  if (!(table.tolerance > 0)) return "";
  const MeasureTraits& traits = traits_of(table.measure);
  if (traits.is_relative) return text(100 * table.tolerance, " % of it");
  return text(table.tolerance, table.tolerance == 1 ? traits.tolerance_of_one : traits.tolerance_unit);
}

}  // namespace

std::vector<const CellResult*> Reproduction::lines() const {
  std::vector<const CellResult*> lines;
  for (const CellResult& cell : cells) lines.push_back(&cell);
  for (const CellResult& average : averages) lines.push_back(&average);
  return lines;
}

std::string grid_words(const PublishedTable& table) {
  if (table.grid.empty()) return "";
  return text("Each cell has the best of ", table.points.size(),
              " settings by validation, those of the grid ", table.grid, ".");
}

std::string verdict_words(const PublishedTable& table, const Reproduction& result) {
  if (!table.no_verdict.empty()) return text("No verdicts: ", table.no_verdict, ".");
  const bool is_judged = std::ranges::any_of(
      result.lines(), [](const CellResult* cell) { return cell->verdict != Verdict::unknown; });
  if (!is_judged) return "";
  const std::string tolerance = tolerance_text(table);
  return text("Verdicts: reproduced, where ours is no further from the paper's value than ",
              tolerance.empty() ? "" : tolerance + " or ",
              "its own error (two standard errors of the test set, or the deviation over seeds)",
              tolerance.empty() ? "" : ", whichever is larger", "; else better or below.");
}

std::string ours_text(const CellResult& cell) {
  if (cell.ours.count == 0) return cell.name.ends_with("/average") ? "-" : "";
  if (!(cell.error > 0)) return to_string(cell.ours);
  std::string out = picture::fixed(cell.ours.mean, 1) + " \u00b1 " + picture::fixed(cell.error, 1);
  if (cell.examples > 0) out += " of " + grouped(cell.examples);
  return out;
}

std::string note_text(const CellResult& cell) {
  const bool has_run = cell.ours.count > 0 || !cell.validation.empty() || cell.has_begun;
  std::string note = cell.changed.empty() || !has_run ? "" : "changed: " + cell.changed;
  for (const std::string* part : {&cell.setting, &cell.validation, &cell.remark, &cell.ignored_curves})
    picture::append_part(note, *part);
  return note;
}

std::string reproduction_text(const PublishedTable& table, const Reproduction& result) {
  const std::vector<const CellResult*> lines = result.lines();
  const bool has_baselines =
      std::ranges::any_of(lines, [](const CellResult* cell) { return !cell->baseline.empty(); });
  std::vector<TableRow> rows{{"", "paper", "ours", "baseline", "verdict"}};
  const int64_t columns = output_columns();
  std::string notes;
  for (const CellResult* cell : lines) {
    rows.push_back({cell->name, std::isfinite(cell->paper) ? formatted("%.5g", cell->paper) : "",
                    ours_text(*cell), cell->baseline, to_string(cell->verdict)});
    if (const std::string note = note_text(*cell); !note.empty())
      notes += folded(cell->name + ": " + note, columns, "    ");
  }
  if (!has_baselines) {
    for (TableRow& row : rows) row.erase(row.begin() + 3);  // the column "baseline"
  }
  std::string out = folded(text(table.name, ": ", table.about), columns) + folded(table.source, columns) +
                    "\n" + aligned_table(rows, {.alignment = has_baselines ? "lrrrl" : "lrrl"});
  if (!notes.empty()) out += "\n" + notes;
  for (const std::string& words : {grid_words(table), verdict_words(table, result)}) {
    if (!words.empty()) out += "\n" + folded(words, columns);
  }
  std::map<std::string, std::string> cells_by_baselines;  // names of cells by the text of their baselines
  for (const CellResult& cell : result.cells) {
    if (!cell.baselines.empty()) picture::append_part(cells_by_baselines[cell.baselines], cell.name, ", ");
  }
  for (const auto& [baselines, names] : cells_by_baselines)
    out += folded(text("baselines of ", names, ": ", baselines), columns, "    ");
  return out;
}

std::string reproduction_csv(const Reproduction& result) {
  std::string csv =
      "cell,paper,mean,deviation,seeds,error,examples,verdict,remark,validation,changed,setting,baselines\n";
  const auto number_if = [](bool is_known, const auto& number) { return is_known ? text(number) : ""; };
  for (const CellResult* cell : result.lines()) {
    const bool has_value = cell->ours.count > 0;
    std::string remark = cell->remark;
    picture::append_part(remark, cell->ignored_curves);
    csv += text(csv_name(cell->name), ",", number_if(std::isfinite(cell->paper), cell->paper), ",",
                number_if(has_value, cell->ours.mean), ",", number_if(has_value, cell->ours.deviation), ",",
                cell->ours.count, ",", number_if(cell->error > 0, cell->error), ",",
                number_if(cell->examples > 0, cell->examples), ",", to_string(cell->verdict), ",",
                csv_text(remark), ",", csv_text(cell->validation), ",", csv_text(cell->changed), ",",
                csv_text(cell->setting), ",", csv_text(cell->baselines), "\n");
  }
  return csv;
}

}  // namespace heed

// A reproduction as text and as CSV.
#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/number_text.h"
#include "heed/core/io/table_text.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/run/csv.h"

namespace heed {
namespace {

std::string paper_text(const Cell& cell) {
  return std::isfinite(cell.paper) ? formatted("%.5g", cell.paper) : "";
}

/// How far a value may be from the paper's: "1 points", "10 % of it"; empty where only its own error counts.
std::string tolerance_text(const PublishedTable& table) {
  const MeasureTraits& traits = traits_of(table.measure);
  if (!(table.tolerance > 0)) return "";
  if (traits.is_relative) return text(100 * table.tolerance, " % of it");
  return text(table.tolerance, table.tolerance == 1 ? traits.tolerance_of_one : traits.tolerance_unit);
}

}  // namespace

std::vector<const Cell*> Reproduction::lines() const {
  std::vector<const Cell*> out;
  for (const std::vector<Cell>* list : {&cells, &averages}) {
    for (const Cell& one : *list) out.push_back(&one);
  }
  return out;
}

std::string verdict_words(const PublishedTable& table, const Reproduction& result) {
  const std::vector<const Cell*> lines = result.lines();
  const bool judged = std::any_of(lines.begin(), lines.end(),
                                  [](const Cell* one) { return one->verdict != Verdict::unknown; });
  if (!judged) return "";
  const std::string tolerance = tolerance_text(table);
  return text("Verdicts: reproduced, where ours is no further from the paper's value than ",
              tolerance.empty() ? "" : tolerance + " or ",
              "its own error (two standard errors of the test set, or the deviation over seeds)",
              tolerance.empty() ? "" : ", whichever is larger", "; else better or below.");
}

std::string ours_text(const Cell& cell) {
  if (cell.ours.count == 0) return cell.name.ends_with("/average") ? "-" : "";
  if (!(cell.error > 0)) return to_string(cell.ours);
  std::string out = picture::fixed(cell.ours.mean, 1) + " \u00b1 " + picture::fixed(cell.error, 1);
  if (cell.examples > 0) out += " of " + grouped(cell.examples);
  return out;
}

std::string note_text(const Cell& cell) {
  const bool has_run = cell.ours.count > 0 || !cell.validation.empty() || cell.begun;
  std::string out = cell.changed.empty() || !has_run ? "" : "changed: " + cell.changed;
  for (const std::string* part : {&cell.validation, &cell.remark, &cell.left_out})
    picture::append_part(out, *part);
  return out;
}

std::string reproduction_text(const PublishedTable& table, const Reproduction& result) {
  const std::vector<const Cell*> lines = result.lines();
  const bool has_baselines =
      std::any_of(lines.begin(), lines.end(), [](const Cell* one) { return !one->baseline.empty(); });
  std::vector<TableRow> rows{{"", "paper", "ours", "baseline", "verdict"}};
  if (!has_baselines) rows[0].erase(rows[0].begin() + 3);
  for (const Cell* one : lines) {
    rows.push_back({one->name, paper_text(*one), ours_text(*one)});
    if (has_baselines) rows.back().push_back(one->baseline);
    rows.back().emplace_back(to_string(one->verdict));
  }
  const int64_t columns = output_columns();
  std::string out = folded(text(table.name, ": ", table.about), columns) + folded(table.source, columns) +
                    "\n" + aligned_table(rows, {.alignment = has_baselines ? "lrrrl" : "lrrl"});
  std::string notes;
  for (const Cell* one : lines) {
    if (const std::string note = note_text(*one); !note.empty())
      notes += folded(one->name + ": " + note, columns, "    ");
  }
  if (!notes.empty()) out += "\n" + notes;
  if (const std::string words = verdict_words(table, result); !words.empty())
    out += "\n" + folded(words, columns);
  std::map<std::string, std::string> cells_by_baselines;  // by text
  for (const Cell& one : result.cells) {
    if (!one.baselines.empty()) picture::append_part(cells_by_baselines[one.baselines], one.name, ", ");
  }
  for (const auto& [words, names] : cells_by_baselines)
    out += folded(text("baselines of ", names, ": ", words), columns, "    ");
  return out;
}

std::string reproduction_csv(const Reproduction& result) {
  std::string out =
      "cell,paper,mean,deviation,seeds,error,examples,verdict,remark,validation,changed,baselines\n";
  const auto number_if = [](bool is_known, const auto& number) { return is_known ? text(number) : ""; };
  for (const Cell* one : result.lines()) {
    const bool has_value = one->ours.count > 0;
    std::string remark = one->remark;
    picture::append_part(remark, one->left_out);
    out += text(csv_name(one->name), ",", number_if(std::isfinite(one->paper), one->paper), ",",
                number_if(has_value, one->ours.mean), ",", number_if(has_value, one->ours.deviation), ",",
                one->ours.count, ",", number_if(one->error > 0, one->error), ",",
                number_if(one->examples > 0, one->examples), ",", to_string(one->verdict), ",",
                csv_text(remark), ",", csv_text(one->validation), ",", csv_text(one->changed), ",",
                csv_text(one->baselines), "\n");
  }
  return out;
}

}  // namespace heed

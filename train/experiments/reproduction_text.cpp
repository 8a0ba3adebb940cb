// A reproduction as text and as CSV.
#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/number_text.h"
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
  std::string out =
      wrapped(text(table.name, ": ", table.about), "", 80) + wrapped(table.source, "", 80) + "\n";
  const std::vector<const Cell*> lines = result.lines();
  int64_t label_width = 12, baseline_width = 0;
  for (const Cell* one : lines) {
    label_width = std::max(label_width, static_cast<int64_t>(one->name.size()) + 2);
    if (!one->baseline.empty())
      baseline_width =
          std::max({baseline_width, static_cast<int64_t>(one->baseline.size()) + 2, int64_t{10}});
  }
  const auto right = [](const std::string& words, int64_t columns) {
    return picture::padded(words, columns, picture::Align::right);
  };
  out += std::string(static_cast<size_t>(label_width), ' ') + right("paper", 10) + right("ours", 22) +
         right(baseline_width > 0 ? "baseline" : "", baseline_width) + "  verdict\n";
  for (const Cell* one : lines) {
    const std::string note = note_text(*one);
    out += picture::line_without_blanks(
        picture::padded(one->name, label_width) + right(paper_text(*one), 10) + right(ours_text(*one), 22) +
        right(one->baseline, baseline_width) + "  " + to_string(one->verdict));
    if (!note.empty()) out += "    " + wrapped(note, "    ", 76);
  }
  if (const std::string words = verdict_words(table, result); !words.empty())
    out += "\n" + wrapped(words, "", 80);
  std::map<std::string, std::string> cells_by_baselines;
  for (const Cell& one : result.cells) {
    if (!one.baselines.empty()) picture::append_part(cells_by_baselines[one.baselines], one.name, ", ");
  }
  for (const auto& [words, names] : cells_by_baselines)
    out += text("baselines of ", names, ": ", words, "\n");
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

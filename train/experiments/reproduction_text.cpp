// A reproduction as text and as CSV.
#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/number_text.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/run/csv.h"

namespace heed {
namespace {

std::string padded(const std::string& words, size_t columns, bool right) {
  const auto used = static_cast<size_t>(picture::display_width(words));
  const std::string blanks(used < columns ? columns - used : 0, ' ');
  return right ? blanks + words : words + blanks;
}

std::string paper_text(const Cell& cell) {
  return std::isfinite(cell.paper) ? formatted("%.5g", cell.paper) : "";
}

/// Cells, then averages.
std::vector<const Cell*> lines_of(const Reproduction& result) {
  std::vector<const Cell*> out;
  for (const std::vector<Cell>* list : {&result.cells, &result.averages}) {
    for (const Cell& one : *list) out.push_back(&one);
  }
  return out;
}

/// How far a value may be from the paper's: "1 points", "10 % of it"; empty where only its own error counts.
std::string tolerance_text(const PublishedTable& table) {
  if (!(table.tolerance > 0)) return "";
  switch (table.measure) {
    case Measure::accuracy:
    case Measure::bleu:
      return text(table.tolerance, table.tolerance == 1 ? " point" : " points");
    case Measure::loss:
      return text(table.tolerance, " nats");
    case Measure::crossover:
    case Measure::map_distance:
    case Measure::steps_per_second:
      return text(100 * table.tolerance, " % of it");
    default:
      return text(table.tolerance);
  }
}

}  // namespace

std::string verdict_words(const PublishedTable& table, const Reproduction& result) {
  const std::vector<const Cell*> lines = lines_of(result);
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
  std::string out;
  const auto add = [&](const std::string& words) {
    if (!words.empty()) out += (out.empty() ? "" : "; ") + words;
  };
  const bool ran = cell.ours.count > 0 || !cell.validation.empty() || cell.begun;
  add(cell.changed.empty() || !ran ? "" : "changed: " + cell.changed);
  add(cell.validation);
  add(cell.remark);
  add(cell.left_out);
  return out;
}

std::string reproduction_text(const PublishedTable& table, const Reproduction& result) {
  std::string out =
      wrapped(text(table.name, ": ", table.about), "", 80) + wrapped(table.source, "", 80) + "\n";
  const std::vector<const Cell*> lines = lines_of(result);
  size_t label_width = 12, baseline_width = 0;
  for (const Cell* one : lines) {
    label_width = std::max(label_width, one->name.size() + 2);
    if (!one->baseline.empty()) baseline_width = std::max(baseline_width, one->baseline.size() + 2);
  }
  if (baseline_width > 0) baseline_width = std::max<size_t>(baseline_width, 10);
  out += std::string(label_width, ' ') + padded("paper", 10, true) + padded("ours", 22, true) +
         padded(baseline_width > 0 ? "baseline" : "", baseline_width, true) + "  verdict\n";
  for (const Cell* one : lines) {
    const std::string note = note_text(*one);
    std::string line = padded(one->name, label_width, false) + padded(paper_text(*one), 10, true) +
                       padded(ours_text(*one), 22, true) + padded(one->baseline, baseline_width, true) +
                       "  " + to_string(one->verdict);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n" + (note.empty() ? "" : "    " + wrapped(note, "    ", 76));
  }
  if (const std::string words = verdict_words(table, result); !words.empty())
    out += "\n" + wrapped(words, "", 80);
  std::map<std::string, std::string> anchored;  // by text
  for (const Cell& one : result.cells) {
    if (one.baselines.empty()) continue;
    std::string& names = anchored[one.baselines];
    names += (names.empty() ? "" : ", ") + one.name;
  }
  for (const auto& [words, names] : anchored) out += text("baselines of ", names, ": ", words, "\n");
  return out;
}

std::string reproduction_csv(const Reproduction& result) {
  std::string out =
      "cell,paper,mean,deviation,seeds,error,examples,verdict,remark,validation,changed,baselines\n";
  for (const Cell* one : lines_of(result)) {
    out += csv_name(one->name) + ",";
    if (std::isfinite(one->paper)) out += text(one->paper);
    out += ",";
    if (one->ours.count > 0)
      out += text(one->ours.mean, ",", one->ours.deviation);
    else
      out += ",";
    out += text(",", one->ours.count, ",");
    if (one->error > 0) out += text(one->error);
    out += ",";
    if (one->examples > 0) out += text(one->examples);
    const bool both = !one->remark.empty() && !one->left_out.empty();
    out += text(",", to_string(one->verdict), ",", csv_text(one->remark + (both ? "; " : "") + one->left_out),
                ",", csv_text(one->validation), ",", csv_text(one->changed), ",", csv_text(one->baselines),
                "\n");
  }
  return out;
}

}  // namespace heed

// The table of a comparison as text, Markdown, LaTeX and CSV, and the notes below it.
#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/number_text.h"
#include "heed/core/io/table_text.h"
#include "heed/core/io/terminal.h"
#include "heed/train/experiments/comparison_sweep.h"
#include "heed/train/metrics/score_name.h"
#include "heed/train/run/csv.h"

namespace heed {
namespace {

using picture::fixed;

/// A number with four significant digits.
std::string significant(double value) { return formatted("%.4g", value); }

/// "0.021 ± 0.013 below"; "unclear" in place of the side where the interval holds 0.
std::string difference_text(const ComparedRow& row, bool higher_is_better) {
  if (row.is_best) return "best";
  if (!row.to_best) return "";
  const std::string size = text(formatted("%.2g", std::fabs(row.to_best->difference)), " \u00b1 ",
                                formatted("%.2g", row.to_best->reach));
  if (!row.to_best->is_clear()) return size + ", unclear";
  return size + (higher_is_better ? " below" : " above");
}

/// A column: its heading, and the cell of a row.
struct Column {
  std::string heading;
  std::function<std::string(const ComparedRow&)> cell;
};

std::vector<Column> columns_of(const Comparison& comparison) {
  using Row = const ComparedRow&;
  const std::string state_heading =
      comparison.state_length > 0 ? text("state at ", comparison.state_length) : "state";
  return {
      {"test " + score_name(comparison.score), [](Row row) { return to_string(row.score); }},
      {"to the best", [&](Row row) { return difference_text(row, comparison.higher_is_better); }},
      {"seeds", [](Row row) { return text(row.score.count); }},
      {"setting", [](Row row) { return point_text(row.point); }},
      {"parameters", [](Row row) { return fixed(row.parameters, 0); }},
      {state_heading, [](Row row) { return row.state ? fixed(*row.state, 0) : ""; }},
      {"GFLOP/step", [](Row row) { return significant(row.flops * 1e-9); }},
      {"steps/s",
       [](Row row) {
         return row.steps_per_second > 0 ? text(significant(row.steps_per_second), speed_mark(row)) : "";
       }},
      {"peak MB", [](Row row) { return row.memory > 0 ? fixed(row.memory / 1e6, 0) : ""; }},
      {"training s", [](Row row) { return fixed(row.seconds, 1); }},
      {"validation s",
       [](Row row) { return row.validation_seconds > 0 ? fixed(row.validation_seconds, 1) : ""; }},
  };
}

/// What ± is, and of how many seeds; empty where no row has a score.
std::string spread_note(const Comparison& comparison) {
  int64_t low = 0, high = 0;
  for (const ComparedRow& row : comparison.rows) {
    if (row.score.count == 0) continue;
    low = low == 0 ? row.score.count : std::min(low, row.score.count);
    high = std::max(high, row.score.count);
  }
  if (high == 0) return "";
  if (high == 1) return "one seed each, so nothing here says how far scores vary by chance";
  const std::string seeds = low == high ? text(high) : text(low, " to ", high);
  return text("\u00b1 after a score is the sample standard deviation of ", seeds,
              " seeds; differences to the best mean have 95 % intervals (Welch), and are unclear where 0 is "
              "within");
}

/// How far parameter counts differ, where it is more than a hundredth.
std::string parameters_note(const Comparison& comparison) {
  const ComparedRow *smallest = nullptr, *largest = nullptr;
  for (const ComparedRow& row : comparison.rows) {
    if (!(row.parameters > 0)) continue;
    if (smallest == nullptr || row.parameters < smallest->parameters) smallest = &row;
    if (largest == nullptr || row.parameters > largest->parameters) largest = &row;
  }
  if (largest == nullptr || largest->parameters <= 1.01 * smallest->parameters) return "";
  return text("parameters are not matched: ", largest->label, " has ",
              fixed(100 * (largest->parameters / smallest->parameters - 1), 0), " % more than ",
              smallest->label);
}

/// Where the numbers come from: commits, dates and machines of the runs, each once.
std::string origin_note(const Comparison& comparison) {
  std::vector<std::string> commits, dates, machines;
  const auto add = [](std::vector<std::string>& list, const std::string& word) {
    if (!word.empty() && std::ranges::count(list, word) == 0) list.push_back(word);
  };
  for (const ComparedRun& run : comparison.runs) {
    add(commits, run.commit.substr(0, 12));
    add(dates, run.started.substr(0, 10));
    add(machines, to_string(run.measured_on));
  }
  std::ranges::sort(dates);
  std::string out;
  if (!dates.empty()) out = "trained on " + dates.front() + (dates.size() > 1 ? " to " + dates.back() : "");
  if (!commits.empty()) picture::append_part(out, "commit " + picture::joined(commits), ", ");
  if (machines.size() == 1) picture::append_part(out, machines.front(), ", ");
  return out;
}

/// The different texts of a field in order of first appearance, each with the labels of its runs.
std::vector<std::pair<std::string, std::string>> labels_by(const Comparison& comparison,
                                                           std::string ComparedRun::*field) {
  std::vector<std::pair<std::string, std::vector<std::string>>> labels_by_text;
  for (const ComparedRun& run : comparison.runs) {
    if (!run.chosen || !run.failure.empty()) continue;
    auto found =
        std::ranges::find_if(labels_by_text, [&](const auto& item) { return item.first == run.*field; });
    if (found == labels_by_text.end()) found = labels_by_text.insert(found, {run.*field, {}});
    if (std::ranges::count(found->second, run.label) == 0) found->second.push_back(run.label);
  }
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [words, labels] : labels_by_text) out.emplace_back(words, picture::joined(labels));
  return out;
}

/// Words as LaTeX text.
std::string latex_escaped(const std::string& words) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words.compare(i, 2, "\u00b1") == 0) {
      out += "$\\pm$";
      ++i;
    } else if (words[i] == '\\') {
      out += "\\textbackslash{}";
    } else if (words[i] == '~' || words[i] == '^') {
      out += text("\\", words[i], "{}");
    } else {
      if (std::string_view("&%$#_{}").find(words[i]) != std::string_view::npos) out += '\\';
      out += words[i];
    }
  }
  return out;
}

}  // namespace

std::string_view speed_mark(const ComparedRow& row) { return row.machine_difference.empty() ? "" : "*"; }

std::vector<std::string> comparison_notes(const Comparison& comparison) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& line) {
    if (!line.empty()) out.push_back(line);
  };
  add(spread_note(comparison));
  for (const std::string& line : sweep_notes(comparison)) add(line);
  const auto baselines = labels_by(comparison, &ComparedRun::baselines);
  for (const auto& [words, labels] : baselines) {
    if (!words.empty()) add(text("baselines", baselines.size() > 1 ? " of " + labels : "", ": ", words));
  }
  add(parameters_note(comparison));
  if (comparison.state_length > 0)
    add(text("state: numbers that a head of an attention layer keeps after ", comparison.state_length,
             " tokens while text is generated"));
  const auto data = labels_by(comparison, &ComparedRun::data);
  if (data.size() > 1) {
    add("not all runs had the same data, so their scores do not say which is better:");
    for (const auto& [words, labels] : data)
      add(text("data of ", labels, ": ", words.empty() ? "none that the manifest names" : words));
  }
  for (const auto& [words, labels] : labels_by(comparison, &ComparedRun::machine_difference)) {
    if (!words.empty())
      add(text("* steps/s, memory and seconds of ", labels,
               " were not measured as those of the first run were: ", words));
  }
  add(origin_note(comparison));
  if (!comparison.command.empty()) add("command: " + comparison.command);
  return out;
}

std::vector<std::vector<std::string>> comparison_table(const Comparison& comparison) {
  std::vector<TableRow> rows{{"attention"}};
  for (const ComparedRow& row : comparison.rows) rows.push_back({row.label});
  const auto add_column = [&](const std::string& heading, const std::vector<std::string>& cells) {
    const bool is_empty =
        std::ranges::all_of(cells, [](const std::string& cell) { return cell.empty() || cell == "best"; });
    if (is_empty) return;
    rows[0].push_back(heading);
    for (size_t i = 0; i < cells.size(); ++i) {
      if (comparison.rows[i].score.count > 0) rows[i + 1].push_back(cells[i].empty() ? "-" : cells[i]);
    }
  };
  for (const Column& column : columns_of(comparison)) {
    std::vector<std::string> cells;
    for (const ComparedRow& row : comparison.rows)
      cells.push_back(row.score.count > 0 ? column.cell(row) : std::string());
    add_column(column.heading, cells);
  }
  std::vector<std::string> failures;  // a row may have failed with one seed and have scores of others
  for (const ComparedRow& row : comparison.rows)
    failures.push_back(row.score.count > 0 ? row.failure : std::string());
  add_column("failed", failures);
  for (size_t i = 0; i < comparison.rows.size(); ++i) {
    if (comparison.rows[i].score.count == 0) rows[i + 1].push_back(comparison.rows[i].failure);
  }
  return rows;
}

std::string comparison_text(const Comparison& comparison) {
  std::vector<TableRow> rows = comparison_table(comparison);
  std::string alignment = "l";
  for (size_t i = 1; i < rows[0].size(); ++i)
    alignment += rows[0][i] == "setting" || rows[0][i] == "failed" ? 'l' : 'r';
  for (TableRow& row : rows) row[0] = terminal_word(row[0]);
  std::string out = aligned_table(rows, {.alignment = alignment});
  for (const std::string& line : comparison_notes(comparison)) out += line + "\n";
  return folded_lines(out, output_columns());
}

std::string comparison_markdown(const Comparison& comparison) {
  std::string out = text("# ", comparison.title, "\n\n", markdown_table(comparison_table(comparison)), "\n");
  for (const std::string& line : comparison_notes(comparison)) out += "- " + line + "\n";
  return out;
}

std::string comparison_latex(const Comparison& comparison) {
  const std::vector<TableRow> rows = comparison_table(comparison);
  std::string out;
  for (const std::string& line : comparison_notes(comparison)) out += "% " + line + "\n";
  out += text("\\begin{tabular}{l", std::string(rows[0].size() - 1, 'r'), "}\n\\toprule\n");
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].size() < rows[0].size())
      out += text(latex_escaped(rows[i][0]), " & \\multicolumn{", rows[0].size() - 1, "}{l}{",
                  latex_escaped(rows[i][1]), "} \\\\\n");
    else
      out += picture::joined(rows[i], " & ", latex_escaped) + " \\\\\n";
    if (i == 0) out += "\\midrule\n";
  }
  return out + "\\bottomrule\n\\end{tabular}\n";
}

std::string comparison_csv(const Comparison& comparison) {
  std::vector<std::string> names;
  bool has_baselines = false, has_grid = false;
  for (const ComparedRun& run : comparison.runs) {
    has_baselines = has_baselines || !run.baselines.empty();
    has_grid = has_grid || !run.point.empty();
    for (const auto& [name, value] : run.scores) {
      if (std::ranges::count(names, name) == 0) names.push_back(name);
    }
  }
  const auto number = [](double value) { return std::isfinite(value) ? text(value) : std::string(); };
  std::string out = "label,seed";
  if (has_grid) out += text(",setting,chosen,", csv_name("valid_" + comparison.selection));
  for (const std::string& name : names) out += "," + csv_name(name);
  if (has_baselines) out += ",baselines";
  out +=
      ",steps_per_second,peak_bytes,parameters,flops_a_step,seconds,validation_seconds,run,failure,"
      "measured_on,differs_from_first\n";
  for (const ComparedRun& run : comparison.runs) {
    out += text(csv_text(run.label), ",", run.seed);
    if (has_grid)
      out += text(",", csv_text(point_text(run.point)), ",", run.chosen ? 1 : 0, ",",
                  number(run.validation(comparison.selection)));
    for (const std::string& name : names) out += "," + number(run.score(name));
    if (has_baselines) out += "," + csv_text(run.baselines);
    if (run.failure.empty()) {
      out += text(",", run.steps_per_second > 0 ? text(run.steps_per_second) : "", ",",
                  run.memory > 0 ? text(static_cast<int64_t>(run.memory)) : "", ",",
                  static_cast<int64_t>(run.parameters), ",", run.flops, ",", run.seconds, ",",
                  run.validation_seconds, ",", csv_text(run.folder), ",,",
                  csv_text(to_string(run.measured_on)), ",", csv_text(run.machine_difference), "\n");
    } else {
      out += text(",,,,,,,,", csv_text(run.failure), ",,\n");
    }
  }
  return out;
}

}  // namespace heed

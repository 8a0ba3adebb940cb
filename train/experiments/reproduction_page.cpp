// The page of a table: its cells, curves over steps and seconds, and what the runs were made with.
#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/ascii.h"
#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/core/io/terminal.h"
#include "heed/data/text/text.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/run/program_name.h"
#include "heed/train/run/session_history.h"

namespace heed {
namespace {

constexpr size_t drawn_points = 300;  // limit of the points drawn for each line

std::string table_text(const Reproduction& result) {
  std::string out = "| cell | paper | ours | baseline | verdict |\n|---|---:|---:|---|---|\n";
  for (const Cell* one : result.lines()) {
    const std::string paper = std::isfinite(one->paper) ? picture::fixed(one->paper, 2) : "-";
    const std::string ours = ours_text(*one);
    out += text("| ", markdown_escaped(one->name), " | ", paper, " | ", ours.empty() ? "-" : ours, " | ",
                markdown_escaped(one->baseline), " | ", to_string(one->verdict), " |\n");
  }
  return out;
}

/// What each cell is worth and where its runs come from, a line each; lines of more than 120 columns are
/// broken.
std::string notes_text(const Reproduction& result, const Origins& origins) {
  std::string out;
  for (const Cell& one : result.cells) {
    std::string note = note_text(one);
    if (const auto origin = origins.own.find(one.name); origin != origins.own.end())
      picture::append_part(note, origin->second);
    if (note.empty()) continue;
    out += wrapped("- " + markdown_escaped(one.name + ": " + note), "  ");
  }
  return out;
}

/// The runs of a column as far as they have come, for charts: those with metrics.
Comparison curves_of(const PageInput& input, const PublishedColumn& column) {
  const std::string score = curve_score(input.table);
  Comparison out{.title = input.table.name + ", " + column.name, .score = score};
  for (const PlannedCell* planned : input.in_column(column)) {
    std::vector<ComparedRun> runs;
    for (const PlannedRun& plan : planned->plans) {
      const RunCurve curve = read_curve(folder_of(plan, input.options.runs.folder) / "metrics.jsonl", score);
      if (curve.points.empty() || is_filed(*planned, plan.seed)) continue;
      runs.push_back(
          {.label = "",
           .folder = "",
           .failure = "",
           .seed = plan.seed,
           .metrics = curve_series(curve, input.options.seeds > 1 ? curve.points.size() : drawn_points)});
    }
    // A mean goes as far as the shortest of its curves: unfinished ones would cut those that have ended.
    for (const FiledRun& one : planned->filed.empty() ? planned->begun : planned->filed)
      runs.push_back(one.run);
    if (!runs.empty()) out.rows.push_back({.label = planned->row->name, .failure = "", .score = {}});
    for (ComparedRun& run : runs) {
      run.label = planned->row->name;
      out.runs.push_back(std::move(run));
    }
  }
  return out;
}

/// A curve of a chart with at most `drawn_points` points, evenly spread: the first and the last are among
/// them.
Series few_points(const Series& series) {
  if (series.x.size() <= drawn_points) return series;
  Series out{.name = series.name};
  for (size_t i = 0; i < drawn_points; ++i) {
    const size_t at = i * (series.x.size() - 1) / (drawn_points - 1);
    out.x.push_back(series.x[at]);
    out.y.push_back(series.y[at]);
  }
  return out;
}

/// Draws the curves of a column; the lines of the page that show them.
std::string draw_curves(const PageInput& input, const PublishedColumn& column) {
  const Comparison curves = curves_of(input, column);
  const std::string score = "valid_" + curve_score(input.table);
  const bool has_score = std::any_of(curves.runs.begin(), curves.runs.end(),
                                     [&](const ComparedRun& run) { return run.metric(score) != nullptr; });
  std::string out;
  for (const std::string& metric : {has_score ? score : std::string("valid_loss"), std::string("loss")}) {
    for (const bool against_seconds : {false, true}) {
      Chart chart = comparison_chart(curves, metric, against_seconds);
      std::erase_if(chart.series, [](const Series& one) { return one.x.empty(); });
      if (chart.series.empty()) continue;
      for (Series& one : chart.series) one = few_points(one);
      chart.title = column.name + ": " + chart.title;
      out += input.put_picture(column.name,
                               text("-", file_word(metric), against_seconds ? "-seconds.svg" : "-steps.svg"),
                               chart.title, chart_svg(chart));
    }
  }
  return out.empty() ? "" : text("## ", column.name, "\n\n", out, "\n");
}

/// All settings of the recipe of the first cell of a column that has runs, folded. Paths of data, which a
/// call gives, are not among them.
std::string folded_recipe(const PageInput& input, const PublishedColumn& column) {
  if (!trains(input.table.measure)) return "";
  for (const PlannedCell* planned : input.in_column(column)) {
    if (planned->plans.empty() && planned->filed.empty() && planned->begun.empty()) continue;
    Config recipe = recipe_of(*planned);
    const std::string toml = to_toml(recipe);
    std::string settings;
    for (const std::string_view line : split_lines(toml))  // what each means is in docs/reference/settings.md
      settings += picture::trimmed_line(line.substr(0, line.find("  #")));
    return text("<details><summary>All settings of the recipe of ", planned->cell.name,
                "</summary>\n\n```toml\n", settings, "```\n\n</details>\n\n");
  }
  return "";
}

/// Program, machine and date of this call, for tables whose cells are measured and leave no run.
std::string call_text() {
  const Json session = session_metadata({}, 1, 0);
  const auto fact = [&](const char* name) {
    const std::string value = fact_of(session, name);
    return value.empty() ? "unknown" : value;
  };
  const auto line = [](const std::string& words) { return wrapped("- " + words, "  "); };
  return line("heed: " + fact("heed")) + line("commit: " + fact("commit")) +
         line(text("machine: ", fact("cpu"), ", ", fact("cpu_threads"), " threads, ", fact("threads"),
                   " used, ", fact("device"), ", ", fact("isa"))) +
         line("date: " + fact("started"));
}

}  // namespace

std::string markdown_escaped(std::string_view words) {
  std::string out;
  for (size_t at = 0; at < words.size(); ++at) {
    const char c = words[at];
    const bool in_word = at > 0 && at + 1 < words.size() && is_ascii_alphanumeric(words[at - 1]) &&
                         is_ascii_alphanumeric(words[at + 1]);  // max_steps: no emphasis
    if (std::string_view("\\`*[]|~$").find(c) != words.npos || (c == '_' && !in_word)) out += '\\';
    if (c == '\n')
      out += ' ';
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return terminal_word(out);
}

std::vector<const PlannedCell*> PageInput::in_column(const PublishedColumn& column) const {
  std::vector<const PlannedCell*> out;
  for (const PlannedCell& planned : all) {
    if (planned.column == &column) out.push_back(&planned);
  }
  return out;
}

std::vector<const ComparedRun*> PageInput::finished(const PlannedCell& planned) const {
  std::vector<const ComparedRun*> out;
  for (const PlannedRun& plan : planned.plans) out.push_back(finished_run(ended, plan));
  std::erase(out, nullptr);
  return out;
}

std::string PageInput::file_name(const std::string& words, const std::string& ending) const {
  return text(table.name, "-", file_word(words), ending);
}

std::string PageInput::put_picture(const std::string& words, const std::string& ending,
                                   const std::string& title, const std::string& svg) const {
  const std::string file = file_name(words, ending);
  io::make_directories(options.results_folder());
  io::write_own(options.results_folder() / file, svg);
  return text("![", markdown_escaped(title), "](", file, ")\n");
}

void write_page(const PageInput& input, const Reproduction& result) {
  const auto& [table, options, all, ended] = input;
  io::make_directories(options.results_folder());
  std::string page = text("# ", table.name, "\n\n", wrapped(table.about + ".", ""), "\n",
                          wrapped("Source: " + table.source + ".", ""), "\n",
                          wrapped("Values: " + unit_text(table) + ".", ""), "\n", table_text(result), "\n");
  if (const std::string words = verdict_words(table, result); !words.empty())
    page += wrapped(words, "") + "\n";
  const Origins origins = origins_of(input);
  if (const std::string notes = notes_text(result, origins); !notes.empty()) page += notes + "\n";
  const std::string made_by = text("Made by `", program_name(), " reproduce ", table.name);
  if (!origins.shared.empty() || !origins.own.empty()) {
    page += wrapped(text(made_by, "`; each CSV beside this page has the command of its run.",
                         origins.shared.empty() ? "" : " All runs:"),
                    "") +
            "\n";
    if (!origins.shared.empty()) page += origins.shared + "\n";
  }
  if (table.measure == Measure::steps_per_second || table.measure == Measure::crossover)
    page += text(made_by, options.adjusted.empty() ? "" : " ", options.adjusted, "`; the last call:\n\n",
                 call_text(), "\n");
  for (const PublishedColumn& column : table.columns)
    page += draw_curves(input, column) + folded_recipe(input, column);
  if (table.bubbles) page += draw_bubbles(input);
  if (table.measure == Measure::crossover) page += draw_lengths(input);
  if (table.lengths) page += draw_by_length(input);
  page += draw_alignments(input);
  if (table.measure == Measure::map_distance) page += draw_distances(input);
  if (table.widths) page += draw_widths(input);
  if (table.measure == Measure::swapped) page += draw_swaps(input);
  if (table.maps) page += draw_maps(input);
  while (page.ends_with("\n\n")) page.pop_back();
  io::write_own(options.results_folder() / (table.name + ".md"), page);
}

}  // namespace heed

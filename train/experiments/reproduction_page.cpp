// The Markdown page of a table: cells, curves over steps and seconds, and the origins of the runs.
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

constexpr size_t max_drawn_points = 300;  // limit of the points of each drawn curve

/// The cells and averages as a Markdown table. A table that trains has its open cells at a glance: they are
/// left out here.
std::string table_text(const PublishedTable& table, const Reproduction& result) {
  std::string lines;
  for (const CellResult* cell : result.lines()) {
    const bool is_open = cell->ours.count == 0 && !cell->has_begun && note_text(*cell).empty();
    if (is_open && trains(table.measure)) continue;
    const std::string paper = std::isfinite(cell->paper) ? picture::fixed(cell->paper, 2) : "-";
    const std::string ours = ours_text(*cell);
    lines += table_line({markdown_escaped(cell->name), paper, ours.empty() ? "-" : ours,
                         markdown_escaped(cell->baseline), to_string(cell->verdict)});
  }
  if (lines.empty()) return "";
  return text(trains(table.measure) ? "## Cells\n\n" : "",
              "| cell | paper | ours | baseline | verdict |\n|---|---:|---:|---|---|\n", lines);
}

/// A list item for each cell with a note or an origin of its own.
std::string notes_text(const Reproduction& result, const Origins& origins) {
  std::string lines;
  for (const CellResult& cell : result.cells) {
    std::string note = note_text(cell);
    if (const auto origin = origins.by_cell.find(cell.name); origin != origins.by_cell.end())
      picture::append_part(note, origin->second);
    if (!note.empty()) lines += wrapped("- " + markdown_escaped(cell.name + ": " + note), "  ");
  }
  return lines;
}

/// The runs of a column that have metrics, trained or not, with their curves alone.
Comparison curves_of(const PageInput& input, const PublishedColumn& column) {
  const std::string score = curve_score(input.table);
  Comparison curves{.title = input.table.name + ", " + column.name, .score = score};
  for (const PlannedCell* planned : input.in_column(column)) {
    const std::string& row = planned->row->name;
    const size_t runs_before = curves.runs.size();
    for (const PlannedRun& plan : planned->plans) {
      const RunCurve curve = read_curve(folder_of(plan, input.options.runs.folder) / "metrics.jsonl", score);
      if (curve.points.empty() || counts_from_file(*planned, plan.seed)) continue;
      // The mean over seeds takes the steps that all curves have, which thinning would lose.
      const size_t max_points = input.options.seeds > 1 ? curve.points.size() : max_drawn_points;
      curves.runs.push_back({.label = row,
                             .folder = "",
                             .failure = "",
                             .seed = plan.seed,
                             .metrics = curve_series(curve, max_points)});
    }
    // The mean ends with the shortest curve: unfinished runs on file would cut the finished ones.
    const bool has_finished = !planned->finished_on_file.empty();
    for (const FiledRun& filed : has_finished ? planned->finished_on_file : planned->unfinished_on_file) {
      curves.runs.push_back(filed.run);
      curves.runs.back().label = row;
    }
    if (curves.runs.size() > runs_before) curves.rows.push_back({.label = row, .failure = "", .score = {}});
  }
  return curves;
}

/// A series with at most max_drawn_points points, evenly spread: the first and the last are among them.
Series thinned_series(const Series& series) {
  if (series.x.size() <= max_drawn_points) return series;
  Series thin{.name = series.name};
  for (size_t i = 0; i < max_drawn_points; ++i) {
    const size_t point = i * (series.x.size() - 1) / (max_drawn_points - 1);
    thin.x.push_back(series.x[point]);
    thin.y.push_back(series.y[point]);
  }
  return thin;
}

/// All settings of the recipe of a column's first cell with runs, as a section that opens on a click.
std::string folded_recipe(const PageInput& input, const PublishedColumn& column) {
  if (!trains(input.table.measure)) return "";
  for (const PlannedCell* planned : input.in_column(column)) {
    if (planned->plans.empty() && planned->finished_on_file.empty() && planned->unfinished_on_file.empty())
      continue;
    Config recipe = recipe_of(*planned);
    const std::string toml = to_toml(recipe);
    std::string settings;
    for (const std::string_view line : split_lines(toml))  // docs/reference/settings.md has the comments
      settings += picture::trimmed_line(line.substr(0, line.find("  #")));
    return text("<details><summary>All settings of the recipe of ", planned->result.name,
                "</summary>\n\n```toml\n", settings, "```\n\n</details>\n\n");
  }
  return "";
}

/// Draws the curves of a column over steps and over seconds; returns the lines that show them, and the
/// recipe.
std::string draw_curves(const PageInput& input, const PublishedColumn& column) {
  const Comparison curves = curves_of(input, column);
  const std::string score = "valid_" + curve_score(input.table);
  const bool has_score =
      std::ranges::any_of(curves.runs, [&](const ComparedRun& run) { return run.metric(score) != nullptr; });
  std::string pictures;
  for (const std::string& metric : {has_score ? score : std::string("valid_loss"), std::string("loss")}) {
    for (const bool against_seconds : {false, true}) {
      Chart chart = comparison_chart(curves, metric, against_seconds);
      std::erase_if(chart.series, [](const Series& series) { return series.x.empty(); });
      if (chart.series.empty()) continue;
      std::ranges::transform(chart.series, chart.series.begin(), thinned_series);
      chart.title = column.name + ": " + chart.title;
      pictures += input.put_picture(
          column.name, text("-", file_word(metric), against_seconds ? "-seconds.svg" : "-steps.svg"),
          chart.title, chart_svg(chart));
    }
  }
  return (pictures.empty() ? "" : text("## ", column.name, "\n\n", pictures, "\n")) +
         folded_recipe(input, column);
}

/// Program, machine and date of this call: the origins of cells that are measured and leave no run.
std::string call_text() {
  const Json session = session_metadata({}, /*processes=*/1, /*step=*/0);
  const auto fact = [&](const char* name) {
    const std::string value = fact_of(session, name);
    return value.empty() ? "unknown" : value;
  };
  const auto item = [](const std::string& words) { return wrapped("- " + words, "  "); };
  return item("heed: " + fact("heed")) + item("commit: " + fact("commit")) +
         item(text("machine: ", fact("cpu"), ", ", fact("cpu_threads"), " threads, ", fact("threads"),
                   " used, ", fact("device"), ", ", fact("isa"))) +
         item("date: " + fact("started"));
}

}  // namespace

std::string markdown_escaped(std::string_view words) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) {
    const char c = words[i];
    const bool in_word = i > 0 && i + 1 < words.size() && is_ascii_alphanumeric(words[i - 1]) &&
                         is_ascii_alphanumeric(words[i + 1]);  // max_steps: no emphasis
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

std::string PageInput::write_file(const std::string& words, const std::string& ending,
                                  const std::string& content) const {
  const std::string name = text(table.name, "-", file_word(words), ending);
  io::make_directories(options.results_folder());
  io::write_own(options.results_folder() / name, content);
  return name;
}

std::string PageInput::put_picture(const std::string& words, const std::string& ending,
                                   const std::string& title, const std::string& svg) const {
  return text("![", markdown_escaped(title), "](", write_file(words, ending, svg), ")\n");
}

void write_page(const PageInput& input, const Reproduction& result) {
  const auto& [table, options, all, ended] = input;
  io::make_directories(options.results_folder());
  std::string page =
      text("# ", table.name, "\n\n", wrapped(table.about + "."), "\n",
           wrapped("Source: " + table.source + "."), "\n", wrapped("Values: " + unit_text(table) + "."), "\n",
           draw_glance(input, result), table_text(table, result), "\n");
  for (const std::string& words : {grid_words(table), verdict_words(table, result)}) {
    if (!words.empty()) page += wrapped(words) + "\n";
  }
  const Origins origins = origins_of(input);
  if (const std::string notes = notes_text(result, origins); !notes.empty()) page += notes + "\n";
  const std::string made_by = text("Made by `", program_name(), " reproduce ", table.name);
  if (!origins.shared.empty() || !origins.by_cell.empty())
    page += wrapped(text(made_by, "`; each CSV beside this page has the command of its run.",
                         origins.shared.empty() ? "" : " All runs:")) +
            "\n";
  if (!origins.shared.empty()) page += origins.shared + "\n";
  const bool is_measured = table.measure == Measure::steps_per_second ||
                           table.measure == Measure::crossover || table.measure == Measure::score_gradient;
  if (is_measured)
    page += text(made_by, options.adjusted.empty() ? "" : " ", options.adjusted, "`; the last call:\n\n",
                 call_text(), "\n");
  const auto add_for_each_column = [&](const auto& draw) {
    for (const PublishedColumn& column : input.table.columns) page += draw(input, column);
  };
  add_for_each_column(draw_curves);
  if (table.bubbles) page += draw_bubbles(input);
  if (table.measure == Measure::crossover) add_for_each_column(draw_lengths);
  if (table.lengths) add_for_each_column(draw_by_length);
  add_for_each_column(draw_alignments);
  if (table.measure == Measure::map_distance) add_for_each_column(draw_distances);
  if (table.widths) add_for_each_column(draw_widths);
  if (table.states) add_for_each_column(draw_states);
  if (table.measure == Measure::swapped) page += draw_swaps(input);
  if (table.maps) add_for_each_column(draw_maps);
  while (page.ends_with("\n\n")) page.pop_back();
  io::write_own(options.results_folder() / (table.name + ".md"), page);
}

}  // namespace heed

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

constexpr size_t drawn_points = 300;  // of each line

std::string table_text(const Reproduction& result) {
  std::string out = "| cell | paper | ours | baseline | verdict |\n|---|---:|---:|---|---|\n";
  for (const std::vector<Cell>* list : {&result.cells, &result.averages}) {
    for (const Cell& one : *list) {
      const std::string paper = std::isfinite(one.paper) ? picture::fixed(one.paper, 2) : "-";
      const std::string ours = ours_text(one);
      out += text("| ", markdown_escaped(one.name), " | ", paper, " | ", ours.empty() ? "-" : ours, " | ",
                  markdown_escaped(one.baseline), " | ", to_string(one.verdict), " |\n");
    }
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
      note += (note.empty() ? "" : "; ") + origin->second;
    if (note.empty()) continue;
    out += wrapped("- " + markdown_escaped(one.name + ": " + note), "  ");
  }
  return out;
}

/// The runs of a column as far as they have come, for charts: those with metrics.
Comparison curves_of(const PublishedTable& table, const ReproductionOptions& options,
                     const std::vector<Work>& all, const PublishedColumn& column) {
  Comparison out{.title = table.name + ", " + column.name, .score = curve_score(table)};
  const auto add = [&](const std::string& label, ComparedRun run) {
    if (out.rows.empty() || out.rows.back().label != label)
      out.rows.push_back({.label = label, .failure = "", .score = {}});
    run.label = label;
    out.runs.push_back(std::move(run));
  };
  for (const Work& work : all) {
    if (work.column != &column) continue;
    for (const PlannedRun& plan : work.plans) {
      const RunCurve curve =
          read_curve(folder_of(plan, options.place.folder) / "metrics.jsonl", curve_score(table));
      if (curve.points.empty() || is_filed(work, plan.seed)) continue;
      add(work.row->name,
          {.label = "",
           .folder = "",
           .failure = "",
           .seed = plan.seed,
           .metrics = curve_series(curve, options.seeds > 1 ? curve.points.size() : drawn_points)});
    }
    // A mean goes as far as the shortest of its curves: unfinished ones would cut those that have ended.
    for (const FiledRun& one : work.filed.empty() ? work.begun : work.filed) add(work.row->name, one.run);
  }
  return out;
}

/// A curve of a chart with at most so many points: every so manieth, and the last.
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
std::string draw_curves(const PublishedTable& table, const ReproductionOptions& options,
                        const std::vector<Work>& all, const PublishedColumn& column) {
  const Comparison curves = curves_of(table, options, all, column);
  std::string out;
  const std::string scored = "valid_" + curve_score(table);
  const bool has_score = std::any_of(curves.runs.begin(), curves.runs.end(), [&](const ComparedRun& run) {
    return std::any_of(run.metrics.begin(), run.metrics.end(),
                       [&](const MetricSeries& one) { return one.name == scored; });
  });
  for (const std::string& metric : {has_score ? scored : std::string("valid_loss"), std::string("loss")}) {
    for (const bool against_seconds : {false, true}) {
      Chart chart = comparison_chart(curves, metric, against_seconds);
      std::erase_if(chart.series, [](const Series& one) { return one.x.empty(); });
      if (chart.series.empty()) continue;
      for (Series& one : chart.series) one = few_points(one);
      chart.title = column.name + ": " + chart.title;
      const std::string name = text(table.name, "-", file_word(column.name), "-", file_word(metric),
                                    against_seconds ? "-seconds" : "-steps", ".svg");
      out += put_picture(options, name, chart.title, chart_svg(chart));
    }
  }
  return out.empty() ? "" : text("## ", column.name, "\n\n", out, "\n");
}

/// All settings of the recipe of the first cell of a column that has runs, folded. Paths of data, which a
/// call gives, are not among them.
std::string folded_recipe(const PublishedTable& table, const std::vector<Work>& all,
                          const PublishedColumn& column) {
  if (!trains(table.measure)) return "";
  for (const Work& work : all) {
    if (work.column != &column || (work.plans.empty() && work.filed.empty() && work.begun.empty())) continue;
    Config recipe = recipe_of(work);
    const std::string toml = to_toml(recipe);
    std::string settings;
    for (std::string_view line : split_lines(toml)) {  // what each means is in docs/reference/settings.md
      line = line.substr(0, line.find("  #"));
      settings += text(line.substr(0, line.find_last_not_of(' ') + 1), "\n");
    }
    return text("<details><summary>All settings of the recipe of ", work.cell.name, "</summary>\n\n```toml\n",
                settings, "```\n\n</details>\n\n");
  }
  return "";
}

/// What the values of a table are.
std::string unit_text(const PublishedTable& table) {
  const std::string& first = table.rows.front().name;
  switch (table.measure) {
    case Measure::accuracy:
      return "accuracies of the test split in percent";
    case Measure::loss:
      return table.metric.empty() ? "losses of the test split in nats"
                                  : "losses of the validation split in nats";
    case Measure::bleu:
      return "BLEU of the test split";
    case Measure::crossover:
      return "sequence lengths in tokens";
    case Measure::map_distance:
      return "sums of absolute differences of maps";
    case Measure::steps_per_second:
      return "steps a second, relative to " + first;
    case Measure::sooner:
      return "speedups: the seconds that " + first +
             " takes to its last training loss, over those that the row takes to the same loss";
    case Measure::swapped:
      return "perplexities, as the paper computes them";
  }
  return "";
}

/// Program, machine and date of this call, for tables whose cells are measured and leave no run.
std::string call_text() {
  const Json session = session_metadata({}, 1, 0);
  const auto fact = [&](const char* key) {
    const Json* value = session.find(key);
    if (value == nullptr || value->is_null()) return std::string("unknown");
    return value->is_text() ? value->text() : value->dump();
  };
  return wrapped(text("- heed: ", fact("heed")), "  ") + wrapped(text("- commit: ", fact("commit")), "  ") +
         wrapped(text("- machine: ", fact("cpu"), ", ", fact("cpu_threads"), " threads, ", fact("threads"),
                      " used, ", fact("device"), ", ", fact("isa")),
                 "  ") +
         wrapped(text("- date: ", fact("started")), "  ");
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

std::string put_picture(const ReproductionOptions& options, const std::string& file, const std::string& title,
                        const std::string& svg) {
  io::make_directories(options.results_folder());
  io::write_own(options.results_folder() / file, svg);
  return text("![", markdown_escaped(title), "](", file, ")\n");
}

void write_page(const PublishedTable& table, const ReproductionOptions& options, const std::vector<Work>& all,
                const EndedRuns& ended, const Reproduction& result) {
  const Path folder = options.results_folder();
  io::make_directories(folder);
  std::string page = text("# ", table.name, "\n\n", wrapped(table.about + ".", ""), "\n",
                          wrapped("Source: " + table.source + ".", ""), "\n",
                          wrapped("Values: " + unit_text(table) + ".", ""), "\n", table_text(result), "\n");
  if (const std::string words = verdict_words(table, result); !words.empty())
    page += wrapped(words, "") + "\n";
  const Origins origins = origins_of(table, options, all);
  if (const std::string notes = notes_text(result, origins); !notes.empty()) page += notes + "\n";
  if (!origins.shared.empty() || !origins.own.empty()) {
    page += wrapped(text("Made by `", program_name(), " reproduce ", table.name,
                         "`; each CSV beside this page has the command of its run.",
                         origins.shared.empty() ? "" : " All runs:"),
                    "") +
            "\n";
    if (!origins.shared.empty()) page += origins.shared + "\n";
  }
  if (table.measure == Measure::steps_per_second || table.measure == Measure::crossover) {
    const std::string settings = options.adjusted.empty() ? "" : " " + options.adjusted;
    page += text("Made by `", program_name(), " reproduce ", table.name, settings, "`; the last call:\n\n",
                 call_text(), "\n");
  }
  for (const PublishedColumn& column : table.columns) {
    page += draw_curves(table, options, all, column);
    page += folded_recipe(table, all, column);
  }
  if (table.bubbles) page += draw_bubbles(table, options, all, ended);
  if (table.measure == Measure::crossover) page += draw_lengths(table, options, all);
  if (table.lengths) page += draw_by_length(table, options, all, ended);
  page += draw_alignments(table, options, all);
  if (table.measure == Measure::map_distance) page += draw_distances(table, options, all);
  if (table.widths) page += draw_widths(table, options, all, ended);
  if (table.measure == Measure::swapped) page += draw_swaps(table, options, all);
  if (table.maps) page += draw_maps(table, options, all);
  while (page.ends_with("\n\n")) page.pop_back();
  io::write_own(folder / (table.name + ".md"), page);
}

}  // namespace heed

// The HTML page of a comparison, and its charts.
#include <algorithm>

#include "heed/attention/inspect/html_page.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/train/experiments/comparison_sweep.h"
#include "heed/train/metrics/score_name.h"
#include "heed/train/report/bubble_chart.h"
#include "heed/train/report/chart.h"
#include "heed/train/report/report.h"

namespace heed {
namespace {

using picture::escape;

/// The table of rows and the notes below it.
std::string table(const Comparison& comparison) {
  const std::vector<std::vector<std::string>> lines = comparison_table(comparison);
  std::string rows;
  for (size_t i = 1; i < lines.size(); ++i) {
    rows += "<tr>" + picture::row_head(lines[i][0]);
    if (lines[i].size() < lines[0].size())
      rows += text("<td colspan=\"", lines[0].size() - 1, "\">", escape(lines[i][1]), "</td>");
    else
      for (size_t j = 1; j < lines[i].size(); ++j) rows += "<td>" + escape(lines[i][j]) + "</td>";
    rows += "</tr>\n";
  }
  std::string out = picture::html_table("Comparison", "measures", picture::column_heads(lines[0]), rows);
  for (const std::string& line : comparison_notes(comparison))
    out += text("<p class=\"subtitle\">", escape(line), "</p>\n");
  return out;
}

/// A changed setting, and the labels of the rows with this value.
struct SharedSetting {
  ReportSetting setting;
  std::vector<std::string> labels;
};

/// The changed settings of the first run of each row, those of most rows first.
std::vector<SharedSetting> shared_settings(const std::vector<const ComparedRun*>& first_runs) {
  std::vector<SharedSetting> out;
  for (const ComparedRun* run : first_runs) {
    for (const ReportSetting& changed : run->settings.changed) {
      auto shared = std::ranges::find_if(out, [&](const SharedSetting& earlier) {
        return earlier.setting.key == changed.key && earlier.setting.value == changed.value &&
               earlier.setting.before == changed.before;
      });
      if (shared == out.end()) shared = out.insert(shared, {.setting = changed, .labels = {}});
      shared->labels.push_back(run->label);
    }
  }
  std::ranges::stable_sort(out, std::ranges::greater(),
                           [](const SharedSetting& shared) { return shared.labels.size(); });
  return out;
}

/// The section of settings: a table of the changed ones, and all settings of the first run, which open on a
/// click.
std::string settings_of_rows(const Comparison& comparison) {
  std::vector<const ComparedRun*> first_runs;
  for (const ComparedRun& run : comparison.runs) {
    const bool is_known = std::ranges::count(first_runs, run.label, &ComparedRun::label) > 0;
    if (!is_known && run.failure.empty() && !run.settings.all.empty()) first_runs.push_back(&run);
  }
  if (first_runs.empty()) return "";
  const ReportSettings& settings = first_runs.front()->settings;
  std::string rows;
  for (const auto& [setting, labels] : shared_settings(first_runs)) {
    rows +=
        text("<tr>", picture::row_head(setting.key), setting_cell(setting.value),
             setting_cell(setting.before), "<td class=\"list\">",
             labels.size() == first_runs.size() ? "all" : escape(picture::joined(labels)), "</td></tr>\n");
  }
  std::string out = "<h2>Settings</h2>\n";
  if (!rows.empty())
    out += picture::html_table("Changed settings", "measures settings",
                               picture::column_heads({"changed setting", "value", settings.from}) +
                                   "<th scope=\"col\" class=\"list\">variants</th>",
                               rows);
  return out + folded_settings(text("All settings of ", first_runs.front()->label, ", as in its config.toml"),
                               settings.all);
}

/// A section of charts; empty where there are none.
std::string figures(const std::string& heading, const std::vector<std::pair<std::string, Chart>>& charts) {
  std::string out;
  for (const auto& [name, chart] : charts) out += chart_figure(chart);
  return out.empty() ? "" : text("<h2>", heading, "</h2>\n<div class=\"charts\">\n", out, "</div>\n");
}

}  // namespace

BubbleChart comparison_bubbles(const Comparison& comparison) {
  BubbleChart out{.title = comparison.title + ": speed against " + score_name(comparison.score),
                  .x_label = "steps a second",
                  .y_label = score_name(comparison.score),
                  .area_label = "peak memory in MB",
                  .bubbles = {},
                  .max_y = max_score(comparison.score)};
  for (const ComparedRow& row : comparison.rows) {
    if (row.score.count > 0 && row.steps_per_second > 0 && row.memory > 0)
      out.bubbles.push_back({.name = text(row.label, speed_mark(row)),
                             .x = row.steps_per_second,
                             .y = row.score.mean,
                             .area = row.memory / 1e6});
  }
  return out;
}

std::vector<std::pair<std::string, Chart>> comparison_charts(const Comparison& comparison) {
  std::vector<std::pair<std::string, Chart>> out;
  for (const std::string& metric : {"valid_" + comparison.score, std::string("loss")}) {
    for (const bool against_seconds : {false, true}) {
      Chart chart = comparison_chart(comparison, metric, against_seconds);
      if (!chart.series.empty())
        out.emplace_back(metric + (against_seconds ? "-seconds" : "-steps"), std::move(chart));
    }
  }
  return out;
}

std::string comparison_html(const Comparison& comparison) {
  std::string body = table(comparison) + settings_of_rows(comparison);
  if (const BubbleChart bubbles = comparison_bubbles(comparison); !bubbles.bubbles.empty())
    body += "<h2>Speed against " + escape(score_name(comparison.score)) +
            "</h2>\n<figure class=\"scroll\" tabindex=\"0\">\n" + bubbles_figure(bubbles) + "</figure>\n";
  if (!comparison.maps.empty())
    body += text("<h2>Attention maps</h2>\n<p><a href=\"", escape(comparison.maps),
                 "\">Heads side by side</a>: one input, heads matched by their maps, differences.</p>\n");
  if (!comparison.maps_missing.empty())
    body += text("<h2>Attention maps</h2>\n<p class=\"subtitle\">None side by side: ",
                 escape(comparison.maps_missing), "</p>\n");
  body += figures("Scores over settings", sweep_charts(comparison)) +
          figures("Curves", comparison_charts(comparison));
  return picture::page(comparison.title, "means over seeds; test scores of the best checkpoints", body,
                       {picture::tools_script, charts_script});
}

}  // namespace heed

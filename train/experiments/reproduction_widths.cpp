// Draws what a table of window attentions shows: score and loss over the width of the window.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "heed/attention/spec.h"
#include "heed/core/io/number_text.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/report/chart.h"

namespace heed {
namespace {

/// w of a window of w keys to either side; nothing for other attentions.
std::optional<double> window_width(const std::string& spec) {
  const Spec parsed = parse_spec(spec);
  std::string left, right;
  for (const auto& [key, value] : parsed.options) {
    if (key == "left") left = value;
    if (key == "right") right = value;
  }
  if (parsed.name != "window" || left.empty() || left != right) return std::nullopt;
  return parsed_number(left);
}

/// The mean of a score over the runs of a cell that have it; NaN: none.
double mean_score(const Work& work, const EndedRuns& ended, const std::string& score) {
  std::vector<double> values;
  for (const PlannedRun& plan : work.plans) {
    const auto found = ended.find(plan.name);
    if (found == ended.end() || !found->second.failure.empty()) continue;
    for (const auto& [name, value] : found->second.scores) {
      if (name == score) values.push_back(value);
    }
  }
  return values.empty() ? NAN : spread_of(values).mean;
}

/// The lines of a column: one over w for all windows, and a level for each row without a width.
std::vector<Series> lines_over_width(const std::vector<Work>& all, const EndedRuns& ended,
                                     const PublishedColumn& column, const std::string& score) {
  std::vector<Series> windows{{.name = "window, from scratch"}, {.name = "window, fine-tuned"}}, levels;
  double narrowest = std::numeric_limits<double>::infinity(), widest = 0;
  for (const Work& work : all) {
    const double value = mean_score(work, ended, score);
    if (work.column != &column || !std::isfinite(value)) continue;
    const std::optional<double> width = window_width(work.row->attention_on(column));
    if (!width) {
      levels.push_back({.name = work.row->name, .x = {}, .y = {value, value}});
      continue;
    }
    narrowest = std::min(narrowest, *width);
    widest = std::max(widest, *width);
    Series& line = windows[work.row->from.empty() ? 0 : 1];
    line.x.push_back(*width);
    line.y.push_back(value);
  }
  std::erase_if(windows, [](const Series& one) { return one.x.size() < 2; });
  if (windows.empty()) return {};
  std::vector<Series> out = std::move(windows);
  for (Series& level : levels) {
    level.x = {narrowest, widest};
    out.push_back(level);
  }
  return out;
}

}  // namespace

std::string draw_widths(const PublishedTable& table, const ReproductionOptions& options,
                        const std::vector<Work>& all, const EndedRuns& ended) {
  std::string out;
  for (const PublishedColumn& column : table.columns) {
    for (const std::string& score : {curve_score(table), std::string("loss")}) {
      Chart chart{.title = text(column.name, ": ", score, " over the width of the window"),
                  .series = lines_over_width(all, ended, column, score),
                  .x_label = "w, keys to either side"};
      if (chart.series.empty()) continue;
      out += put_picture(options, text(table.name, "-", file_word(column.name), "-", score, "-widths.svg"),
                         chart.title, chart_svg(chart));
    }
  }
  return out;
}

}  // namespace heed

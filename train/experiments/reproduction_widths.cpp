// Draws score and loss of window attentions over the width of the window.
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

/// The number of keys to either side of the query in a symmetric window attention; nothing for other
/// attentions.
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

/// The curves of a column: the windows over their width, and a horizontal line for each other attention.
std::vector<Series> curves_over_width(const PageInput& input, const PublishedColumn& column,
                                      const std::string& score) {
  enum Start : size_t { from_scratch, fine_tuned };
  std::vector<Series> windows{{.name = "window, from scratch"}, {.name = "window, fine-tuned"}}, levels;
  double narrowest = std::numeric_limits<double>::infinity(), widest = 0;
  for (const PlannedCell* planned : input.in_column(column)) {
    const double value = mean_score(input, *planned, score);
    if (!std::isfinite(value)) continue;
    const std::optional<double> width = window_width(planned->row->attention_on(column));
    if (!width) {
      levels.push_back({.name = planned->row->name, .x = {}, .y = {value, value}});
      continue;
    }
    narrowest = std::min(narrowest, *width);
    widest = std::max(widest, *width);
    Series& curve = windows[planned->row->from.empty() ? from_scratch : fine_tuned];
    curve.x.push_back(*width);
    curve.y.push_back(value);
  }
  std::erase_if(windows, [](const Series& curve) { return curve.x.size() < 2; });
  if (windows.empty()) return {};
  for (Series& level : levels) {
    level.x = {narrowest, widest};
    windows.push_back(level);
  }
  return windows;
}

}  // namespace

double mean_score(const PageInput& input, const PlannedCell& planned, const std::string& score) {
  std::vector<double> values;
  for (const ComparedRun* run : input.finished(planned)) values.push_back(run->score(score));
  for (const FiledRun& filed : planned.finished_on_file) values.push_back(filed.run.score(score));
  std::erase_if(values, [](double value) { return std::isnan(value); });
  return spread_of(values).mean;
}

std::string draw_widths(const PageInput& input, const PublishedColumn& column) {
  std::string pictures;
  for (const std::string& score : {curve_score(input.table), std::string("loss")}) {
    const Chart chart{.title = text(column.name, ": ", score, " over the width of the window"),
                      .series = curves_over_width(input, column, score),
                      .x_label = "w, keys to either side"};
    if (!chart.series.empty())
      pictures += input.put_picture(column.name, "-" + score + "-widths.svg", chart.title, chart_svg(chart));
  }
  return pictures;
}

}  // namespace heed

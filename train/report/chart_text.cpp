// Points of a chart as characters.
#include "heed/train/report/chart.h"

#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/error.h"

namespace heed {
namespace {

constexpr size_t label_width = 8;

/// Maps values from low .. high to cells 0 .. cells - 1.
struct Scale {
  double low = INFINITY, high = -INFINITY;
  int64_t cells = 1;
  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  int64_t cell(double value) const {
    const double share = high > low ? (value - low) / (high - low) : 0.5;
    return std::clamp<int64_t>(std::llround(share * static_cast<double>(cells - 1)), 0, cells - 1);
  }
};

}  // namespace

std::string chart_text(const Chart& chart, int64_t columns, int64_t rows) {
  const int64_t width = std::max<int64_t>(columns - static_cast<int64_t>(label_width) - 2, 8);
  Scale across{.cells = width}, up{.cells = std::max<int64_t>(rows, 2)};
  const auto place = [&](double x) { return chart.logarithmic_x ? std::log10(x) : x; };
  std::vector<std::pair<double, double>> points;
  for (const Series& series : chart.series) {
    if (series.x.size() != series.y.size()) {
      fail(Fault::data, "chart: the series ", series.name, " has ", series.x.size(), " x and ",
           series.y.size(), " y.");
    }
    for (size_t i = 0; i < series.x.size(); ++i) {
      if (!std::isfinite(place(series.x[i])) || !std::isfinite(series.y[i])) continue;
      points.emplace_back(place(series.x[i]), std::min(series.y[i], chart.max_y));
      across.take(points.back().first);
    }
  }
  if (points.empty()) return "";
  std::vector<double> sums(static_cast<size_t>(width)), counts(static_cast<size_t>(width));
  for (const auto& [x, y] : points) {
    const auto column = static_cast<size_t>(across.cell(x));
    sums[column] += y;
    ++counts[column];
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    if (counts[i] > 0) up.take(sums[i] / counts[i]);
  }
  std::vector<std::string> canvas(static_cast<size_t>(up.cells),
                                  std::string(static_cast<size_t>(width), ' '));
  if (std::isfinite(place(chart.mark))) {
    for (std::string& line : canvas) line[static_cast<size_t>(across.cell(place(chart.mark)))] = '|';
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    if (counts[i] > 0) canvas[static_cast<size_t>(up.cells - 1 - up.cell(sums[i] / counts[i]))][i] = '*';
  }
  std::string out = chart.title.empty() ? "" : chart.title + "\n";
  for (size_t row = 0; row < canvas.size(); ++row) {
    const std::string label = row == 0                   ? tick_text(up.high)
                              : row + 1 == canvas.size() ? tick_text(up.low)
                                                         : std::string();
    out += picture::trimmed_line(picture::padded(label, label_width, picture::Align::right) + " |" +
                                 canvas[row]);
  }
  const auto value = [&](double x) { return tick_text(chart.logarithmic_x ? std::pow(10.0, x) : x); };
  const std::string first = value(across.low), last = value(across.high);
  const size_t gap = std::max<size_t>(static_cast<size_t>(width), first.size() + last.size() + 1) -
                     first.size() - last.size();
  out += std::string(label_width + 1, ' ') + "+" + std::string(static_cast<size_t>(width), '-') + "\n";
  out += std::string(label_width + 2, ' ') + first + std::string(gap, ' ') + last + "\n";
  return out + std::string(label_width + 2, ' ') + chart.x_label + "\n";
}

}  // namespace heed

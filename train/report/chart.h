// Line charts as SVG: several series, ticks at round numbers, linear or logarithmic axes.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace heed {

/// One line of a chart: y over ascending x. Values that are not finite leave a gap.
struct Series {
  std::string name{};          ///< in the legend
  std::vector<double> x{};     ///< ascending
  std::vector<double> y{};     ///< one for each x
  std::vector<double> low{};   ///< lower edge of a band around the line, one for each x; empty: no band
  std::vector<double> high{};  ///< upper edge of the band
};

/// A chart of several series over a common x axis.
struct Chart {
  std::string title{};           ///< above the chart
  std::vector<Series> series{};  ///< in the order of the legend
  std::string x_label = "step";  ///< below the x axis
  bool smooth = false;           ///< draw a running mean on top of long series
  bool logarithmic_x = false;    ///< x above 0, in decades
  bool last_values = false;      ///< the legend has the last value of each series: for curves over time
  double mark = NAN;             ///< an x to mark with a thin line: the best step
  double max_y = INFINITY;       ///< upper bound of y, where the axis ends: 1 for an accuracy
};

/// Axis ticks from at most `low` to at least `high`, about `count` of them: multiples of 1, 2 or 5 times a
/// power of ten.
std::vector<double> axis_ticks(double low, double high, int count);
/// Ticks of a logarithmic axis: powers of ten, with 2 and 5 between them in a short range.
std::vector<double> logarithmic_ticks(double low, double high);

/// Shortens a name to a width of `room` at this font size, with an ellipsis.
std::string fitting(const std::string& name, double room, double font_size);

/// The label of a tick: 0.25, 5e-4, 12k, 1.5M.
std::string tick_text(double value);

/// A complete SVG file, light or dark by the reader's preference. Fault::data when x, y and the band of a
/// series differ in length, a usage error for a logarithmic chart without a value above zero.
std::string chart_svg(const Chart& chart, bool logarithmic = false);

/// A figure element for a page: title, legend, the chart on both scales where possible, and its numbers for
/// the hover script. Empty when no value is finite. Errors as chart_svg().
std::string chart_figure(const Chart& chart);

}  // namespace heed

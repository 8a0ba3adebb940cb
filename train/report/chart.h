// Line charts as SVG: several series over steps, ticks at round numbers, linear or logarithmic.
#pragma once

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// One line of a chart: y over x, x rising. Values that are not finite leave a gap.
struct Series {
  std::string name{};
  std::vector<double> x{}, y{};
};

/// A chart of several series over a common x.
struct Chart {
  std::string title{};
  std::vector<Series> series{};
  std::string x_label = "step";
  bool smooth = false;  ///< draw a running mean over the faint values of long series
  bool logarithmic_x = false;
  double mark = NAN;         ///< an x that is marked with a thin line: the best step
  double y_most = INFINITY;  ///< no y is above it by what it means, so the axis ends there: 1 for a share
};

/// Round numbers from at most `low` to at least `high`, about `count` of them: steps of 1, 2 or 5 times a
/// power of ten.
std::vector<double> axis_ticks(double low, double high, int count);
/// The same for a logarithmic axis: powers of ten, with 2 and 5 between them where the range is short.
std::vector<double> logarithmic_ticks(double low, double high);

/// As much of a name as fits so much room of the picture, with an ellipsis where it is cut.
std::string fitting(const std::string& name, double room, double font_size);

/// A number as a tick says it: 0.25, 5e-4, 12k, 1.5M.
std::string tick_text(double value);

/// A complete SVG file, light or dark by the reader's preference. Throws a data Error when x and y of a
/// series differ in length, a usage Error for a logarithmic chart without a value above zero.
std::string chart_svg(const Chart& chart, bool logarithmic = false);

/// A figure element for a page: title, legend, the chart on both scales where it can be, and its numbers for
/// the hover script. Empty when no value is finite. Throws like chart_svg.
std::string chart_figure(const Chart& chart);

namespace picture {

/// A style element with the colours of the page, for a picture that stands alone.
std::string_view chart_colours();

}  // namespace picture
}  // namespace heed

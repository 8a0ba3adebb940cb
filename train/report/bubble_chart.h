// Bubble charts as SVG: x, y and an area.
#pragma once

#include <cmath>
#include <string>
#include <vector>

namespace heed {

/// One bubble.
struct Bubble {
  std::string name;  ///< stands beside the bubble
  double x = 0;      ///< above 0; the axis is logarithmic
  double y = 0;      ///< in the unit of y_label
  double area = 0;   ///< above zero; the largest bubble's radius is a twelfth of the picture's height
};

/// A bubble chart with a logarithmic x axis and a linear y axis.
struct BubbleChart {
  std::string title;              ///< above the chart
  std::string x_label;            ///< below the x axis
  std::string y_label;            ///< beside the y axis
  std::string area_label;         ///< what the area means, for the legend
  std::vector<Bubble> bubbles{};  ///< drawn from the largest to the smallest
  double max_y = INFINITY;        ///< upper bound of y, where the axis ends: 1 for an accuracy
};

/// A complete SVG file, light or dark by the reader's preference. Fault::data for a bubble without area or
/// with a position that is not finite (x must be above zero); a usage error when there is none.
std::string bubbles_svg(const BubbleChart& chart);
/// The picture without colours, for a page: its style sheet has them, and its content policy forbids others.
std::string bubbles_figure(const BubbleChart& chart);

}  // namespace heed

// Bubble charts as SVG: x, y and an area.
#pragma once

#include <cmath>
#include <string>
#include <vector>

namespace heed {

/// One bubble.
struct Bubble {
  std::string name;
  double x = 0, y = 0;
  double area = 0;  ///< above zero; the largest bubble's radius is a twelfth of the picture's height
};

/// A bubble chart with a logarithmic x axis and a linear y axis.
struct BubbleChart {
  std::string title, x_label, y_label, area_label;
  std::vector<Bubble> bubbles{};
  double y_most = INFINITY;  ///< upper bound of y, where the axis ends: 1 for an accuracy
};

/// A complete SVG file, light or dark by the reader's preference. Fault::data for a bubble without area or
/// with a position that is not finite (x must be above zero); a usage error when there is none.
std::string bubbles_svg(const BubbleChart& chart);
/// The same without colours, for a page: its style sheet has them, and its content policy forbids others.
std::string bubbles_figure(const BubbleChart& chart);

}  // namespace heed

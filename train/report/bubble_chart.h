// Bubbles: two numbers as a place, a third as an area.
#pragma once

#include <cmath>
#include <string>
#include <vector>

namespace heed {

struct Bubble {
  std::string name;
  double x = 0, y = 0;
  double area = 0;  ///< above zero; the largest has a radius of a twelfth of the picture's height
};

/// A picture of bubbles over a logarithmic x and a linear y.
struct BubbleChart {
  std::string title, x_label, y_label, area_label;
  std::vector<Bubble> bubbles{};
  double y_most = INFINITY;  ///< no y is above it by what it means, so the axis ends there: 1 for a share
};

/// A complete SVG file, light or dark by the reader's preference. Throws a data Error for a bubble without
/// area, or with a place that is not finite (x must be above zero); a usage Error when there is none.
std::string bubbles_svg(const BubbleChart& chart);
/// The same without its colours, for a page: its style sheet has them, and its content policy lets no other
/// in.
std::string bubbles_figure(const BubbleChart& chart);

}  // namespace heed

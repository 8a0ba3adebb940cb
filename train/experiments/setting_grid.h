// A grid of settings: several values of one or more settings, and all ways of combining them.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace heed {

/// A point of a grid: a value for each of its settings, by name: {"lr", "0.001"}. Empty: no grid.
using GridPoint = std::vector<std::pair<std::string, std::string>>;

/// The points of a grid such as "lr=1e-4:1e-2:4,weight_decay=0,0.1", in order; the first setting varies
/// slowest. FROM:TO:COUNT stands for that many values, evenly spaced on a logarithmic scale. Fails for a
/// setting without values or with one value twice, for a bad range, and for more than 1,000 points. Errors
/// begin with `source` and the grid.
std::vector<GridPoint> parse_grid(const std::string& grid, const std::string& source = "--grid");

/// The point as text: "lr=0.001, weight_decay=0.1".
std::string point_text(const GridPoint& point);

/// The different numbers of setting `axis` over all points, in rising order; empty unless all of its values
/// are numbers.
std::vector<double> numbers_of(const std::vector<GridPoint>& points, size_t axis);

/// The settings of a point that are at an edge of the grid: the smallest or the greatest of three or more
/// numbers.
GridPoint settings_at_edge(const GridPoint& point, const std::vector<GridPoint>& points);

}  // namespace heed

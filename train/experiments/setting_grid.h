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
/// setting without values or with one value twice, for a bad range, and for more than 1,000 points.
std::vector<GridPoint> parse_grid(const std::string& grid);

/// The point as text: "lr=0.001, weight_decay=0.1".
std::string point_text(const GridPoint& point);

}  // namespace heed

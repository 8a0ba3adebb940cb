// Parses grids of settings.
#include "heed/train/experiments/setting_grid.h"

#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/error.h"
#include "heed/core/io/number_text.h"

namespace heed {
namespace {

constexpr size_t max_points = 1000;

/// A setting of a grid, and its values.
struct GridAxis {
  std::string name;
  std::vector<std::string> values;
};

/// Splits at every `separator`.
std::vector<std::string> pieces(const std::string& words, char separator) {
  std::vector<std::string> out{""};
  for (const char c : words) {
    if (c == separator)
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

/// The values that a piece stands for: itself, or those of FROM:TO:COUNT. `place` begins errors.
std::vector<std::string> values_of(const std::string& piece, const std::string& place) {
  const std::vector<std::string> parts = pieces(piece, ':');
  if (parts.size() != 3) return {piece};
  const auto from = parsed_number(parts[0]), to = parsed_number(parts[1]);
  const auto count = parsed_integer(parts[2]);
  if (!from || !to || !(*from > 0 && *from < *to) || !count || *count < 2 || *count > 100)
    fail(place, "'", shown(piece),
         "' is not FROM:TO:COUNT with two numbers above 0, the smaller first, and 2 to 100 values.");
  std::vector<std::string> out;
  for (int64_t i = 0; i < *count; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(*count - 1);
    out.push_back(formatted("%.4g", *from * std::pow(*to / *from, share)));
  }
  return out;
}

/// The settings of a grid in order. `place` begins errors.
std::vector<GridAxis> axes_of(const std::string& grid, const std::string& place) {
  std::vector<GridAxis> axes;
  for (const std::string& piece : pieces(grid, ',')) {
    const size_t equals = piece.find('=');
    if (equals != piece.npos) {
      axes.push_back({.name = piece.substr(0, equals), .values = {}});
    } else if (axes.empty()) {
      fail(place, "write SETTING=VALUE,VALUE, as in lr=1e-4,1e-3 or lr=1e-4:1e-2:4.");
    }
    GridAxis& axis = axes.back();
    for (const std::string& value : values_of(piece.substr(equals == piece.npos ? 0 : equals + 1), place)) {
      if (value.empty()) fail(place, "a value of ", axis.name, " is empty.");
      if (std::ranges::count(axis.values, value) > 0)
        fail(place, axis.name, " has the value '", shown(value), "' twice. Name each once.");
      axis.values.push_back(value);
    }
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    if (std::ranges::count(axes, axes[i].name, &GridAxis::name) > 1)
      fail(place, axes[i].name, " is there twice. Give all of its values at one place.");
  }
  return axes;
}

}  // namespace

std::vector<GridPoint> parse_grid(const std::string& grid, const std::string& source) {
  const std::string place = text(source, " '", shown(grid), "': ");
  std::vector<GridPoint> points{{}};
  for (const GridAxis& axis : axes_of(grid, place)) {
    std::vector<GridPoint> longer;
    for (const GridPoint& point : points) {
      for (const std::string& value : axis.values) {
        longer.push_back(point);
        longer.back().emplace_back(axis.name, value);
      }
    }
    points = std::move(longer);
    if (points.size() > max_points)
      fail(place, "it has more than ", max_points, " points. Give fewer values.");
  }
  return points;
}

std::string point_text(const GridPoint& point) {
  return picture::joined(point, ", ", [](const auto& one) { return one.first + "=" + one.second; });
}

std::vector<double> numbers_of(const std::vector<GridPoint>& points, size_t axis) {
  std::vector<double> out;
  for (const GridPoint& point : points) {
    const auto number = parsed_number(point[axis].second);
    if (!number) return {};
    out.push_back(*number);
  }
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

GridPoint settings_at_edge(const GridPoint& point, const std::vector<GridPoint>& points) {
  GridPoint out;
  for (size_t axis = 0; axis < point.size(); ++axis) {
    const std::vector<double> numbers = numbers_of(points, axis);
    if (numbers.size() < 3) continue;
    const auto number = parsed_number(point[axis].second);
    if (number == numbers.front() || number == numbers.back()) out.push_back(point[axis]);
  }
  return out;
}

}  // namespace heed

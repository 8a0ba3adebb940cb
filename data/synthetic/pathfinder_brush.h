// Dashes and discs of Pathfinder, drawn at twice the resolution and brought down.
#pragma once

#include <cstdint>
#include <vector>

#include "data/pathfinder.h"

namespace heed {

/// A square patch of side 2 reach + 1 around a point, values 0 .. 1.
struct Stamp {
  int64_t reach = 0;
  std::vector<float> ink;
  std::vector<float> room;  ///< what the dash keeps others out of; empty for a disc
  float at(const std::vector<float>& values, int64_t row, int64_t column) const {
    return values[static_cast<size_t>((row + reach) * (2 * reach + 1) + column + reach)];
  }
};

/// Where a dash may end, from the pivot it turns about.
struct Turn {
  int64_t row = 0, column = 0;
  double direction = 0;  ///< radians, from columns to rows
};

/// Brings a square image down to `to` pixels a side by Lanczos' filter of three lobes, rows first and then
/// columns, each rounded to 0 .. 255 as image libraries do. `image` holds 0 .. 255.
std::vector<float> lanczos_down(const std::vector<float>& image, int64_t from, int64_t to);

/// The stamps of one gap. A dash is drawn between points of the finer grid, so there are few different ones.
class Brush {
 public:
  Brush(const PathfinderOptions& options, int64_t gap);
  /// A dash that begins at the middle and goes into this direction (radians, from columns to rows).
  const Stamp& dash(double direction) const;
  const Stamp& disc() const { return disc_; }
  /// The pixels of a circle around a pivot, each once, by row and column.
  const std::vector<Turn>& turns() const { return turns_; }

 private:
  Stamp make_dash(int64_t row, int64_t column) const;
  int64_t end(double part) const;

  PathfinderOptions options_;
  int64_t gap_, span_;  // span_: a dash's end is at most so far away on the finer grid
  std::vector<Stamp> dashes_;
  Stamp disc_;
  std::vector<Turn> turns_;
};

}  // namespace heed

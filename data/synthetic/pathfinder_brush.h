// Dashes and discs of Pathfinder, drawn at twice the resolution and downscaled.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/data/synthetic/pathfinder.h"

namespace heed {

/// A square patch of side 2 reach + 1 around a point, values 0 to 1.
struct Stamp {
  int64_t reach = 0;        ///< pixels from the middle to the border
  std::vector<float> ink;   ///< brightness of each pixel, [2 reach + 1, 2 reach + 1]
  std::vector<float> room;  ///< how much of each pixel the dash and its gap occupy; empty for a disc
  /// The entry of `ink` or `room`, given as `values`, at an offset from the middle, -reach to reach.
  float at(const std::vector<float>& values, int64_t row, int64_t column) const {
    return values[static_cast<size_t>((row + reach) * (2 * reach + 1) + column + reach)];
  }
};

/// A possible end of a dash, relative to its pivot.
struct Turn {
  int64_t row = 0;       ///< pixels below the pivot
  int64_t column = 0;    ///< pixels right of the pivot
  double direction = 0;  ///< radians, from columns to rows
};

/// Downscales a square image of values 0 .. 255 from `large` to `small` pixels a side with a three-lobed
/// Lanczos filter, rows first, then columns. Both results are rounded to whole numbers 0 .. 255, which image
/// libraries do, too.
std::vector<float> lanczos_down(const std::vector<float>& image, int64_t large, int64_t small);

/// The stamps of images with one gap. The end of a dash is a point of a grid, so there are few different
/// dashes.
class Brush {
 public:
  Brush(const PathfinderOptions& options, int64_t gap);  ///< draws the stamps of all directions once
  /// A dash from the middle into this direction (radians, from columns to rows).
  const Stamp& dash(double direction) const;
  const Stamp& disc() const { return disc_; }  ///< the marker at an end of a curve
  /// The pixels of a circle around a pivot, each once, by row and column.
  const std::vector<Turn>& turns() const { return turns_; }

 private:
  /// The dash from the middle to a point of the finer grid.
  Stamp make_dash(int64_t row, int64_t column) const;
  /// One coordinate of a dash's end on the finer grid, for the sine or cosine of its direction.
  int64_t end_coordinate(double part) const;

  PathfinderOptions options_;
  int64_t gap_;
  int64_t dash_length_;        // on the finer grid
  std::vector<Stamp> dashes_;  // [2 dash_length_ + 1, 2 dash_length_ + 1], by the end's row and column
  Stamp disc_;
  std::vector<Turn> turns_;
};

}  // namespace heed

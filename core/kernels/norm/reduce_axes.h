// How a reduction iterates over its input: the axes that y keeps, and those that are reduced.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>

#include "heed/core/kernels/simd/strided_loops.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// The axes that y keeps and the axes that are reduced, each in row-major order.
struct ReductionAxes {
  StridedLoop<2> kept;     ///< kept axes of x and y
  StridedLoop<1> reduced;  ///< reduced axes of x

  int64_t kept_size() const { return kept.inner * kept.outer; }
  int64_t reduced_size() const { return reduced.inner * reduced.outer; }
  /// Offsets of result i: of its first reduced element in x, and of the result in y.
  std::array<int64_t, 2> kept_at(int64_t i) const {
    auto offsets = kept.at(i / kept.inner);
    for (size_t k = 0; k < 2; ++k) offsets[k] += i % kept.inner * kept.steps[k];
    return offsets;
  }
  /// Offset in x of reduced element i, relative to the first reduced element of its result.
  int64_t reduced_at(int64_t i) const {
    return reduced.at(i / reduced.inner)[0] + i % reduced.inner * reduced.steps[0];
  }
  /// True when adjacent elements in memory belong to one result, false when they belong to adjacent results.
  bool reduces_adjacent() const {
    return kept.inner == 1 || (reduced.inner > 1 && std::abs(reduced.steps[0]) < std::abs(kept.steps[0]));
  }
};

/// Splits the axes of x into those that y keeps and those along which y has extent 1 and x another one.
inline ReductionAxes split_axes(const Tensor& x, const Tensor& y) {
  Shape kept, reduced;
  Strides kept_x, kept_y, reduced_x;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    if (y.extent(axis) == x.extent(axis)) {
      kept.push_back(x.extent(axis));
      kept_x.push_back(x.strides()[axis]);
      kept_y.push_back(y.strides()[axis]);
    } else {
      reduced.push_back(x.extent(axis));
      reduced_x.push_back(x.strides()[axis]);
    }
  }
  return {StridedLoop<2>(kept, {&kept_x, &kept_y}), StridedLoop<1>(reduced, {&reduced_x})};
}

}  // namespace heed::kernel

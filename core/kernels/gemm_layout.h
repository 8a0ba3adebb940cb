// How the factors of a product lie in memory.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace heed::kernel {

/// How a matrix lies: `step` between rows, whose elements are dense, or between columns when it lies
/// transposed.
struct Layout {
  bool transposed = false;
  int64_t step = 1;

  int64_t at(int64_t row, int64_t column) const {
    return transposed ? row + column * step : row * step + column;
  }
};

inline Layout layout(const Tensor& x) {
  const int64_t rows = x.extent(-2), columns = x.extent(-1);
  const int64_t down = x.strides()[-2], right = x.strides()[-1];
  if (columns == 1) return down == 1 && rows > 1 ? Layout{true, rows} : Layout{false, rows == 1 ? 1 : down};
  if (right == 1) return {false, rows == 1 ? columns : down};
  return {true, right};
}

/// Whether rounding saves more than it costs.
inline bool large(const Tensor& a, const Tensor& c) {
  constexpr int64_t least = 32;
  return c.extent(-2) >= least && c.extent(-1) >= least && a.extent(-1) >= least;
}

}  // namespace heed::kernel

// Memory layouts of the factors of a product.
#pragma once

#include <cstdint>

#include "heed/core/tensor.h"

namespace heed::kernel {

/// The layout of a matrix: `step` elements between its dense rows, or between its dense columns when it is
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

/// The smallest extent of a product whose factors are rounded. Below it, rounding costs more than it saves.
inline constexpr int64_t least_rounded = 32;

inline bool large(const Tensor& a, const Tensor& c) {
  return c.extent(-2) >= least_rounded && c.extent(-1) >= least_rounded && a.extent(-1) >= least_rounded;
}

}  // namespace heed::kernel

// Walking strided tensors on the CPU: axes that lie together are merged, and the last one becomes the inner
// loop.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "heed/core/ceil_div.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/core/shape.h"

namespace heed::kernel {

/// A common shape of N operands. `inner` elements a run, `steps[k]` apart in operand k; `outer` runs.
template <size_t N>
struct StridedLoop {
  using Offsets = std::array<int64_t, N>;

  StridedLoop(const Shape& shape, const std::array<const Strides*, N>& strides) {
    for (int64_t axis = shape.rank() - 1; axis >= 0; --axis) {
      if (shape[axis] == 1) continue;
      Offsets next{};
      for (size_t k = 0; k < N; ++k) next[k] = (*strides[k])[axis];
      if (axes > 0 && joins(next)) {
        extent[axes - 1] *= shape[axis];
      } else {
        extent[axes] = shape[axis];
        stride[axes++] = next;
      }
    }
    if (axes == 0) axes = 1;
    inner = extent[0];
    steps = stride[0];
    for (size_t axis = 1; axis < axes; ++axis) outer *= extent[axis];
  }

  /// Where run `row` begins in each operand.
  Offsets at(int64_t row) const {
    Offsets offsets{};
    for (size_t axis = 1; axis < axes; ++axis) {
      const int64_t index = row % extent[axis];
      row /= extent[axis];
      for (size_t k = 0; k < N; ++k) offsets[k] += index * stride[axis][k];
    }
    return offsets;
  }

  /// From one run to the next; `index` counts the outer axes.
  void step(std::array<int64_t, Extents::most>& index, Offsets& offsets) const {
    for (size_t axis = 1; axis < axes; ++axis) {
      for (size_t k = 0; k < N; ++k) offsets[k] += stride[axis][k];
      if (++index[axis] < extent[axis]) return;
      for (size_t k = 0; k < N; ++k) offsets[k] -= extent[axis] * stride[axis][k];
      index[axis] = 0;
    }
  }

  size_t axes = 0;  ///< axis 0 is the innermost
  std::array<int64_t, Extents::most> extent = {1, 1, 1, 1, 1, 1};
  std::array<Offsets, Extents::most> stride{};
  int64_t inner = 1, outer = 1;
  Offsets steps{};

 private:
  bool joins(const Offsets& next) const {
    for (size_t k = 0; k < N; ++k) {
      if (next[k] != stride[axes - 1][k] * extent[axes - 1]) return false;
    }
    return true;
  }
};

/// Calls f(offsets, count) for runs that together cover the walk, in parallel. Pieces depend on the shape
/// only.
template <size_t N, class F>
void for_runs(const StridedLoop<N>& walk, F&& f, int64_t grain = light_grain) {
  if (walk.inner == 0 || walk.outer == 0) return;
  if (walk.inner >= 2 * grain) {
    const int64_t cuts = ceil_div(walk.inner, grain);
    parallel_for(walk.outer * cuts, [&](int64_t i) {
      const int64_t first = i % cuts * grain;
      auto offsets = walk.at(i / cuts);
      for (size_t k = 0; k < N; ++k) offsets[k] += first * walk.steps[k];
      f(offsets, std::min(grain, walk.inner - first));
    });
    return;
  }
  parallel_rows(walk.outer, grain / walk.inner, [&](int64_t begin, int64_t end) {
    auto offsets = walk.at(begin);
    std::array<int64_t, Extents::most> index{};
    for (int64_t rest = begin, axis = 1; rest > 0; ++axis) {
      index[static_cast<size_t>(axis)] = rest % walk.extent[static_cast<size_t>(axis)];
      rest /= walk.extent[static_cast<size_t>(axis)];
    }
    for (int64_t row = begin; row < end; ++row) {
      f(offsets, walk.inner);
      walk.step(index, offsets);
    }
  });
}

}  // namespace heed::kernel

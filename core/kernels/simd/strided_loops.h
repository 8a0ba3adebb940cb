// Loops over strided tensors on the CPU: adjacent contiguous axes are merged, and the last axis becomes the
// inner loop.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "heed/core/ceil_div.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/core/shape.h"

namespace heed::kernel {

/// Loop over the elements of N operands of one shape: `outer` runs, each of `inner` elements along the
/// innermost axis. Neighbouring elements of a run are steps[k] apart in operand k.
template <size_t N>
struct StridedLoop {
  using Offsets = std::array<int64_t, N>;

  StridedLoop(const Shape& shape, const std::array<const Strides*, N>& strides) {
    for (int64_t axis = shape.rank() - 1; axis >= 0; --axis) {
      if (shape[axis] == 1) continue;
      Offsets axis_strides{};
      for (size_t k = 0; k < N; ++k) axis_strides[k] = (*strides[k])[axis];
      if (axes > 0 && continues_last_axis(axis_strides)) {
        extent[axes - 1] *= shape[axis];
      } else {
        extent[axes] = shape[axis];
        stride[axes++] = axis_strides;
      }
    }
    if (axes == 0) axes = 1;
    inner = extent[0];
    steps = stride[0];
    for (size_t axis = 1; axis < axes; ++axis) outer *= extent[axis];
  }

  /// Offset of the first element of a run in each operand.
  Offsets at(int64_t run) const {
    Offsets offsets{};
    for (size_t axis = 1; axis < axes; ++axis) {
      const int64_t index = run % extent[axis];
      run /= extent[axis];
      for (size_t k = 0; k < N; ++k) offsets[k] += index * stride[axis][k];
    }
    return offsets;
  }

  /// Advances `offsets` to the next run; `index` is the index of the run along each outer axis.
  void advance(std::array<int64_t, Extents::max_rank>& index, Offsets& offsets) const {
    for (size_t axis = 1; axis < axes; ++axis) {
      for (size_t k = 0; k < N; ++k) offsets[k] += stride[axis][k];
      if (++index[axis] < extent[axis]) return;
      for (size_t k = 0; k < N; ++k) offsets[k] -= extent[axis] * stride[axis][k];
      index[axis] = 0;
    }
  }

  /// The outer axis along which operand 0 is contiguous while the inner axis is contiguous in operand 1
  /// alone, as in a transposition; 0 where there is none, or where one of the two axes is shorter than
  /// `min_extent`.
  size_t transposed_axis(int64_t min_extent) const {
    if (steps[0] == 1 || steps[1] != 1 || inner < min_extent) return 0;
    for (size_t axis = 1; axis < axes; ++axis) {
      if (stride[axis][0] == 1 && extent[axis] >= min_extent) return axis;
    }
    return 0;
  }

  size_t axes = 0;  ///< axis 0 is the innermost
  std::array<int64_t, Extents::max_rank> extent = {1, 1, 1, 1, 1, 1};
  std::array<Offsets, Extents::max_rank> stride{};
  int64_t inner = 1;  ///< elements of a run
  int64_t outer = 1;  ///< number of runs
  Offsets steps{};    ///< strides of the innermost axis

 private:
  /// True where an axis with these strides and the last axis are one contiguous axis in all operands.
  bool continues_last_axis(const Offsets& axis_strides) const {
    for (size_t k = 0; k < N; ++k) {
      if (axis_strides[k] != stride[axes - 1][k] * extent[axes - 1]) return false;
    }
    return true;
  }
};

/// Calls f(offsets, count) in parallel for runs that together cover the loop. Long runs are cut into pieces
/// of `grain` elements; how they are cut depends on the shape only.
template <size_t N, class F>
void for_runs(const StridedLoop<N>& loop, F&& f, int64_t grain = light_grain) {
  if (loop.inner == 0 || loop.outer == 0) return;
  if (loop.inner >= 2 * grain) {
    const int64_t pieces_per_run = ceil_div(loop.inner, grain);
    parallel_for(loop.outer * pieces_per_run, [&](int64_t piece) {
      const int64_t first = piece % pieces_per_run * grain;
      auto offsets = loop.at(piece / pieces_per_run);
      for (size_t k = 0; k < N; ++k) offsets[k] += first * loop.steps[k];
      f(offsets, std::min(grain, loop.inner - first));
    });
    return;
  }
  parallel_rows(loop.outer, grain / loop.inner, [&](int64_t begin, int64_t end) {
    auto offsets = loop.at(begin);
    std::array<int64_t, Extents::max_rank> index{};
    size_t axis = 1;
    for (int64_t remaining = begin; remaining > 0; remaining /= loop.extent[axis++])
      index[axis] = remaining % loop.extent[axis];
    for (int64_t run = begin; run < end; ++run) {
      f(offsets, loop.inner);
      loop.advance(index, offsets);
    }
  });
}

/// out[i] = f(in[i]...) for contiguous operands. gnu::flatten inlines every call, because a call inside the
/// loop would keep it from becoming vector code.
template <class F, class T, class... In>
[[gnu::flatten]] void apply_contiguous(const F& f, int64_t count, T* out, const In*... in) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) out[i] = f(in[i]...);
}

}  // namespace heed::kernel

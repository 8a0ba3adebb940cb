// Filling and copying on the CPU.
#include "heed/core/kernels/elementwise/copy.h"

#include <cstring>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/elementwise/convert.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/kernels/simd/strided_loops.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// to[i to_step] = from[i from_step] for i < count, converted to the type of `to`.
template <class From, class To>
void copy_run(const From* from, int64_t from_step, To* to, int64_t to_step, int64_t count) {
  if (from_step == 1 && to_step == 1) {
    if constexpr (std::is_same_v<From, To>) {
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(To));
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) to[i] = converted<To>(from[i]);
    }
  } else if (to_step == 1 && from_step == 0) {
    std::fill_n(to, count, converted<To>(*from));
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * to_step] = converted<To>(from[i * from_step]);
  }
}

constexpr int64_t tile = 16;

/// One tile of a transposition: reads along rows of `from`, writes along rows of `to`, so each cache line is
/// used at once.
template <class From, class To>
void transpose_tile(const From* from, int64_t from_stride, To* to, int64_t to_stride, int64_t rows,
                    int64_t columns) {
  To buffer[tile][tile];
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) buffer[j][i] = converted<To>(from[i * from_stride + j]);
  }
  for (int64_t j = 0; j < columns; ++j) {
    std::memcpy(to + j * to_stride, buffer[j], static_cast<size_t>(rows) * sizeof(To));
  }
}

/// The outer axis along which `from` is dense while the inner one is not; 0 when there is none.
size_t crossed_axis(const StridedLoop<2>& walk) {
  if (walk.steps[0] == 1 || walk.steps[1] != 1 || walk.inner < 4) return 0;
  for (size_t axis = 1; axis < walk.axes; ++axis) {
    if (walk.stride[axis][0] == 1 && walk.extent[axis] >= 4) return axis;
  }
  return 0;
}

/// Copies where `from` is dense along `axis` and `to` along the innermost axis, in squares of 16 x 16. One
/// task is some bands of 16 places of `axis`, each over the whole innermost axis.
template <class From, class To>
void copy_crossed(StridedLoop<2> walk, size_t axis, const From* from, To* to) {
  const int64_t across = walk.extent[axis];
  const int64_t to_stride = walk.stride[axis][1];
  const int64_t bands = ceil_div(across, tile);
  walk.outer /= across;
  walk.extent[axis] = 1;
  const int64_t bands_a_piece = std::max<int64_t>(1, light_grain / (tile * walk.inner));
  parallel_rows(walk.outer * bands, bands_a_piece, [&](int64_t begin, int64_t end) {
    for (int64_t band = begin; band < end; ++band) {
      const auto offsets = walk.at(band / bands);
      const int64_t first = (band % bands) * tile;
      const int64_t columns = std::min(tile, across - first);
      for (int64_t row = 0; row < walk.inner; row += tile) {
        transpose_tile(from + offsets[0] + row * walk.steps[0] + first, walk.steps[0],
                       to + offsets[1] + first * to_stride + row, to_stride, std::min(tile, walk.inner - row),
                       columns);
      }
    }
  });
}

}  // namespace

/// x[i] = value for every element, in parallel over runs along the inner axis.
template <>
void Fill::cpu<here>(const Tensor& x, double value) {
  visit(x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T number = converted<T>(value);
    T* to = x.data<T>();
    const StridedLoop<1> walk(x.shape(), {&x.strides()});
    const int64_t step = walk.steps[0];
    for_runs(walk, [&](const auto& at, int64_t count) {
      if (step == 1) {
        std::fill_n(to + at[0], count, number);
      } else {
        for (int64_t i = 0; i < count; ++i) to[at[0] + i * step] = number;
      }
    });
  });
}

/// to[i] = from[i], converted, for every element: in squares where the two are dense along different axes,
/// else in parallel over runs along the inner axis.
template <>
void Copy::cpu<here>(const Tensor& from, const Tensor& to) {
  const StridedLoop<2> walk(to.shape(), {&from.strides(), &to.strides()});
  const size_t crossed = crossed_axis(walk);
  visit(from.dtype(), [&](auto from_type) {
    using From = typename decltype(from_type)::type;
    const From* source = from.data<From>();
    visit(to.dtype(), [&](auto to_type) {
      using To = typename decltype(to_type)::type;
      To* target = to.data<To>();
      if (crossed > 0) return copy_crossed(walk, crossed, source, target);
      for_runs(walk, [&](const auto& at, int64_t count) {
        copy_run(source + at[0], walk.steps[0], target + at[1], walk.steps[1], count);
      });
    });
  });
}

}  // namespace heed::kernel

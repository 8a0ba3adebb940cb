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

constexpr int64_t tile = 16;  ///< rows and columns that transpose_tile() copies at once

/// Transposes one tile, to[j, i] = from[i, j]: reads along rows of `from` and writes along rows of `to`, so
/// that all of a cache line is used at once.
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

/// Copies in tiles of 16 x 16, where `from` is contiguous along `axis` and `to` along the innermost axis. A
/// band is 16 indices of `axis` over the whole innermost axis; one task is some bands.
template <class From, class To>
void copy_transposed(StridedLoop<2> loop, size_t axis, const From* from, To* to) {
  const int64_t axis_extent = loop.extent[axis], to_stride = loop.stride[axis][1];
  const int64_t bands = ceil_div(axis_extent, tile);
  loop.outer /= axis_extent;
  loop.extent[axis] = 1;
  const int64_t bands_per_task = std::max<int64_t>(1, light_grain / (tile * loop.inner));
  parallel_rows(loop.outer * bands, bands_per_task, [&](int64_t begin, int64_t end) {
    for (int64_t band = begin; band < end; ++band) {
      const auto offsets = loop.at(band / bands);
      const int64_t first = (band % bands) * tile;
      const int64_t columns = std::min(tile, axis_extent - first);
      for (int64_t row = 0; row < loop.inner; row += tile) {
        transpose_tile(from + offsets[0] + row * loop.steps[0] + first, loop.steps[0],
                       to + offsets[1] + first * to_stride + row, to_stride, std::min(tile, loop.inner - row),
                       columns);
      }
    }
  });
}

}  // namespace

/// x[i] = value for every element, in parallel over runs along the inner axis.
template <>
void Fill::cpu<target_isa>(const Tensor& x, double value) {
  visit(x.dtype(), [&]<class T>(Type<T>) {
    const T number = converted<T>(value);
    const StridedLoop<1> loop(x.shape(), {&x.strides()});
    const int64_t step = loop.steps[0];
    for_runs(loop, [&](const auto& offsets, int64_t count) {
      T* const run = x.data<T>() + offsets[0];
      if (step == 1) {
        std::fill_n(run, count, number);
      } else {
        for (int64_t i = 0; i < count; ++i) run[i * step] = number;
      }
    });
  });
}

/// to[i] = from[i], converted, for every element: in tiles where the two are contiguous along different axes,
/// else in parallel over runs along the inner axis.
template <>
void Copy::cpu<target_isa>(const Tensor& from, const Tensor& to) {
  const StridedLoop<2> loop(to.shape(), {&from.strides(), &to.strides()});
  constexpr int64_t min_transposed_extent = 4;  // shorter axes gain nothing from tiles
  const size_t axis = loop.transposed_axis(min_transposed_extent);
  visit(from.dtype(), [&]<class From>(Type<From>) {
    const From* source = from.data<From>();
    visit(to.dtype(), [&]<class To>(Type<To>) {
      To* target = to.data<To>();
      if (axis > 0) return copy_transposed(loop, axis, source, target);
      for_runs(loop, [&](const auto& offsets, int64_t count) {
        copy_run(source + offsets[0], loop.steps[0], target + offsets[1], loop.steps[1], count);
      });
    });
  });
}

}  // namespace heed::kernel

// How warps of a GPU share the rows of layer normalisation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/kernels/elementwise/activation_types.h"

namespace heed::kernel {

inline constexpr int64_t short_width = 1024;  ///< up to here a warp takes a row

/// The numbers of a row that a lane keeps: out[j] is number lane + 32 j, and 0 behind the last one. Nothing
/// branches, so that all reads are under way at once.
template <class S, int per_lane>
__device__ void read_row(const S* row, int width, Computed<S> (&out)[per_lane]) {
  S numbers[per_lane];
  for (int j = 0; j < per_lane; ++j) numbers[j] = row[std::min(cuda::lane() + j * cuda::lanes, width - 1)];
  for (int j = 0; j < per_lane; ++j)
    out[j] = cuda::lane() + j * cuda::lanes < width ? Computed<S>(numbers[j]) : Computed<S>(0);
}

/// Calls f(std::integral_constant<int, per_lane>), per_lane being the numbers of a row that each lane keeps.
template <class F>
void with_per_lane(int64_t width, F&& f) {
  if (width <= 2 * cuda::lanes) return f(std::integral_constant<int, 2>{});
  if (width <= 4 * cuda::lanes) return f(std::integral_constant<int, 4>{});
  if (width <= 8 * cuda::lanes) return f(std::integral_constant<int, 8>{});
  if (width <= 16 * cuda::lanes) return f(std::integral_constant<int, 16>{});
  if (width <= 24 * cuda::lanes) return f(std::integral_constant<int, 24>{});
  f(std::integral_constant<int, short_width / cuda::lanes>{});
}

}  // namespace heed::kernel

// States of causal sums on a device: the prefix (or suffix) sums over segments.
#pragma once

#include "heed/core/cuda/device/grid.h"
#include "heed/core/kernels/attention/head_view.h"

namespace heed::kernel {

/// States [heads, segments, rows, row_width], of which `columns` are used: replaces the sum of each segment
/// by the sum of all segments before it, or after it where `from_right`, starting from `outside` (null:
/// zero). `total` (may be null) receives the sum of all.
template <class T>
__global__ void pass_states_on(T* states, int64_t heads, int64_t H, int64_t segments, int64_t rows,
                               int64_t columns, int64_t row_width, HeadView<const T> outside,
                               HeadView<T> total, bool from_right) {
  const int64_t cells = rows * columns, at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= heads * cells) return;
  const int64_t head = at / cells, row = at % cells / columns, column = at % columns;
  T running = outside.data == nullptr ? T(0) : outside.at(head / H, head % H, row)[column];
  for (int64_t n = 0; n < segments; ++n) {
    T& state = states[(head * segments + (from_right ? segments - 1 - n : n)) * rows * row_width +
                      row * row_width + column];
    const T part = state;
    state = running;
    running += part;
  }
  if (total.data != nullptr) total.at(head / H, head % H, row)[column] = running;
}

template <class T>
void start_pass_states_on(T* states, int64_t B, int64_t H, int64_t segments, int64_t rows, int64_t columns,
                          int64_t row_width, const Tensor& outside, const Tensor& total, bool from_right) {
  cuda::run(
      pass_states_on<T>,
      {.blocks = dim3(static_cast<unsigned>((B * H * rows * columns + 255) / 256)), .threads = dim3(256)},
      states, B * H, H, segments, rows, columns, row_width, HeadView<const T>(outside), HeadView<T>(total),
      from_right);
}

}  // namespace heed::kernel

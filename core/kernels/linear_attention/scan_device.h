// States of causal sums on a device: the prefix (or suffix) sums over segments.
#pragma once

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/kernels/attention/head_view.h"

namespace heed::kernel {

/// Exclusive prefix sums over segments (suffix sums where `from_right`) of states [heads, segments, rows,
/// row_width], in place, for the first `columns` of each row, by one thread per number. The sums start from
/// `outside` (null: zero); `total`, which may be null, receives the sum of all.
template <class T>
__global__ void accumulate_segments(T* states, int64_t heads, int64_t H, int64_t segments, int64_t rows,
                                    int64_t columns, int64_t row_width, HeadView<const T> outside,
                                    HeadView<T> total, bool from_right) {
  const int64_t numbers = rows * columns, at = cuda::global_thread();
  if (at >= heads * numbers) return;
  const int64_t head = at / numbers, row = at % numbers / columns, column = at % columns;
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
void start_accumulate_segments(T* states, int64_t B, int64_t H, int64_t segments, int64_t rows,
                               int64_t columns, int64_t row_width, const Tensor& outside, const Tensor& total,
                               bool from_right) {
  cuda::run(accumulate_segments<T>, cuda::block_per_row(ceil_div(B * H * rows * columns, cuda::block)),
            states, B * H, H, segments, rows, columns, row_width, HeadView<const T>(outside),
            HeadView<T>(total), from_right);
}

}  // namespace heed::kernel

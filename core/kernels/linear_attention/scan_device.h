// States that causal sums pass on from segment to segment, on a device: sums of a segment, then what lies
// before or after each.
#pragma once

#include "core/cuda/products.h"
#include "core/kernels/head_rows.h"

namespace heed::kernel {

/// Sums over the positions of each segment of a_t b_t^T: [B, H, segments, rows, columns]. A block makes 64
/// rows and 64 columns of one segment. Launch it by start_segment_sums().
template <class T>
__global__ void __launch_bounds__(cuda::tile_threads)
    segment_sums(Heads<const T> a, Heads<const T> b, int64_t H, int64_t length, int64_t segment, int64_t rows,
                 int64_t columns, T* states) {
  constexpr int wide = cuda::tile_rows, ld = cuda::tile_ld(wide);
  T* a_tile = cuda::shared<T>();
  T* b_tile = a_tile + cuda::tile_size(wide);
  const cuda::Share me;
  const int64_t segments = (length + segment - 1) / segment, at = blockIdx.x;
  const int64_t head = at / segments, begin = at % segments * segment;
  const int64_t end = min(begin + segment, length);
  const int64_t row = int64_t{blockIdx.y} * wide, column = int64_t{blockIdx.z} * wide;
  T sum[cuda::mine][4];
  cuda::clear(sum);
  for (int64_t t = begin; t < end; t += wide) {
    cuda::fetch_tile<T, wide>(a_tile, a.at(head / H, head % H, t) + row, a.ld, end - t, rows - row);
    cuda::fetch_tile<T, wide>(b_tile, b.at(head / H, head % H, t) + column, b.ld, end - t, columns - column);
    cuda::commit_copies();
    cuda::wait_for_copies<0>();
    __syncthreads();
    cuda::outer<T, ld, ld>(me, a_tile, b_tile, wide, sum);
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < cuda::mine; ++r) {
    const int64_t to = row + me.row(r);
    if (to < rows)
      cuda::put_columns(me, sum[r], columns - column, states + (at * rows + to) * columns + column);
  }
}

template <class T>
void start_segment_sums(const Tensor& a, const Tensor& b, int64_t segment, T* states) {
  const int64_t length = a.extent(2), rows = a.extent(3), columns = b.extent(3);
  const auto tiles = [](int64_t n) { return static_cast<unsigned>(cuda::tiles_of(n)); };
  const int64_t segments = (length + segment - 1) / segment;
  cuda::run(segment_sums<T>,
            {.blocks = dim3(static_cast<unsigned>(a.extent(0) * a.extent(1) * segments), tiles(rows),
                            tiles(columns)),
             .threads = dim3(cuda::tile_threads),
             .shared_bytes = 2 * cuda::tile_size(cuda::tile_rows) * static_cast<int>(sizeof(T))},
            Heads<const T>(a), Heads<const T>(b), a.extent(1), length, segment, rows, columns, states);
}

/// States [heads, segments, rows, wide], of which `columns` count: sums become what lies before each segment,
/// or after it where `back`, beginning with `outside` (null: zero); `total` (null: nobody asks) receives what
/// is left.
template <class T>
__global__ void pass_states_on(T* states, int64_t heads, int64_t H, int64_t segments, int64_t rows,
                               int64_t columns, int64_t wide, Heads<const T> outside, Heads<T> total,
                               bool back) {
  const int64_t each = rows * columns, at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= heads * each) return;
  const int64_t head = at / each, row = at % each / columns, column = at % columns;
  T running = outside.data == nullptr ? T(0) : outside.at(head / H, head % H, row)[column];
  for (int64_t n = 0; n < segments; ++n) {
    T& state = states[(head * segments + (back ? segments - 1 - n : n)) * rows * wide + row * wide + column];
    const T part = state;
    state = running;
    running += part;
  }
  if (total.data != nullptr) total.at(head / H, head % H, row)[column] = running;
}

template <class T>
void start_pass_states_on(T* states, int64_t B, int64_t H, int64_t segments, int64_t rows, int64_t columns,
                          int64_t wide, const Tensor& outside, const Tensor& total, bool back) {
  cuda::run(
      pass_states_on<T>,
      {.blocks = dim3(static_cast<unsigned>((B * H * rows * columns + 255) / 256)), .threads = dim3(256)},
      states, B * H, H, segments, rows, columns, wide, Heads<const T>(outside), Heads<T>(total), back);
}

}  // namespace heed::kernel

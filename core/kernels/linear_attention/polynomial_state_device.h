// Sums of monomials over tokens on a device: one block per segment, 64 features and W columns.
#pragma once

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/linear_attention/polynomial_device.h"
#include "heed/core/kernels/linear_attention/scan_device.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {

/// The tokens of a sum: keys with [v, 1], or queries with g.
template <class T>
struct PolynomialTokens {
  const T* rows;  ///< mapped, [B H length, row_width]
  AugmentedRows<T> augmented;
  int64_t length, segment;
  bool query;
};

/// states [heads, segments, features, state_width] = sums over the tokens of each segment of features times
/// their augmented rows. One block per segment of a head, 64 features and W columns.
template <class T, int W>
__global__ void __launch_bounds__(cuda::tile_threads)
    feature_sums(PolynomialShape<T> x, PolynomialTokens<T> tokens, T* states) {
  constexpr int ld = cuda::tile_ld(cuda::tile_rows), ldw = cuda::tile_ld(W), C = W / 16;
  T* phi = cuda::shared<T>();
  T* v_tile = phi + cuda::tile_size(cuda::tile_rows);
  T* last = v_tile + cuda::tile_size(W);
  T* halves = last + cuda::tile_rows;
  const KeepMask keep_mask{reinterpret_cast<uint8_t*>(halves + 2 * cuda::tile_rows)};
  const cuda::TileThread thread;
  const int64_t segments = ceil_div(tokens.length, tokens.segment), at = blockIdx.x, head = at / segments;
  const int64_t b = head / x.H, h = head % x.H, begin = at % segments * tokens.segment;
  const int64_t visible = tokens.query ? tokens.length : x.keys_of(b);
  const int64_t end = min(begin + tokens.segment, visible);
  const int64_t first = int64_t{blockIdx.y} * cuda::tile_rows, column = int64_t{blockIdx.z} * W;
  const int feature = static_cast<int>(threadIdx.x) % cuda::tile_rows,
            half = static_cast<int>(threadIdx.x) / cuda::tile_rows;
  T sum[cuda::rows_per_thread][C], last_sum = T(0);
  cuda::clear(sum);
  for (int64_t t = begin; t < end; t += cuda::tile_rows) {
    const int count = static_cast<int>(min(end - t, int64_t{cuda::tile_rows}));
    cuda::fetch_tile<T, W>(v_tile, tokens.augmented.rows.at(b, h, t) + column, tokens.augmented.rows.ld,
                           count, x.dv - column);
    cuda::commit_copies();
    if (x.drops_monomials()) {
      draw_features(x, keep_mask, tokens.query ? x.query_number(head, t) : x.key_number(head, t), count,
                    first);
      __syncthreads();
    }
    make_features(x, tokens.rows + (head * tokens.length + t) * x.row_width, count, first, tokens.query,
                  x.drops_monomials() ? &keep_mask : nullptr, phi);
    if (static_cast<int>(threadIdx.x) < cuda::tile_rows) {
      const int64_t token = t + threadIdx.x;
      last[threadIdx.x] = token < end ? tokens.augmented.last_of(head, tokens.length, token) : T(0);
    }
    cuda::wait_for_copies<0>();
    __syncthreads();
    // sum [64 features, W] += phi^T v_tile. Two threads share the last column of a feature.
    cuda::outer<T, ld, ldw>(thread, phi, v_tile, cuda::tile_rows, sum);
    if (column == 0) {
      for (int token = half; token < cuda::tile_rows; token += 2)
        last_sum += phi[token * ld + feature] * last[token];
    }
    __syncthreads();
  }
  halves[half * cuda::tile_rows + feature] = last_sum;
  __syncthreads();
  T* to = states + at * x.table.count * x.state_width();
#pragma unroll
  for (int r = 0; r < cuda::rows_per_thread; ++r) {
    const int64_t row = first + thread.row(r);
    if (row < x.table.count)
      cuda::put_columns(thread, sum[r], x.dv - column, to + row * x.state_width() + column);
  }
  if (column == 0 && half == 0 && first + feature < x.table.count)
    to[(first + feature) * x.state_width() + x.dv] = halves[feature] + halves[cuda::tile_rows + feature];
}

/// Starts feature_sums(): one block per segment of a head, 64 features and W = 32 or 64 columns.
template <class T>
void start_feature_sums(const PolynomialShape<T>& x, const PolynomialTokens<T>& tokens, T* states) {
  const int64_t segments = ceil_div(tokens.length, tokens.segment);
  const auto start = [&]<int W>(std::integral_constant<int, W>) {
    const int numbers = cuda::tile_size(cuda::tile_rows) + cuda::tile_size(W) + 3 * cuda::tile_rows;
    cuda::run(feature_sums<T, W>,
              {.blocks = dim3(static_cast<unsigned>(x.B * x.H * segments),
                              static_cast<unsigned>(cuda::tiles_of(x.table.count)),
                              static_cast<unsigned>(std::max<int64_t>(1, ceil_div(x.dv, W)))),
               .threads = dim3(cuda::tile_threads),
               .shared_bytes = numbers * static_cast<int>(sizeof(T)) + KeepMask::bytes},
              x, tokens, states);
  };
  if (x.dv <= 32) {
    start(std::integral_constant<int, 32>{});
  } else {
    start(std::integral_constant<int, 64>{});
  }
}

/// Length of a segment: balances the operations of its pairs and of its state, so all states together need no
/// more memory than their inputs. With dropout of monomials, pairs go through all features, so a segment is
/// one tile: its pairs take less time than writing and reading its state, which at d = dv = 64 is eleven
/// times as large as the tile's q, k and v.
template <class T>
int64_t polynomial_segment_length(const PolynomialShape<T>& x) {
  const int64_t balanced = x.table.count * (x.dv + 1) / std::max<int64_t>(1, x.d + x.dv);
  return x.drops_monomials() ? cuda::tile_rows
                             : std::max<int64_t>(1, cuda::tiles_of(balanced)) * cuda::tile_rows;
}

/// Length of a segment where only the total of all segments is needed: enough segments to fill a device, few
/// enough to be added quickly.
template <class T>
int64_t balanced_segment_length(const PolynomialShape<T>& x, int64_t length) {
  constexpr int64_t blocks_of_device = 1024;
  const int64_t blocks = std::max<int64_t>(1, x.B * x.H * cuda::tiles_of(x.table.count));
  const int64_t segments = std::max<int64_t>(1, blocks_of_device / blocks);
  return std::max<int64_t>(4, cuda::tiles_of(ceil_div(length, segments))) * cuda::tile_rows;
}

/// The state before each segment of keys, [B, H, segments, features, state_width]; sets `segment` to the
/// length of segments. Empty where one segment holds all keys and there is no start.
template <class T>
Tensor polynomial_prefixes(const PolynomialShape<T>& x, const MappedRows<T>& keys, const Tensor& v,
                           const Tensor& start, int64_t& segment) {
  segment = polynomial_segment_length(x);
  const int64_t segments = ceil_div(x.keys, segment);
  if (segments <= 1 && !start) return {};
  const Tensor states(Shape{std::max<int64_t>(1, x.B * x.H * segments * x.table.count * x.state_width())},
                      v.dtype(), v.device());
  const PolynomialTokens<T> tokens{.rows = keys.rows.template data<T>(),
                                   .augmented = {HeadView<const T>(v)},
                                   .length = x.keys,
                                   .segment = segment,
                                   .query = false};
  start_feature_sums(x, tokens, states.data<T>());
  start_accumulate_segments(states.data<T>(), x.B, x.H, segments, x.table.count, x.dv + 1, x.state_width(),
                            start, Tensor(), false);
  Count::add(2 * x.B * x.H * x.keys * x.table.count * (x.dv + 1));
  return states;
}

}  // namespace heed::kernel

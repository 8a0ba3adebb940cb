// States of PolynomialAttention on a device: sums of features over the tokens of each segment, and prefix (or
// suffix) sums over segments.
#pragma once

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/linear_attention/polynomial_device.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {

/// Tokens that are summed into states. A state [features, dv + 1] is the sum over tokens of features times
/// [values, sum factor]: of keys times [v, 1], or of queries times g, the gradients of the weighted sum of
/// values and of the sum of weights. Its last column is the sum column.
template <class T>
struct PolynomialTokens {
  TokenRole role;
  const T* rows;   ///< mapped, [B H length, row_width]
  int64_t length;  ///< tokens of a head, or of the longest sequence
  int64_t segment;
  HeadView<const T> values;
  const T* sum_factors = nullptr;  ///< number of token n of all heads at n sum_factor_ld; null: ones
  int64_t sum_factor_ld = 0;

  __device__ T sum_factor(int64_t head, int64_t t) const {
    return sum_factors == nullptr ? T(1) : sum_factors[(head * length + t) * sum_factor_ld];
  }
};

/// states [heads, segments, features, state_width] = sums over the tokens of each segment of features times
/// [values, sum factor]. One block per segment of a head, 64 features and W columns.
template <class T, int W>
__global__ void __launch_bounds__(cuda::tile_threads)
    sum_features(PolynomialShape<T> x, PolynomialTokens<T> tokens, T* states) {
  constexpr int ld = cuda::tile_ld(cuda::tile_rows), ldw = cuda::tile_ld(W), C = W / 16;
  T* features = cuda::shared<T>();                          // [token, feature]
  T* values = features + cuda::tile_size(cuda::tile_rows);  // [token, W columns]
  T* sum_factors = values + cuda::tile_size(W);             // [token]
  T* half_sums = sum_factors + cuda::tile_rows;             // [half, feature]
  const KeepMask keep_mask{reinterpret_cast<uint8_t*>(half_sums + 2 * cuda::tile_rows)};
  const cuda::TileThread thread;
  const int64_t segments = ceil_div(tokens.length, tokens.segment), item = blockIdx.x, head = item / segments;
  const int64_t b = head / x.H, h = head % x.H, begin = item % segments * tokens.segment;
  const int64_t visible =
      tokens.role == TokenRole::query ? x.num_tokens(TokenRole::query, b) : x.visible_keys(b);
  const int64_t end = min(begin + tokens.segment, visible);
  const int64_t first_feature = int64_t{blockIdx.y} * cuda::tile_rows, column = int64_t{blockIdx.z} * W;
  // Two threads share the sum column of a feature: one adds even tokens, one odd ones.
  const int feature = static_cast<int>(threadIdx.x) % cuda::tile_rows,
            half = static_cast<int>(threadIdx.x) / cuda::tile_rows;
  T sum[cuda::rows_per_thread][C], half_sum = T(0);
  cuda::clear(sum);
  for (int64_t t = begin; t < end; t += cuda::tile_rows) {
    const int count = static_cast<int>(min(end - t, int64_t{cuda::tile_rows}));
    cuda::fetch_tile<T, W>(values, tokens.values.at(b, h, t) + column, tokens.values.ld, count,
                           x.dv - column);
    cuda::commit_copies();
    draw_features(x, x.tokens(tokens.role, tokens.rows, head, t, count), first_feature, keep_mask, features);
    if (static_cast<int>(threadIdx.x) < cuda::tile_rows) {
      const int64_t token = t + threadIdx.x;
      sum_factors[threadIdx.x] = token < end ? tokens.sum_factor(head, token) : T(0);
    }
    cuda::wait_for_copies<0>();
    __syncthreads();
    // sum [64 features, W] += features^T values.
    cuda::outer<T, ld, ldw>(thread, features, values, cuda::tile_rows, sum);
    if (column == 0) {
      for (int token = half; token < cuda::tile_rows; token += 2)
        half_sum += features[token * ld + feature] * sum_factors[token];
    }
    __syncthreads();
  }
  half_sums[half * cuda::tile_rows + feature] = half_sum;
  __syncthreads();
  T* state = states + item * x.table.num_features * x.state_width();
#pragma unroll
  for (int r = 0; r < cuda::rows_per_thread; ++r) {
    const int64_t row = first_feature + thread.row(r);
    if (row < x.table.num_features)
      cuda::put_columns(thread, sum[r], x.dv - column, state + row * x.state_width() + column);
  }
  if (column == 0 && half == 0 && first_feature + feature < x.table.num_features)
    state[(first_feature + feature) * x.state_width() + x.dv] =
        half_sums[feature] + half_sums[cuda::tile_rows + feature];
}

/// Turns the sums of single segments, states [heads, segments, features, state_width], into sums of other
/// segments, in place, by one thread per number: those before each segment where they sum keys, those after
/// it where they sum queries. The sums begin at start[b, h, feature, :] (null: zero); `total`, which may be
/// null, receives the sum of all segments.
template <class T>
__global__ void accumulate_segments(PolynomialShape<T> x, int64_t segments, TokenRole role,
                                    HeadView<const T> start, HeadView<T> total, T* states) {
  const int64_t columns = x.dv + 1, numbers = x.table.num_features * columns, item = cuda::global_thread();
  if (item >= x.B * x.H * numbers) return;
  const int64_t head = item / numbers, b = head / x.H, h = head % x.H;
  const int64_t feature = item % numbers / columns, column = item % columns;
  T running_sum = start.data == nullptr ? T(0) : start.at(b, h, feature)[column];
  for (int64_t n = 0; n < segments; ++n) {
    const int64_t segment = head * segments + (role == TokenRole::key ? n : segments - 1 - n);
    T& number = states[(segment * x.table.num_features + feature) * x.state_width() + column];
    const T segment_sum = number;
    number = running_sum;
    running_sum += segment_sum;
  }
  if (total.data != nullptr) total.at(b, h, feature)[column] = running_sum;
}

/// states [heads, segments, features, state_width] = for each segment the sum of all tokens of other segments
/// that it sees: of keys before it and of `start`, or of queries after it. `total` may be empty. Starts one
/// block of sum_features() per segment of a head, 64 features and W columns.
template <class T>
void sum_other_segments(const PolynomialShape<T>& x, const PolynomialTokens<T>& tokens, const Tensor& start,
                        const Tensor& total, T* states) {
  const int64_t segments = ceil_div(tokens.length, tokens.segment);
  visit_columns(x, [&]<int W>() {
    const int numbers = cuda::tile_size(cuda::tile_rows) + cuda::tile_size(W) + 3 * cuda::tile_rows;
    cuda::run(sum_features<T, W>,
              {.blocks = dim3(static_cast<unsigned>(x.B * x.H * segments),
                              static_cast<unsigned>(cuda::tiles_of(x.table.num_features)),
                              static_cast<unsigned>(std::max<int64_t>(1, ceil_div(x.dv, W)))),
               .threads = dim3(cuda::tile_threads),
               .shared_bytes = numbers * static_cast<int>(sizeof(T)) + KeepMask::bytes},
              x, tokens, states);
  });
  const int64_t numbers = x.B * x.H * x.table.num_features * (x.dv + 1);
  cuda::run(accumulate_segments<T>, cuda::block_per_row(ceil_div(numbers, cuda::block)), x, segments,
            tokens.role, HeadView<const T>(start), HeadView<T>(total), states);
}

/// Length of a segment: balances the operations of its pairs and of its state, so all states together need no
/// more memory than their inputs. With dropout of monomials, pairs go through all features, so a segment is
/// one tile: its pairs take less time than writing and reading its state, which at d = dv = 64 is eleven
/// times as large as the tile's q, k and v.
template <class T>
int64_t polynomial_segment_length(const PolynomialShape<T>& x) {
  const int64_t balanced = x.table.num_features * (x.dv + 1) / std::max<int64_t>(1, x.d + x.dv);
  return x.drops_monomials() ? cuda::tile_rows
                             : std::max<int64_t>(1, cuda::tiles_of(balanced)) * cuda::tile_rows;
}

/// Length of a segment where only the total of all segments is needed: enough segments to fill a device, few
/// enough to be added quickly.
template <class T>
int64_t balanced_segment_length(const PolynomialShape<T>& x, int64_t length) {
  constexpr int64_t blocks_of_device = 1024, min_tiles = 4;
  const int64_t blocks = std::max<int64_t>(1, x.B * x.H * cuda::tiles_of(x.table.num_features));
  const int64_t segments = std::max<int64_t>(1, blocks_of_device / blocks);
  return std::max<int64_t>(min_tiles, cuda::tiles_of(ceil_div(length, segments))) * cuda::tile_rows;
}

/// Uninitialized states [B H segments features, state_width].
template <class T>
Tensor new_states(const PolynomialShape<T>& x, int64_t segments, const Tensor& like) {
  return empty_like(
      like, Shape{std::max<int64_t>(1, x.B * x.H * segments * x.table.num_features), x.state_width()});
}

/// The state before each segment of keys, [B H segments features, state_width]; sets `segment` to the length
/// of segments. Empty where one segment holds all keys and there is no start.
template <class T>
Tensor polynomial_prefixes(const PolynomialShape<T>& x, const MappedRows<T>& keys, const Tensor& v,
                           const Tensor& start, int64_t segment) {
  const int64_t segments = ceil_div(x.keys, segment);
  if (segments <= 1 && !start) return {};
  const Tensor states = new_states(x, segments, v);
  const PolynomialTokens<T> tokens{.role = TokenRole::key,
                                   .rows = keys.rows.template data<T>(),
                                   .length = x.keys,
                                   .segment = segment,
                                   .values = HeadView<const T>(v, x.key_starts)};
  sum_other_segments(x, tokens, start, Tensor(), states.data<T>());
  Count::add(2 * x.B * x.H * x.keys * x.table.num_features * (x.dv + 1));
  return states;
}

}  // namespace heed::kernel

// Sums of monomials over tokens on a device: of each segment, 64 features and some columns a block.
#pragma once

#include "core/count.h"
#include "core/kernels/fastmax_device.h"
#include "core/kernels/scan_device.h"

namespace heed::kernel {

/// The tokens that are summed: keys with their values, or queries with the gradients of theirs.
template <class T>
struct FastmaxTokens {
  const T* rows;  ///< prepared, [B H length, wide]
  Augmented<T> with;
  int64_t length, segment;
  bool query;
};

/// states [heads, segments, features, state_wide].
template <class T, int W>
__global__ void __launch_bounds__(cuda::tile_threads)
    feature_sums(FastmaxShape<T> x, FastmaxTokens<T> of, T* states) {
  constexpr int wide = cuda::tile_rows, ld = cuda::tile_ld(wide), ldw = cuda::tile_ld(W), C = W / 16;
  T* phi = cuda::shared<T>();
  T* with = phi + cuda::tile_size(wide);
  T* last = with + cuda::tile_size(W);
  T* halves = last + wide;
  const KeptPairs kept{reinterpret_cast<uint8_t*>(halves + 2 * wide)};
  const cuda::Share me;
  const int64_t segments = (of.length + of.segment - 1) / of.segment, at = blockIdx.x, head = at / segments;
  const int64_t b = head / x.H, h = head % x.H, begin = at % segments * of.segment;
  const int64_t present = of.query ? of.length : x.keys_of(b);
  const int64_t end = min(begin + of.segment, present);
  const int64_t first = int64_t{blockIdx.y} * wide, column = int64_t{blockIdx.z} * W;
  const int feature = static_cast<int>(threadIdx.x) % wide, half = static_cast<int>(threadIdx.x) / wide;
  T sum[cuda::mine][C], last_sum = T(0);
  cuda::clear(sum);
  for (int64_t t = begin; t < end; t += wide) {
    const int count = static_cast<int>(min(end - t, int64_t{wide}));
    cuda::fetch_tile<T, W>(with, of.with.rows.at(b, h, t) + column, of.with.rows.ld, count, x.dv - column);
    cuda::commit_copies();
    if (x.drops()) {
      draw_features(x, kept, of.query ? x.query_number(head, t) : x.key_number(head, t), count, first);
      __syncthreads();
    }
    make_features(x, of.rows + (head * of.length + t) * x.wide, count, first, of.query,
                  x.drops() ? &kept : nullptr, phi);
    if (static_cast<int>(threadIdx.x) < wide) {
      const int64_t token = t + threadIdx.x;
      last[threadIdx.x] = token < end ? of.with.last_of(head, of.length, token) : T(0);
    }
    cuda::wait_for_copies<0>();
    __syncthreads();
    cuda::outer<T, ld, ldw>(me, phi, with, wide, sum);
    if (column == 0) {
      for (int token = half; token < wide; token += 2) last_sum += phi[token * ld + feature] * last[token];
    }
    __syncthreads();
  }
  halves[half * wide + feature] = last_sum;
  __syncthreads();
  T* to = states + at * x.table.count * x.state_wide();
#pragma unroll
  for (int r = 0; r < cuda::mine; ++r) {
    const int64_t row = first + me.row(r);
    if (row < x.table.count) cuda::put_columns(me, sum[r], x.dv - column, to + row * x.state_wide() + column);
  }
  if (column == 0 && half == 0 && first + feature < x.table.count)
    to[(first + feature) * x.state_wide() + x.dv] = halves[feature] + halves[wide + feature];
}

template <class T>
void start_feature_sums(const FastmaxShape<T>& x, const FastmaxTokens<T>& of, T* states) {
  const int64_t segments = (of.length + of.segment - 1) / of.segment;
  const auto start = [&]<int W>(std::integral_constant<int, W>) {
    const int numbers = cuda::tile_size(cuda::tile_rows) + cuda::tile_size(W) + 3 * cuda::tile_rows;
    cuda::run(feature_sums<T, W>,
              {.blocks = dim3(static_cast<unsigned>(x.B * x.H * segments),
                              static_cast<unsigned>(cuda::tiles_of(x.table.count)),
                              static_cast<unsigned>(std::max<int64_t>(1, (x.dv + W - 1) / W))),
               .threads = dim3(cuda::tile_threads),
               .shared_bytes = numbers * static_cast<int>(sizeof(T)) + KeptPairs::bytes},
              x, of, states);
  };
  if (x.dv <= 32) {
    start(std::integral_constant<int, 32>{});
  } else {
    start(std::integral_constant<int, 64>{});
  }
}

/// Positions of a segment: about as many operations for its pairs as for its state, so that all states
/// together take no more room than what they are made of.
template <class T>
int64_t fastmax_segment(const FastmaxShape<T>& x) {
  const int64_t balanced = x.table.count * (x.dv + 1) / std::max<int64_t>(1, x.d + x.dv);
  const int64_t positions =
      x.drops() ? 4 * x.dv : balanced;  // pairs go through features where those are dropped
  return std::max<int64_t>(1, cuda::tiles_of(positions)) * cuda::tile_rows;
}

/// A segment where only the whole is wanted: enough of them to fill a device, few enough to be added quickly.
template <class T>
int64_t fastmax_share(const FastmaxShape<T>& x, int64_t length) {
  constexpr int64_t wanted = 1024;
  const int64_t blocks = std::max<int64_t>(1, x.B * x.H * cuda::tiles_of(x.table.count));
  const int64_t shares = std::max<int64_t>(1, wanted / blocks);
  return std::max<int64_t>(4, cuda::tiles_of((length + shares - 1) / shares)) * cuda::tile_rows;
}

/// What lies before each segment of the keys, [B, H, segments, features, state_wide], and the segments'
/// length; empty where one segment holds all and nothing lies before it.
template <class T>
Tensor fastmax_prefixes(const FastmaxShape<T>& x, const PreparedRows<T>& keys, const Tensor& v,
                        const Tensor& start, int64_t& segment) {
  segment = fastmax_segment(x);
  const int64_t segments = (x.keys + segment - 1) / segment;
  if (segments <= 1 && !start) return {};
  const Tensor states(Shape{std::max<int64_t>(1, x.B * x.H * segments * x.table.count * x.state_wide())},
                      v.dtype(), v.device());
  const FastmaxTokens<T> tokens{.rows = keys.rows.template data<T>(),
                                .with = {Heads<const T>(v)},
                                .length = x.keys,
                                .segment = segment,
                                .query = false};
  start_feature_sums(x, tokens, states.data<T>());
  start_pass_states_on(states.data<T>(), x.B, x.H, segments, x.table.count, x.dv + 1, x.state_wide(), start,
                       Tensor(), false);
  Count::add(2 * x.B * x.H * x.keys * x.table.count * (x.dv + 1));
  return states;
}

}  // namespace heed::kernel

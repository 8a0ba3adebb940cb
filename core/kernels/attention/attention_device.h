// Attention on a device: dropout masks, scores, and the online softmax of a tile.
#pragma once

#include <type_traits>

#include "heed/core/cuda/device/tile_products.h"
#include "heed/core/kernels/attention/attention_shape.h"
#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/kernels/elementwise/functions.h"

namespace heed::kernel {

/// The dropout of a call; its tick is read on the device.
struct DeviceDraw {
  uint64_t seed = 0, stream = 0;
  const int64_t* tick = nullptr;
  uint32_t threshold = 0;  ///< 0: nothing is dropped

  DeviceDraw() = default;
  DeviceDraw(double p, const Draw& draw) : threshold(dropout_threshold(p)) {
    if (threshold == 0) return;
    seed = draw.seed;
    stream = draw.stream;
    tick = draw.tick.data<int64_t>();
  }
  __device__ uint64_t high() const { return Draw::high(stream, *tick); }
};

/// The dropout mask of a tile [64 queries, 64 keys]: bit j of a query's word belongs to key j.
struct KeepMask {
  static constexpr int bytes = 64 * 8;
  uint8_t* byte;  ///< in shared memory, aligned to 8

  /// Draws the mask; all threads of the block call it. `element(i, j)` is the random number index of the pair
  /// (i, j) of the tile; `element(i)` that of (i, 0), where indices are consecutive.
  template <class Element>
  __device__ void draw(const DeviceDraw& from, int queries, int keys, Element element) const {
    const uint64_t high = from.high();
    const auto block_of = [&](uint64_t n) {
      return dropout_keep_mask(dropout_block(from.seed, high, n), from.threshold);
    };
    for (int e = static_cast<int>(threadIdx.x); e < queries * 4; e += cuda::tile_threads) {
      const int first = e % 4 * 16, count = min(keys - first, 16);
      uint32_t bits = 0;
      if constexpr (std::is_invocable_v<Element, int>) {
        bits = following(element(e / 4) + static_cast<uint64_t>(first), count, block_of);
      } else {
        bits = listed(
            count, [&](int n) { return element(e / 4, first + n); }, block_of);
      }
      reinterpret_cast<uint16_t*>(byte)[e] = static_cast<uint16_t>(bits);
    }
  }
  __device__ bool has(int query, int key) const {
    return ((byte[query * 8 + key / 8] >> (key % 8)) & 1) != 0;
  }
  /// The word of a query: one bit per key.
  __device__ uint64_t of(int query) const { return reinterpret_cast<const uint64_t*>(byte)[query]; }

 private:
  /// The bits of `count` consecutive indices from `number` on: one block of sixteen where that is aligned.
  template <class BlockOf>
  __device__ static uint32_t following(uint64_t number, int count, BlockOf block_of) {
    if (count <= 0) return 0;
    const int skipped = static_cast<int>(number % 16);
    uint32_t bits = 0;
#pragma unroll 1
    for (int n = 0; n < skipped + count; n += 16) bits |= block_of(number / 16 + n / 16) << n;
    return (bits >> skipped) & ((1U << count) - 1);
  }
  /// The bits of indices at(0), at(1), ..., in any order.
  template <class At, class BlockOf>
  __device__ static uint32_t listed(int count, At at, BlockOf block_of) {
    if (count <= 0) return 0;
    const uint64_t number = at(0);
    bool follow = true;
#pragma unroll
    for (int n = 1; n < 16; ++n) follow &= n >= count || at(n) == number + n;
    if (follow) return following(number, count, block_of);
    uint32_t bits = 0, block = 0;
    uint64_t drawn = ~uint64_t{0};
#pragma unroll 1
    for (int n = 0; n < count; ++n) {
      const uint64_t own = at(n);
      if (own / 16 != drawn) block = block_of(drawn = own / 16);
      bits |= (block >> (own % 16) & 1U) << n;
    }
    return bits;
  }
};

/// a b, rounded before anything is added to it or taken from it. The compiler would fuse the two in one
/// kernel and not in another; scores of a large product must be the same in the forward and the backward
/// pass.
template <class T>
__device__ inline T rounded_product(T a, T b) {
#ifdef __CUDACC__
  if constexpr (std::is_same_v<T, float>)
    return __fmul_rn(a, b);
  else
    return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

/// The score of the pair (i, j) from its product q . k, before masking. `cap_grad` is the derivative of the
/// softcap: the factor from the gradient of the score to that of the product.
template <class T>
__device__ inline T score_of(const AttentionScores<T>& x, T scale_log2, int64_t b, int64_t h, int64_t i,
                             int64_t j, T product, T& cap_grad) {
  T s = rounded_product(product, scale_log2);
  cap_grad = T(1);
  if (x.cap != T(0)) {
    const T bound = math::tanh(s / x.cap);
    s = x.cap * bound;
    cap_grad = T(1) - bound * bound;
  }
  if (x.bias != nullptr) s += *x.bias_at(b, h, i, j) * static_cast<T>(log2_e);
  if (x.relative != nullptr) s += *x.relative_at(h, i, j) * static_cast<T>(log2_e);
  return s;
}

/// The online softmax of a thread's eight rows. weight_sum holds this thread's part; 16 threads share a row.
template <class T>
struct OnlineSoftmax {
  T max_score[cuda::rows_per_thread], weight_sum[cuda::rows_per_thread];

  /// Begins each row with the score `sink`; -infinity: none.
  __device__ void start(const cuda::Share& me, T sink) {
#pragma unroll
    for (int r = 0; r < cuda::rows_per_thread; ++r) {
      max_score[r] = sink;
      weight_sum[r] = me.x == 0 && sink != -infinity<T> ? T(1) : T(0);
    }
  }
  /// Replaces scores (-infinity for masked pairs) by weights. The caller multiplies older sums by
  /// `correction`.
  __device__ void scores_to_weights(T (&s)[cuda::rows_per_thread][4],
                                    T (&correction)[cuda::rows_per_thread]) {
#pragma unroll
    for (int r = 0; r < cuda::rows_per_thread; ++r) {
      T new_max = max_score[r];
#pragma unroll
      for (int n = 0; n < 4; ++n) new_max = s[r][n] > new_max ? s[r][n] : new_max;
      new_max = cuda::across_row(new_max, [](T a, T b) { return a > b ? a : b; });
      const T base = new_max == -infinity<T> ? T(0) : new_max;  // no visible key yet: 2^-inf = 0 instead of
                                                                // NaN
      correction[r] = exp2(max_score[r] - base);
      max_score[r] = new_max;
      T sum = T(0);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        s[r][n] = exp2(s[r][n] - base);
        sum += s[r][n];
      }
      weight_sum[r] = weight_sum[r] * correction[r] + sum;
    }
  }
  /// Returns the factor that normalises row r, and the log of its sum.
  __device__ T finish(int r, RowLog<T>& lse) const {
    const T all = cuda::sum_of_row(weight_sum[r]);
    lse = all == T(0) ? RowLog<T>::of_no_keys() : RowLog<T>::of(max_score[r], log2(all));
    return all == T(0) ? T(0) : T(1) / all;
  }
};

/// Replaces the scores of a tile by weights, rescales older sums, applies dropout, and writes the weights to
/// shared memory for the product with the values.
template <class T, class Call, int C>
__device__ inline void softmax_tile(const cuda::Share& me, const Call& x, const KeepMask& keep_mask,
                                    OnlineSoftmax<T>& rows, T (&map)[cuda::rows_per_thread][4],
                                    T (&sum)[cuda::rows_per_thread][C], T* tile) {
  T correction[cuda::rows_per_thread];
  rows.scores_to_weights(map, correction);
#pragma unroll
  for (int r = 0; r < cuda::rows_per_thread; ++r) {
#pragma unroll
    for (int n = 0; n < C; ++n) sum[r][n] *= correction[r];
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      if (x.dropped) map[r][n] = keep_mask.has(me.row(r), me.key(n)) ? map[r][n] * x.keep_scale : T(0);
    }
  }
  cuda::put_map(me, map, tile);
}

/// Calls f(integral_constant<int, D>), D being the columns of a tile for rows of `width`. Wider rows go in
/// slices of D columns, and all rows do where shared memory is scarce.
template <class T, class F>
void visit_tiles(int64_t width, F&& f) {
  if constexpr (std::is_same_v<T, double>) {
    f(std::integral_constant<int, 32>());
  } else if (width <= 32) {
    f(std::integral_constant<int, 32>());
  } else if (width <= 64 || !cuda::roomy()) {
    f(std::integral_constant<int, 64>());
  } else {
    f(std::integral_constant<int, 128>());
  }
}

/// What the backward pass needs of a query: the log2 that its weights are relative to (infinity without keys,
/// so that they are 0), delta = out . dout, and the share of RowLog.
template <class T>
struct RowStats {
  T lse, delta, share = T(1);
};

template <class T>
struct PairGradient {
  T weight, score_grad;  ///< the weight after dropout, and the gradient of the score
};

/// From a score and the gradient of its weight after dropout; `keep` is the dropout factor. Clamps the weight
/// to 1: rounding can put a very large score, such as one of padding, above its row's log sum, and the weight
/// would be infinite.
template <class T>
__device__ inline PairGradient<T> score_gradient(T score, T dweight, T keep, const RowStats<T>& row) {
  const T above = score - row.lse, p = exp2(above > T(0) ? T(0) : above) * row.share;
  return {p * keep, p * (dweight * keep - row.delta)};
}

}  // namespace heed::kernel

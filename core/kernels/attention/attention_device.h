// Attention on a device: dropout masks, scores, and the online softmax of a tile without tensor cores.
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

/// The dropout mask of a tile [64 queries, 64 keys]: a 64-bit word per query, whose bit j belongs to key j.
struct KeepMask {
  static constexpr int bytes = 64 * 8;
  uint8_t* byte;  ///< in shared memory, aligned to 8

  /// Draws the mask; all threads of the block call it, each for 16 keys of a query at a time. index_of(i, j)
  /// gives the random number index of the pair (i, j) of the tile. An index_of(i) with one parameter gives
  /// that of (i, 0): the indices of a query are then consecutive.
  template <class IndexOf>
  __device__ void draw(const DeviceDraw& dropout, int queries, int keys, IndexOf index_of) const {
    const uint64_t high = dropout.high();
    const auto block_bits = [&](uint64_t block) {
      return dropout_keep_mask(dropout_block(dropout.seed, high, block), dropout.threshold);
    };
    constexpr int runs_per_query = 64 / 16;
    for (int run = static_cast<int>(threadIdx.x); run < queries * runs_per_query; run += cuda::tile_threads) {
      const int query = run / runs_per_query, first_key = run % runs_per_query * 16,
                count = min(keys - first_key, 16);
      uint32_t bits = 0;
      if constexpr (std::is_invocable_v<IndexOf, int>) {
        bits = consecutive_bits(index_of(query) + static_cast<uint64_t>(first_key), count, block_bits);
      } else {
        bits = indexed_bits(
            count, [&](int n) { return index_of(query, first_key + n); }, block_bits);
      }
      reinterpret_cast<uint16_t*>(byte)[run] = static_cast<uint16_t>(bits);
    }
  }
  /// True where dropout keeps this pair.
  __device__ bool has(int query, int key) const {
    return ((byte[query * 8 + key / 8] >> (key % 8)) & 1) != 0;
  }
  /// The factor of the weight of a pair in `call`: keep_scale or 0; 1 where the call has no dropout.
  template <class Call>
  __device__ auto factor(const Call& call, int query, int key) const {
    using T = std::remove_const_t<decltype(call.keep_scale)>;
    return !call.has_dropout ? T(1) : has(query, key) ? call.keep_scale : T(0);
  }
  /// The word of a query: one bit per key.
  __device__ uint64_t of(int query) const { return reinterpret_cast<const uint64_t*>(byte)[query]; }

 private:
  /// The bits of `count` (at most 16) consecutive indices from `first` on, which lie in one or two blocks
  /// of 16.
  template <class BlockBits>
  __device__ static uint32_t consecutive_bits(uint64_t first, int count, BlockBits block_bits) {
    if (count <= 0) return 0;
    const int skipped = static_cast<int>(first % 16);
    uint32_t bits = 0;
#pragma unroll 1
    for (int n = 0; n < skipped + count; n += 16) bits |= block_bits(first / 16 + n / 16) << n;
    return (bits >> skipped) & ((1U << count) - 1);
  }
  /// The bits of indices index_at(0), ..., index_at(count - 1), in any order, at most 16.
  template <class IndexAt, class BlockBits>
  __device__ static uint32_t indexed_bits(int count, IndexAt index_at, BlockBits block_bits) {
    if (count <= 0) return 0;
    const uint64_t first = index_at(0);
    bool are_consecutive = true;
#pragma unroll
    for (int n = 1; n < 16; ++n) are_consecutive &= n >= count || index_at(n) == first + n;
    if (are_consecutive) return consecutive_bits(first, count, block_bits);
    uint32_t bits = 0, current_bits = 0;
    uint64_t current_block = ~uint64_t{0};
#pragma unroll 1
    for (int n = 0; n < count; ++n) {
      const uint64_t index = index_at(n);
      if (index / 16 != current_block) current_bits = block_bits(current_block = index / 16);
      bits |= (current_bits >> (index % 16) & 1U) << n;
    }
    return bits;
  }
};

/// Inputs and outputs of the dense forward kernels without tensor cores.
template <class T>
struct DeviceForwardCall : AttentionScores<T> {
  HeadView<const T> qs, ks, vs;
  HeadView<T> outs;
  LseView<T> lse;
  DeviceDraw dropout;

  DeviceForwardCall(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionParams& params,
                    const Tensor& out, const Tensor& all_lse)
      : AttentionScores<T>(q, k, v, params),
        qs(q, this->query_starts),
        ks(k, this->key_starts),
        vs(v, this->key_starts),
        outs(out, this->query_starts),
        lse(all_lse, this->B * this->H * this->Tq),
        dropout(params.dropout, params.draw) {}
};

/// a b, rounded before anything is added to it. The compiler would fuse the multiplication with an addition
/// in one kernel and not in another, but large scores must be the same in the forward and the backward pass.
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

/// The score of the pair (i, j) in log2 units from the product q . k, before masking. `softcap_grad` becomes
/// the derivative of the softcap: the gradient of the scaled product is that of the score times it.
template <class T>
__device__ inline T score_of(const AttentionScores<T>& x, T scale_log2, int64_t b, int64_t h, int64_t i,
                             int64_t j, T product, T& softcap_grad) {
  T s = rounded_product(product, scale_log2);
  softcap_grad = T(1);
  if (x.softcap != T(0)) {
    const T tanh_score = math::tanh(s / x.softcap);
    s = x.softcap * tanh_score;
    softcap_grad = T(1) - tanh_score * tanh_score;
  }
  if (x.bias != nullptr) s += *x.bias_at(b, h, i, j) * static_cast<T>(log2_e);
  if (x.relative != nullptr) s += *x.relative_at(h, i, j) * static_cast<T>(log2_e);
  return s;
}

/// The online softmax of a thread's eight rows. 16 threads share a row: each has four keys of a tile and sums
/// their weights in its row_sum.
template <class T>
struct OnlineSoftmax {
  T row_max[cuda::rows_per_thread], row_sum[cuda::rows_per_thread];

  /// Begins each row with the score `sink`; -infinity: none.
  __device__ void start(const cuda::TileThread& thread, T sink) {
#pragma unroll
    for (int r = 0; r < cuda::rows_per_thread; ++r) {
      row_max[r] = sink;
      row_sum[r] = thread.x == 0 && sink != minus_infinity<T> ? T(1) : T(0);
    }
  }
  /// Replaces scores (-infinity for masked pairs) in place by weights 2^(score - row_max). The caller
  /// multiplies older sums of the output by `correction`.
  __device__ void scores_to_weights(T (&pairs)[cuda::rows_per_thread][4],
                                    T (&correction)[cuda::rows_per_thread]) {
#pragma unroll
    for (int r = 0; r < cuda::rows_per_thread; ++r) {
      T new_max = row_max[r];
#pragma unroll
      for (int n = 0; n < 4; ++n) new_max = pairs[r][n] > new_max ? pairs[r][n] : new_max;
      new_max = cuda::across_row(new_max, [](T a, T b) { return a > b ? a : b; });
      // No visible key yet: 2^-inf = 0 instead of NaN.
      const T base = new_max == minus_infinity<T> ? T(0) : new_max;
      correction[r] = exp2(row_max[r] - base);
      row_max[r] = new_max;
      T sum = T(0);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        pairs[r][n] = exp2(pairs[r][n] - base);
        sum += pairs[r][n];
      }
      row_sum[r] = row_sum[r] * correction[r] + sum;
    }
  }
  /// Returns 1 / row_sum of row r, which normalises its output, and sets its log-sum-exp. All threads call
  /// it.
  __device__ T finish(int r, RowLse<T>& lse) const {
    const T total = cuda::sum_of_row(row_sum[r]);
    lse = total == T(0) ? RowLse<T>::of_empty_row() : RowLse<T>::of(row_max[r], log2(total));
    return total == T(0) ? T(0) : T(1) / total;
  }
};

/// Replaces the scores [64, 64] of a tile in place by weights after dropout, rescales output_sum, and writes
/// the weights to shared memory for their product with the values.
template <class T, class Call, int C>
__device__ inline void softmax_tile(const cuda::TileThread& thread, const Call& x, const KeepMask& keep_mask,
                                    OnlineSoftmax<T>& rows, T (&scores)[cuda::rows_per_thread][4],
                                    T (&output_sum)[cuda::rows_per_thread][C], T* weights_tile) {
  T correction[cuda::rows_per_thread];
  rows.scores_to_weights(scores, correction);
#pragma unroll
  for (int r = 0; r < cuda::rows_per_thread; ++r) {
#pragma unroll
    for (int n = 0; n < C; ++n) output_sum[r][n] *= correction[r];
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      if (x.has_dropout)
        scores[r][n] = keep_mask.has(thread.row(r), thread.key(n)) ? scores[r][n] * x.keep_scale : T(0);
    }
  }
  cuda::put_map(thread, scores, weights_tile);
}

/// A grid of blocks of tile_threads threads for `tiles` tiles of rows, each with `slices` slices of columns.
inline cuda::Grid tile_grid(int64_t tiles, int64_t slices, int shared_bytes) {
  return {.blocks = dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(slices)),
          .threads = dim3(cuda::tile_threads),
          .shared_bytes = shared_bytes};
}

/// Calls f(integral_constant<int, D>) with the number D of columns of a tile, for rows of `width` numbers.
/// Rows wider than D are read in slices of D columns.
template <class T, class F>
void visit_tile_width(int64_t width, F&& f) {
  if constexpr (std::is_same_v<T, double>) {
    f(std::integral_constant<int, 32>());
  } else if (width <= 32) {
    f(std::integral_constant<int, 32>());
  } else if (width <= 64 || !cuda::has_large_shared_memory()) {
    f(std::integral_constant<int, 64>());
  } else {
    f(std::integral_constant<int, 128>());
  }
}

/// True for calls that few_queries_attention() computes: few queries without dropout.
inline bool has_few_queries(const AttentionShape& call, const AttentionParams& params) {
  constexpr int64_t few_queries = 3;
  return call.Tq <= few_queries && dropout_threshold(params.dropout) == 0;
}

/// Attention without dropout by one block per query, or by several where queries are few and keys many.
template <class T>
void few_queries_attention(const DeviceForwardCall<T>& call);

/// Statistics of a query row for the backward pass: its log-sum-exp in log2 units (infinity without keys, so
/// that weights are 0), delta = out . dout, and the factor of its weights, see RowLse::weight_base().
template <class T>
struct RowStats {
  T lse, delta, factor = T(1);
};

template <class T>
struct PairGradient {
  T weight, grad_score;  ///< the weight after dropout, and the gradient of the score
};

/// The weight p = 2^(score - lse) of a pair and the gradient of its score, p (keep dweight - delta); dweight
/// = dout . v, and `keep` is the dropout factor. Clamps p to 1: rounding can put a very large score, such as
/// one of padding, above its row's log-sum-exp, and the weight would be infinite.
template <class T>
__device__ inline PairGradient<T> score_gradient(T score, T dweight, T keep, const RowStats<T>& row) {
  const T exponent = score - row.lse, weight = exp2(exponent > T(0) ? T(0) : exponent) * row.factor;
  return {weight * keep, weight * (dweight * keep - row.delta)};
}

}  // namespace heed::kernel

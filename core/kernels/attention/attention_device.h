// Attention on a device: what its kernels read of a call, and what stands between the products of a tile and
// its weights.
#pragma once

#include <type_traits>

#include "core/cuda/products.h"
#include "core/kernels/attention_shape.h"
#include "core/kernels/elementwise.h"
#include "core/kernels/head_rows.h"

namespace heed::kernel {

/// Dropout as a kernel reads it: the tick lies on the device.
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

/// Which of 64 x 64 pairs dropout keeps: bit j of a word speaks of the j-th key of a query.
struct KeptPairs {
  static constexpr int bytes = 64 * 8;
  uint8_t* byte;  ///< in shared memory, aligned to 8

  /// All threads: `element(i, j)` numbers the pair of the tile's i-th query and j-th key; or `element(i)`
  /// that of the first key, where numbers follow one another.
  template <class Element>
  __device__ void draw(const DeviceDraw& from, int queries, int keys, Element element) const {
    const uint64_t high = from.high();
    const auto block_of = [&](uint64_t n) {
      return dropout_byte(Philox::at(from.seed, n, high), from.threshold);
    };
    for (int e = static_cast<int>(threadIdx.x); e < queries * 8; e += cuda::tile_threads) {
      const int first = e % 8 * 8, count = min(keys - first, 8);
      uint32_t bits = 0;
      if constexpr (std::is_invocable_v<Element, int>) {
        bits = following(element(e / 8) + static_cast<uint64_t>(first), count, block_of);
      } else {
        bits = listed(
            count, [&](int n) { return element(e / 8, first + n); }, block_of);
      }
      byte[e] = static_cast<uint8_t>(bits);
    }
  }
  __device__ bool has(int query, int key) const {
    return ((byte[query * 8 + key / 8] >> (key % 8)) & 1) != 0;
  }
  /// Those of all keys of a query.
  __device__ uint64_t of(int query) const { return reinterpret_cast<const uint64_t*>(byte)[query]; }

 private:
  /// The bits of `count` numbers from `number` on, taken as blocks have them: one where that begins a block.
  template <class BlockOf>
  __device__ static uint32_t following(uint64_t number, int count, BlockOf block_of) {
    if (count <= 0) return 0;
    const int skipped = static_cast<int>(number % 8);
    uint32_t bits = 0;
#pragma unroll 1
    for (int n = 0; n < skipped + count; n += 8) bits |= block_of(number / 8 + n / 8) << n;
    return (bits >> skipped) & ((1U << count) - 1);
  }
  /// Those of numbers at(0), at(1), ..., which may lie anywhere.
  template <class At, class BlockOf>
  __device__ static uint32_t listed(int count, At at, BlockOf block_of) {
    if (count <= 0) return 0;
    const uint64_t number = at(0);
    bool follow = true;
#pragma unroll
    for (int n = 1; n < 8; ++n) follow &= n >= count || at(n) == number + n;
    if (follow) return following(number, count, block_of);
    uint32_t bits = 0, block = 0;
    uint64_t drawn = ~uint64_t{0};
#pragma unroll 1
    for (int n = 0; n < count; ++n) {
      const uint64_t own = at(n);
      if (own / 8 != drawn) block = block_of(drawn = own / 8);
      bits |= (block >> (own % 8) & 1U) << n;
    }
    return bits;
  }
};

/// A score from the product of query i and key j, before what hides it. `steep`: what a gradient of the score
/// is multiplied by on its way to the product.
template <class T>
__device__ inline T score_of(const AttentionScores<T>& x, T factor, int64_t b, int64_t h, int64_t i,
                             int64_t j, T product, T& steep) {
  T s = product * factor;
  steep = T(1);
  if (x.cap != T(0)) {
    const T bound = math::tanh(s / x.cap);
    s = x.cap * bound;
    steep = T(1) - bound * bound;
  }
  if (x.bias != nullptr) s += *x.bias_at(b, h, i, j) * static_cast<T>(log2_e);
  if (x.relative != nullptr) s += *x.relative_at(h, i, j) * static_cast<T>(log2_e);
  return s;
}

/// The running softmax of a thread's eight rows. The totals are shares of the 16 threads of a row.
template <class T>
struct RunningRows {
  T most[cuda::mine], total[cuda::mine];

  /// Each row begins with the score `sink`; -infinity: with nothing.
  __device__ void start(const cuda::Share& me, T sink) {
#pragma unroll
    for (int r = 0; r < cuda::mine; ++r) {
      most[r] = sink;
      total[r] = me.x == 0 && sink != -infinity<T> ? T(1) : T(0);
    }
  }
  /// Scores (-infinity where there is no pair) to weights. Older sums are to be multiplied by `shrink`.
  __device__ void weigh(T (&s)[cuda::mine][4], T (&shrink)[cuda::mine]) {
#pragma unroll
    for (int r = 0; r < cuda::mine; ++r) {
      T top = most[r];
#pragma unroll
      for (int n = 0; n < 4; ++n) top = s[r][n] > top ? s[r][n] : top;
      top = cuda::across_row(top, [](T a, T b) { return a > b ? a : b; });
      const T base = top == -infinity<T> ? T(0) : top;  // no key yet: weights are 2^-inf, not NaN
      shrink[r] = exp2(most[r] - base);
      most[r] = top;
      T sum = T(0);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        s[r][n] = exp2(s[r][n] - base);
        sum += s[r][n];
      }
      total[r] = total[r] * shrink[r] + sum;
    }
  }
  /// What the sums of row r are multiplied by at the end, and the log of its total.
  __device__ T finish(int r, RowLog<T>& lse) const {
    const T all = cuda::sum_of_row(total[r]);
    lse = all == T(0) ? RowLog<T>::nothing() : RowLog<T>::of(most[r], log2(all));
    return all == T(0) ? T(0) : T(1) / all;
  }
};

/// Scores of a tile to weights, older sums shrunk to go with them; then drops them and writes the tile that
/// meets the values.
template <class T, class Call, int C>
__device__ inline void weigh_tile(const cuda::Share& me, const Call& x, const KeptPairs& kept,
                                  RunningRows<T>& rows, T (&map)[cuda::mine][4], T (&sum)[cuda::mine][C],
                                  T* tile) {
  T shrink[cuda::mine];
  rows.weigh(map, shrink);
#pragma unroll
  for (int r = 0; r < cuda::mine; ++r) {
#pragma unroll
    for (int n = 0; n < C; ++n) sum[r][n] *= shrink[r];
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      if (x.dropped) map[r][n] = kept.has(me.row(r), me.key(n)) ? map[r][n] * x.keep_scale : T(0);
    }
  }
  cuda::put_map(me, map, tile);
}

/// Calls f(integral_constant<int, D>) with the numbers of a row that a tile holds, for rows of `width`. Wider
/// rows are taken in slices, as all are where shared memory is scarce.
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

/// For the backward pass of a row: what its weights are relative to (infinity for a row without keys, whose
/// weights so become 0), out . dout, and what the weights are multiplied by: see RowLog.
template <class T>
struct RowStats {
  T lse, delta, share = T(1);
};

template <class T>
struct BackPair {
  T weight, slope;  ///< the (dropped) weight, and the gradient of the score
};

/// From a score and the gradient of its dropped weight, `keep` being what dropout multiplied that by. A
/// weight is at most 1: where scores are so large that rounding alone puts one above its log of the sum, as
/// those of padding may be, it would else be infinite.
template <class T>
__device__ inline BackPair<T> back_of(T score, T dweight, T keep, const RowStats<T>& row) {
  const T above = score - row.lse, p = exp2(above > T(0) ? T(0) : above) * row.share;
  return {p * keep, p * (dweight * keep - row.delta)};
}

}  // namespace heed::kernel

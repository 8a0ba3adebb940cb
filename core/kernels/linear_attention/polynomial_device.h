// Fastmax on a device: prepared queries and keys, the table of their monomials, and tiles of features.
#pragma once

#include <vector>

#include "core/kernels/attention_device.h"
#include "core/kernels/fastmax.h"

namespace heed::kernel {

/// Letters and weights of all features, in the order of monomials.h: `letters` of each feature, of which d
/// stands for the number one. Made once for each degree and width, and kept on the device.
template <class T>
struct FeatureTable {
  const int32_t* letter = nullptr;  ///< [count, letters]
  const T* weight = nullptr;        ///< [count], of queries' features; those of keys have none
  int64_t count = 0;
  int letters = 1;
};

/// f(s) and f'(s) of scores that carry the coefficient of degree 1.
template <class T>
struct ScorePolynomial {
  static constexpr int few = 4;
  T low[few] = {}, low_slope[few] = {};
  const T* all = nullptr;  ///< every coefficient, where there are more than a few
  int degree = 0;

  __device__ T value(T s) const {
    if (degree < few) return ((low[3] * s + low[2]) * s + low[1]) * s + low[0];
    T y = all[degree];
    for (int l = degree; l-- > 0;) y = y * s + all[l];
    return y;
  }
  __device__ T slope(T s) const {
    if (degree < few) return (low_slope[2] * s + low_slope[1]) * s + low_slope[0];
    T y = T(degree) * all[degree];
    for (int l = degree - 1; l > 0; --l) y = y * s + T(l) * all[l];
    return y;
  }
};

/// What a call fixes, as kernels read it.
template <class T>
struct FastmaxShape {
  int64_t B, H, queries, keys, d, dv;
  int64_t wide;  ///< of a prepared row: d numbers, a one, zeros
  const int32_t* key_lengths;
  int64_t first_key;
  bool causal;
  Prepare prepare;
  T prepare_epsilon, carried, epsilon, guard, keep_scale;
  ScorePolynomial<T> f;
  FeatureTable<T> table;
  DeviceDraw drawn;
  int64_t skipped_heads;      ///< of the rows before ours: see core/share.h
  int64_t drawn_row;          ///< of counters a token has
  bool letters_near = false;  ///< backward: the rows of a tile's tokens by letter lie in shared memory

  /// Keys of batch row b.
  HEED_BOTH int64_t keys_of(int64_t b) const {
    return key_lengths == nullptr ? keys : within(key_lengths[b] - first_key, 0, keys);
  }
  HEED_BOTH bool drops() const { return drawn.threshold > 0; }
  HEED_BOTH int64_t state_wide() const {
    return (dv + 4) / 4 * 4;
  }  ///< a row of a state: dv sums, that of ones
  /// Counters of token t of a head.
  HEED_BOTH uint64_t query_number(int64_t head, int64_t t) const {
    return static_cast<uint64_t>(((skipped_heads + head) * queries + t) * drawn_row);
  }
  HEED_BOTH uint64_t key_number(int64_t head, int64_t t) const {
    return (uint64_t{1} << 62) + static_cast<uint64_t>(((skipped_heads + head) * keys + t) * drawn_row);
  }
  /// One over the sum of a row's weights; 0 for a row without keys.
  __device__ T inverse(T sum) const {
    T total = sum + epsilon;
    if (fabs(total) < guard) total = copysign(guard, total);
    return total == T(0) ? T(0) : T(1) / total;
  }
};

/// From the terms; `factored`: with the table of features.
FastmaxShape<float> fastmax_shape(const Tensor& q, const Tensor& k, int64_t dv, const FastmaxTerms& terms,
                                  bool factored, float);
FastmaxShape<double> fastmax_shape(const Tensor& q, const Tensor& k, int64_t dv, const FastmaxTerms& terms,
                                   bool factored, double);

/// Prepared rows of a head lie one after the other.
template <class T>
struct PreparedRows {
  Tensor rows;     ///< [B H T, wide]
  Tensor inverse;  ///< [B H T]: what gradients are multiplied by on their way back
};

/// A warp a row: prepared, times `carried`.
template <class T>
__global__ void prepare_rows(FastmaxShape<T> x, Heads<const T> from, int64_t length, T carried, T* rows,
                             T* inverses) {
  const int64_t row = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  if (row >= x.B * x.H * length) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t head = row / length;
  const T* in = from.at(head / x.H, head % x.H, row % length);
  T* to = rows + row * x.wide;
  const auto all = [](T sum) {
#pragma unroll
    for (int bits = 16; bits > 0; bits /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, bits);
    return sum;
  };
  T mean = T(0), root = T(1);
  const bool centred = x.prepare == Prepare::standard;
  if (centred || x.prepare == Prepare::unit) {
    T sum = T(0), square = T(0);
    for (int64_t c = lane; centred && c < x.d; c += 32) sum += in[c];
    mean = all(sum) / static_cast<T>(x.d);
    for (int64_t c = lane; c < x.d; c += 32) square += (in[c] - mean) * (in[c] - mean);
    square = all(square);
    const T e = x.prepare_epsilon;
    root = sqrt(centred ? square / static_cast<T>(x.d) + e : square + e * e);
  }
  if (lane == 0) inverses[row] = T(1) / root;
  for (int64_t c = lane; c < x.wide; c += 32) {
    T y = c == x.d ? T(1) : T(0);
    if (c < x.d) {
      y = in[c];
      if (x.prepare == Prepare::positive) {
        y = y > T(0) ? y + T(1) : exp2(y * static_cast<T>(log2_e));
      } else if (x.prepare != Prepare::none) {
        // A unit vector of one number is exactly 1 or -1, so that 1 + s can be exactly 0.
        y = centred ? (y - mean) * (T(1) / root) : y / root;
      }
      y *= carried;
    }
    to[c] = y;
  }
}

template <class T>
PreparedRows<T> prepared(const FastmaxShape<T>& x, const Tensor& from, T carried) {
  const int64_t length = from.extent(2), rows = x.B * x.H * length;
  PreparedRows<T> to{Tensor(Shape{rows, x.wide}, from.dtype(), from.device()),
                     Tensor(Shape{rows}, from.dtype(), from.device())};
  cuda::run(prepare_rows<T>, {.blocks = dim3(static_cast<unsigned>((rows + 7) / 8)), .threads = dim3(256)}, x,
            Heads<const T>(from), length, carried, to.rows.template data<T>(), to.inverse.template data<T>());
  return to;
}

/// The features from `first` on of up to 64 tokens, [token, 64], from prepared rows `wide` apart; zeros past
/// `count` tokens and the last feature. With `kept`, which all threads have drawn before, what is dropped is
/// zero and the rest scaled.
template <class T>
__device__ inline void make_features(const FastmaxShape<T>& x, const T* rows, int count, int64_t first,
                                     bool weighted, const KeptPairs* kept, T* tile) {
  constexpr int ld = cuda::tile_ld(cuda::tile_rows);
  const int mine = static_cast<int>(threadIdx.x) % 64;
  const int64_t feature = first + mine;
  const bool there = feature < x.table.count;
  const int32_t* letter = x.table.letter + feature * x.table.letters;
  const int64_t a = there ? letter[0] : x.d, b = there && x.table.letters > 1 ? letter[1] : x.d;
  const T weight = !there ? T(0) : weighted ? x.table.weight[feature] : T(1);
  const bool drops = kept != nullptr && b != x.d;  // of degree 2 and more
#pragma unroll 4
  for (int token = static_cast<int>(threadIdx.x) / 64; token < 64; token += cuda::tile_threads / 64) {
    T value = T(0);
    if (token < count) {
      const T* row = rows + token * x.wide;
      value = row[a] * row[b];
      for (int l = 2; there && l < x.table.letters; ++l) value *= row[letter[l]];
      value *= weight;
      if (drops) value = kept->has(token, mine) ? value * x.keep_scale : T(0);
    }
    tile[token * ld + mine] = value;
  }
}

/// Draws what make_features() keeps of a tile whose first token has the counters from `number` on.
template <class T>
__device__ inline void draw_features(const FastmaxShape<T>& x, const KeptPairs& kept, uint64_t number,
                                     int count, int64_t first) {
  kept.draw(x.drawn, count, cuda::tile_rows,
            [&](int token) { return number + static_cast<uint64_t>(token * x.drawn_row + first); });
}

/// Rows [v, 1] or [dout / sum, c] of a head: what the features of a token are multiplied with.
template <class T>
struct Augmented {
  Heads<const T> rows;
  const T* last = nullptr;  ///< of row n of all heads at n last_ld; null: ones
  int64_t last_ld = 0;

  __device__ T last_of(int64_t head, int64_t length, int64_t t) const {
    return last == nullptr ? T(1) : last[(head * length + t) * last_ld];
  }
};

}  // namespace heed::kernel

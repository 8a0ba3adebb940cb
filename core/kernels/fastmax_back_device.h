// Gradients of Fastmax on a device: what both kernels read, and how gradients of features become those of the
// rows they are made from.
#pragma once

#include "core/kernels/fastmax_state_device.h"

namespace heed::kernel {

/// With g~_i = [dout_i, -dout_i . out_i] / sum_i and v~_j = [v_j, 1] the gradient of the weight of a pair is
/// g~_i . v~_j; so a state S over keys gives those of a query's features, S g~_i, and a state R = sum
/// phi(q_i) g~_i^T over queries those of a key's, R v~_j.
template <class T>
struct FastmaxBackCall {
  FastmaxShape<T> shape;
  const T *q = nullptr, *k = nullptr;  ///< prepared rows; null: there are none
  const T* g = nullptr;                ///< [B H Tq, state_wide]
  Heads<const T> v;
  const T *before = nullptr, *after = nullptr;  ///< [heads, segments, features, state_ld] of S and R, or null
  int64_t state_ld = 0;
  int64_t segment = 1;             ///< positions that share a state
  T *dq = nullptr, *dk = nullptr;  ///< gradients of the prepared rows, [B H T, wide]
  Heads<T> dv;
};

/// Writes dq, or dk and dv.
void fastmax_back_queries(const FastmaxBackCall<float>& call);
void fastmax_back_queries(const FastmaxBackCall<double>& call);
void fastmax_back_keys(const FastmaxBackCall<float>& call);
void fastmax_back_keys(const FastmaxBackCall<double>& call);

/// The rows of a tile's tokens by letter, and gradients of some of them.
template <class T>
struct PulledRows {
  static constexpr int ld = cuda::tile_ld(cuda::tile_rows);
  static constexpr int64_t most = 128;  ///< letters that are kept in shared memory
  const T* value;                       ///< of a letter and a token
  int64_t letter_step, token_step;
  T* slope;  ///< [W, ld] in shared memory: letters `column` to column + W
  int64_t column;

  __device__ T of(int64_t letter, int token) const {
    return value[letter * letter_step + token * token_step];
  }
};

/// Numbers of shared memory for PulledRows.
template <class T>
int pulled_numbers(int64_t d, int W) {
  return (W + (d <= PulledRows<T>::most ? static_cast<int>(d) + 1 : 0)) * PulledRows<T>::ld;
}

/// All threads: takes the prepared rows of `count` tokens, with zero gradients.
template <class T, int W>
__device__ inline PulledRows<T> take_rows(const FastmaxShape<T>& x, const T* rows, int count, int64_t column,
                                          T* memory) {
  PulledRows<T> to{rows, 1, x.wide, memory, column};
  for (int e = static_cast<int>(threadIdx.x); e < W * to.ld; e += cuda::tile_threads) memory[e] = T(0);
  if (x.d <= to.most) {
    T* values = memory + W * to.ld;
    const int letters = static_cast<int>(x.d) + 1;
    for (int e = static_cast<int>(threadIdx.x); e < letters * 64; e += cuda::tile_threads) {
      const int token = e / letters, letter = e % letters;
      values[letter * to.ld + token] = token < count ? rows[token * x.wide + letter] : T(0);
    }
    to.value = values;
    to.letter_step = to.ld;
    to.token_step = 1;
  }
  return to;
}

/// Adds what gradients of features, [feature, token] in `tile`, mean to the rows. Half the threads have the
/// even letters and half the odd ones, so that every sum has one order. Tokens are lanes: all take the same
/// way.
template <class T, int W>
__device__ inline void pull_features(const FastmaxShape<T>& x, const T* tile, int64_t first, bool weighted,
                                     int count, const PulledRows<T>& rows) {
  const int token = static_cast<int>(threadIdx.x) % 64, half = static_cast<int>(threadIdx.x) / 64;
  if (token >= count) return;
  const int letters = x.table.letters;
  const int features = static_cast<int>(min(x.table.count - first, int64_t{64}));
  for (int f = 0; f < features; ++f) {
    const int32_t* letter = x.table.letter + (first + f) * letters;
    const T slope = tile[f * rows.ld + token] * (weighted ? x.table.weight[first + f] : T(1));
    for (int l = 0; l < letters; ++l) {
      const int32_t mine = letter[l];
      if (mine == x.d) break;
      const int64_t place = mine - rows.column;
      if (mine % 2 != half || place < 0 || place >= W) continue;
      T other = slope;
      for (int n = 0; n < letters; ++n) {
        if (n != l) other *= rows.of(letter[n], token);
      }
      rows.slope[place * rows.ld + token] += other;
    }
  }
}

/// Gradients of dropped features: scaled where they are kept, zero elsewhere. `map` is [feature, token] in
/// the layout of `token_of`.
template <class T, class Token>
__device__ inline void drop_slopes(const cuda::Share& me, const FastmaxShape<T>& x, const KeptPairs& kept,
                                   int64_t first, Token token_of, T (&map)[cuda::mine][4]) {
#pragma unroll
  for (int r = 0; r < cuda::mine; ++r) {
    const int64_t feature = first + me.row(r);
    const bool drops = feature < x.table.count && x.table.letters > 1 &&
                       x.table.letter[feature * x.table.letters + 1] != x.d;
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      if (drops) map[r][n] = kept.has(token_of(n), me.row(r)) ? map[r][n] * x.keep_scale : T(0);
    }
  }
}

/// Adds this thread's part of sums [token, W columns] and writes the gradients of the rows.
template <class T, int W, int C>
__device__ inline void put_rows(const cuda::Share& me, const FastmaxShape<T>& x, const PulledRows<T>& rows,
                                const T (&sum)[cuda::mine][C], int count, T* to) {
#pragma unroll
  for (int r = 0; r < cuda::mine; ++r) {
    if (me.row(r) >= count) continue;
    T all[C];
#pragma unroll
    for (int n = 0; n < C; ++n) all[n] = sum[r][n] + rows.slope[me.column<C>(n) * rows.ld + me.row(r)];
    cuda::put_columns(me, all, x.d - rows.column, to + me.row(r) * x.wide + rows.column);
  }
}

/// Segments of a call's positions.
HEED_BOTH inline int64_t segments_of(int64_t length, int64_t segment) {
  return (length + segment - 1) / segment;
}

/// A warp a row: from gradients of prepared rows to those of the rows themselves; rows past the keys that are
/// there get zero. `carried` as for prepare_rows().
template <class T>
__global__ void unprepare_rows(FastmaxShape<T> x, const T* slopes, const T* rows, const T* inverses,
                               int64_t length, bool query, T carried, Heads<T> to) {
  const int64_t row = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  if (row >= x.B * x.H * length) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t head = row / length, t = row % length;
  const bool there = query || t < x.keys_of(head / x.H);
  const T *slope = slopes + row * x.wide, *y = rows + row * x.wide;
  const T back = T(1) / carried;
  const bool centred = x.prepare == Prepare::standard, turns = centred || x.prepare == Prepare::unit;
  T total = T(0), along = T(0);
  for (int64_t c = lane; turns && there && c < x.d; c += 32) {
    total += slope[c] * carried;
    along += slope[c] * carried * y[c];
  }
#pragma unroll
  for (int bits = 16; bits > 0; bits /= 2) {
    total += __shfl_xor_sync(0xffffffffU, total, bits);
    along += __shfl_xor_sync(0xffffffffU, along, bits);
  }
  const T share = centred ? T(1) / static_cast<T>(x.d) : T(1);
  total = centred ? total * share : T(0);
  along *= share * back * back;
  T* out = to.at(head / x.H, head % x.H, t);
  for (int64_t c = lane; c < x.d; c += 32) {
    T s = T(0);
    if (there) {
      s = slope[c] * carried;
      if (x.prepare == Prepare::positive) s *= y[c] * back > T(1) ? T(1) : y[c] * back;
      if (turns) s = (s - total - along * y[c]) * inverses[row];
    }
    out[c] = s;
  }
}

template <class T>
void unprepare(const FastmaxShape<T>& x, const Tensor& slopes, const PreparedRows<T>& rows, bool query,
               T carried, const Tensor& to) {
  const int64_t length = to.extent(2), all = x.B * x.H * length;
  cuda::run(unprepare_rows<T>, {.blocks = dim3(static_cast<unsigned>((all + 7) / 8)), .threads = dim3(256)},
            x, static_cast<const T*>(slopes.data<T>()), static_cast<const T*>(rows.rows.template data<T>()),
            static_cast<const T*>(rows.inverse.template data<T>()), length, query, carried, Heads<T>(to));
}

}  // namespace heed::kernel

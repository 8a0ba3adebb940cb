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

/// Writes dk and dv.
template <class T>
void fastmax_back_keys(const FastmaxBackCall<T>& call);

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
HEED_BOTH int pulled_numbers(const FastmaxShape<T>& x, int W) {
  return (W + (x.letters_near ? static_cast<int>(x.d) + 1 : 0)) * PulledRows<T>::ld;
}

/// All threads: takes the prepared rows of `count` tokens, with zero gradients.
template <class T, int W>
__device__ inline PulledRows<T> take_rows(const FastmaxShape<T>& x, const T* rows, int count, int64_t column,
                                          T* memory) {
  PulledRows<T> to{rows, 1, x.wide, memory, column};
  for (int e = static_cast<int>(threadIdx.x); e < W * to.ld; e += cuda::tile_threads) memory[e] = T(0);
  if (x.letters_near) {
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

/// The shared memory of a block that takes 64 tokens, its own, through those that they meet. W: numbers of a
/// slice.
template <class T, int W>
struct BackTiles {
  static constexpr int wide = cuda::tile_rows, ld = cuda::tile_ld(wide);
  T *left, *right;  ///< slices
  T *map, *own;     ///< of pairs; features of its own tokens, [token, feature], where they are asked for
  T *last, *rows;   ///< 64 numbers; for take_rows()
  // Only where monomials are dropped:
  T *met, *weights;  ///< features of tokens that are met; gradients of the weights of pairs, [met, own]
  KeptPairs kept, kept_met;

  __device__ BackTiles(const FastmaxShape<T>& x, bool features) {
    left = cuda::shared<T>();
    right = left + cuda::tile_size(W);
    map = right + cuda::tile_size(W);
    own = map + cuda::tile_size(wide);
    last = own + (features ? cuda::tile_size(wide) : 0);
    rows = last + wide;
    met = rows + pulled_numbers(x, W);
    weights = met + cuda::tile_size(wide);
    kept.byte = reinterpret_cast<uint8_t*>(weights + cuda::tile_size(wide));
    kept_met.byte = kept.byte + KeptPairs::bytes;
  }

  /// For blocks that have `width` columns of `length` tokens of every head to write.
  static cuda::Grid grid(const FastmaxShape<T>& x, bool features, int64_t length, int64_t width) {
    const int numbers = 2 * cuda::tile_size(W) + (features ? 2 : 1) * cuda::tile_size(wide) + wide +
                        pulled_numbers(x, W) + (x.drops() ? 2 * cuda::tile_size(wide) : 0);
    return {.blocks = dim3(static_cast<unsigned>(x.B * x.H * cuda::tiles_of(length)),
                           static_cast<unsigned>(std::max<int64_t>(1, cuda::pieces(width, W)))),
            .threads = dim3(cuda::tile_threads),
            .shared_bytes = numbers * static_cast<int>(sizeof(T)) + (x.drops() ? 2 * KeptPairs::bytes : 0)};
  }
};

/// Calls f(integral_constant<int, W>) with the numbers of a slice.
template <class T, class F>
void visit_slices(const FastmaxShape<T>& x, F&& f) {
  if constexpr (std::is_same_v<T, double>) {
    f(std::integral_constant<int, 32>());
  } else if (std::max(x.d, x.dv) <= 32) {
    f(std::integral_constant<int, 32>());
  } else {
    f(std::integral_constant<int, 64>());
  }
}

/// Whether the letters of a call find room in shared memory beside the rest.
template <class T>
bool letters_fit(FastmaxShape<T> x) {
  if (x.d > PulledRows<T>::most) return false;
  x.letters_near = true;
  bool fit = false;
  visit_slices(x, [&](auto W) {
    fit = BackTiles<T, decltype(W)::value>::grid(x, true, 1, 1).shared_bytes <= cuda::block_room();
  });
  return fit;
}

/// The last column of g of up to 64 queries; zeros behind.
template <class T>
__device__ inline void load_last(const FastmaxShape<T>& x, const T* g, int count, T* last) {
  const int row = static_cast<int>(threadIdx.x);
  if (row < cuda::tile_rows) last[row] = row < count ? g[row * x.state_wide() + x.dv] : T(0);
}

/// From products [feature, own token] of a state's rows with g or v to gradients of features, in tiles.map:
/// adds those of the state's last column, with last_of(token), and drops.
template <class T, int W, class Last>
__device__ inline void put_feature_slopes(const cuda::Share& me, const FastmaxShape<T>& x,
                                          const BackTiles<T, W>& tiles, int64_t feature, const T* state,
                                          int64_t state_ld, Last last_of, T (&map)[cuda::mine][4]) {
#pragma unroll
  for (int r = 0; r < cuda::mine; ++r) {
    const bool there = feature + me.row(r) < x.table.count;
    const T of_one = there ? state[me.row(r) * state_ld + x.dv] : T(0);
#pragma unroll
    for (int n = 0; n < 4; ++n) map[r][n] += of_one * last_of(me.key(n));
  }
  if (x.drops())
    drop_slopes(
        me, x, tiles.kept, feature, [&](int n) { return me.key(n); }, map);
  cuda::put_map(me, map, tiles.map);
}

/// Gradients of the weights of pairs(own, met) into tiles.weights; last_of(own, met): the last number of the
/// query's g.
template <class T, int W, class Met, class Own, class Pair, class Last>
__device__ inline void put_weight_slopes(const cuda::Share& me, const FastmaxShape<T>& x,
                                         const BackTiles<T, W>& tiles, Met fetch_met, Own fetch_own,
                                         Pair pair, Last last_of) {
  T slopes[cuda::mine][4];
  cuda::clear(slopes);
  cuda::dots_of_slices<T, W>(
      me, tiles.left, tiles.right, x.dv, [&](int64_t c) { fetch_met(tiles.left, c); },
      [&](int64_t c) { fetch_own(tiles.right, c); }, slopes);
#pragma unroll
  for (int r = 0; r < cuda::mine; ++r) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int own = me.key(n), met = me.row(r);
      slopes[r][n] = pair(own, met) ? slopes[r][n] + last_of(own, met) : T(0);
    }
  }
  cuda::put_map(me, slopes, tiles.weights);
}

/// What features of tokens that are met (tiles.met) make of tiles.weights: gradients of the own tokens'
/// features, which go to `rows`. `weighted` as for pull_features().
template <class T, int W>
__device__ inline void pull_met_features(const cuda::Share& me, const FastmaxShape<T>& x,
                                         const BackTiles<T, W>& tiles, int64_t feature, bool weighted,
                                         int count, const PulledRows<T>& rows) {
  constexpr int ld = BackTiles<T, W>::ld;
  T pulls[cuda::mine][4];
  cuda::clear(pulls);
  cuda::outer<T, ld, ld>(me, tiles.met, tiles.weights, cuda::tile_rows, pulls);
  drop_slopes(
      me, x, tiles.kept, feature, [&](int n) { return me.column<4>(n); }, pulls);
#pragma unroll
  for (int r = 0; r < cuda::mine; ++r) {
#pragma unroll
    for (int n = 0; n < 4; ++n) tiles.map[me.row(r) * ld + me.column<4>(n)] = pulls[r][n];
  }
  __syncthreads();
  pull_features<T, W>(x, tiles.map, feature, weighted, count, rows);
  __syncthreads();
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

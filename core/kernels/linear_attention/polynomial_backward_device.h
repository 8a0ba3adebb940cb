// PolynomialAttention backward on a device: the inputs of both kernels, and the step from gradients of
// features to gradients of mapped rows.
#pragma once

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/linear_attention/polynomial_state_device.h"

namespace heed::kernel {

/// With g~_i = [dout_i, -dout_i . out_i] / sum_i and v~_j = [v_j, 1] the gradient of the weight of a pair is
/// g~_i . v~_j; so a state S over keys gives those of a query's features, S g~_i, and a state R = sum
/// phi(q_i) g~_i^T over queries those of a key's, R v~_j.
template <class T>
struct PolynomialBackCall {
  PolynomialShape<T> shape;
  const T *q = nullptr, *k = nullptr;  ///< prepared rows; null: there are none
  const T* g = nullptr;                ///< [B H Tq, state_width]
  HeadView<const T> v;
  const T *before = nullptr, *after = nullptr;  ///< [heads, segments, features, state_ld] of S and R, or null
  int64_t state_ld = 0;
  int64_t segment = 1;             ///< positions that share a state
  T *dq = nullptr, *dk = nullptr;  ///< gradients of the prepared rows, [B H T, row_width]
  HeadView<T> dv;
};

/// Writes dk and dv.
template <class T>
void polynomial_backward_keys(const PolynomialBackCall<T>& call);

/// The mapped rows of a tile's tokens, by variable, and the gradients of W of their columns.
template <class T>
struct RowGrads {
  static constexpr int ld = cuda::tile_ld(cuda::tile_rows);
  static constexpr int64_t most = 128;  ///< variables whose rows fit in shared memory
  const T* value;                       ///< of a variable and a token
  int64_t variable_step, token_step;
  T* grad;  ///< [W, ld] in shared memory: variables [column, column + W)
  int64_t column;

  __device__ T of(int64_t variable, int token) const {
    return value[variable * variable_step + token * token_step];
  }
};

/// Numbers of shared memory for RowGrads.
template <class T>
HEED_BOTH int row_grads_size(const PolynomialShape<T>& x, int W) {
  return (W + (x.variables_in_shared ? static_cast<int>(x.d) + 1 : 0)) * RowGrads<T>::ld;
}

/// Loads the mapped rows of `count` tokens and zeroes their gradients. All threads call it.
template <class T, int W>
__device__ inline RowGrads<T> gather_rows(const PolynomialShape<T>& x, const T* rows, int count,
                                          int64_t column, T* memory) {
  RowGrads<T> to{rows, 1, x.row_width, memory, column};
  for (int e = static_cast<int>(threadIdx.x); e < W * to.ld; e += cuda::tile_threads) memory[e] = T(0);
  if (x.variables_in_shared) {
    T* values = memory + W * to.ld;
    const int variables = static_cast<int>(x.d) + 1;
    for (int e = static_cast<int>(threadIdx.x); e < variables * 64; e += cuda::tile_threads) {
      const int token = e / variables, variable = e % variables;
      values[variable * to.ld + token] = token < count ? rows[token * x.row_width + variable] : T(0);
    }
    to.value = values;
    to.variable_step = to.ld;
    to.token_step = 1;
  }
  return to;
}

/// Adds to the row gradients what the feature gradients [feature, token] in `tile` contribute. Half the
/// threads handle even variables and half odd ones, so every sum has a fixed order. Lanes are tokens, so a
/// warp does not diverge.
template <class T, int W>
__device__ inline void backpropagate_features(const PolynomialShape<T>& x, const T* tile, int64_t first,
                                              bool weighted, int count, const RowGrads<T>& rows) {
  const int token = static_cast<int>(threadIdx.x) % 64, half = static_cast<int>(threadIdx.x) / 64;
  if (token >= count) return;
  const int variables = x.table.variables;
  const int features = static_cast<int>(min(x.table.count - first, int64_t{64}));
  for (int f = 0; f < features; ++f) {
    const int32_t* variable = x.table.variable + (first + f) * variables;
    const T grad = tile[f * rows.ld + token] * (weighted ? x.table.weight[first + f] : T(1));
    for (int l = 0; l < variables; ++l) {
      const int32_t own_variable = variable[l];
      if (own_variable == x.d) break;
      const int64_t place = own_variable - rows.column;
      if (own_variable % 2 != half || place < 0 || place >= W) continue;
      T product = grad;
      for (int n = 0; n < variables; ++n) {
        if (n != l) product *= rows.of(variable[n], token);
      }
      rows.grad[place * rows.ld + token] += product;
    }
  }
}

/// Gradients of dropped features: scaled where they are kept, zero elsewhere. `map` is [feature, token] in
/// the layout of `token_of`.
template <class T, class Token>
__device__ inline void drop_feature_grads(const cuda::Share& me, const PolynomialShape<T>& x,
                                          const KeepMask& keep_mask, int64_t first, Token token_of,
                                          T (&map)[cuda::rows_per_thread][4]) {
#pragma unroll
  for (int r = 0; r < cuda::rows_per_thread; ++r) {
    const int64_t feature = first + me.row(r);
    const bool drops = feature < x.table.count && x.table.variables > 1 &&
                       x.table.variable[feature * x.table.variables + 1] != x.d;
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      if (drops) map[r][n] = keep_mask.has(token_of(n), me.row(r)) ? map[r][n] * x.keep_scale : T(0);
    }
  }
}

/// The shared memory of a block that takes 64 tokens, its own, through those that they meet. W: numbers of a
/// slice.
template <class T, int W>
struct BackwardTiles {
  static constexpr int ld = cuda::tile_ld(cuda::tile_rows);
  T *left, *right;  ///< slices
  T *map, *own;     ///< of pairs; features of its own tokens, [token, feature], where they are asked for
  T *last, *rows;   ///< 64 numbers; for gather_rows()
  // Only where monomials are dropped:
  T *other, *weights;  ///< features of the other tokens; gradients of the weights of pairs, [other, own]
  KeepMask keep_mask, other_keep_mask;

  __device__ BackwardTiles(const PolynomialShape<T>& x, bool features) {
    left = cuda::shared<T>();
    right = left + cuda::tile_size(W);
    map = right + cuda::tile_size(W);
    own = map + cuda::tile_size(cuda::tile_rows);
    last = own + (features ? cuda::tile_size(cuda::tile_rows) : 0);
    rows = last + cuda::tile_rows;
    other = rows + row_grads_size(x, W);
    weights = other + cuda::tile_size(cuda::tile_rows);
    keep_mask.byte = reinterpret_cast<uint8_t*>(weights + cuda::tile_size(cuda::tile_rows));
    other_keep_mask.byte = keep_mask.byte + KeepMask::bytes;
  }

  /// For blocks that have `width` columns of `length` tokens of every head to write.
  static cuda::Grid grid(const PolynomialShape<T>& x, bool features, int64_t length, int64_t width) {
    const int numbers = 2 * cuda::tile_size(W) + (features ? 2 : 1) * cuda::tile_size(cuda::tile_rows) +
                        cuda::tile_rows + row_grads_size(x, W) +
                        (x.drops() ? 2 * cuda::tile_size(cuda::tile_rows) : 0);
    return {.blocks = dim3(static_cast<unsigned>(x.B * x.H * cuda::tiles_of(length)),
                           static_cast<unsigned>(std::max<int64_t>(1, ceil_div(width, W)))),
            .threads = dim3(cuda::tile_threads),
            .shared_bytes = numbers * static_cast<int>(sizeof(T)) + (x.drops() ? 2 * KeepMask::bytes : 0)};
  }
};

/// Calls f(integral_constant<int, W>) with the numbers of a slice.
template <class T, class F>
void visit_slices(const PolynomialShape<T>& x, F&& f) {
  if constexpr (std::is_same_v<T, double>) {
    f(std::integral_constant<int, 32>());
  } else if (std::max(x.d, x.dv) <= 32) {
    f(std::integral_constant<int, 32>());
  } else {
    f(std::integral_constant<int, 64>());
  }
}

/// True where the mapped rows of a tile fit into shared memory with the rest.
template <class T>
bool variables_fit(PolynomialShape<T> x) {
  if (x.d > RowGrads<T>::most) return false;
  x.variables_in_shared = true;
  bool fit = false;
  visit_slices(x, [&](auto W) {
    fit = BackwardTiles<T, decltype(W)::value>::grid(x, true, 1, 1).shared_bytes <= cuda::block_room();
  });
  return fit;
}

/// The last column of g of up to 64 queries; zeros behind.
template <class T>
__device__ inline void load_last(const PolynomialShape<T>& x, const T* g, int count, T* last) {
  const int row = static_cast<int>(threadIdx.x);
  if (row < cuda::tile_rows) last[row] = row < count ? g[row * x.state_width() + x.dv] : T(0);
}

/// From products [feature, own token] of a state's rows with g or v to gradients of features, in tiles.map:
/// adds those of the state's last column, with last_of(token), and drops.
template <class T, int W, class Last>
__device__ inline void put_feature_grads(const cuda::Share& me, const PolynomialShape<T>& x,
                                         const BackwardTiles<T, W>& tiles, int64_t feature, const T* state,
                                         int64_t state_ld, Last last_of, T (&map)[cuda::rows_per_thread][4]) {
#pragma unroll
  for (int r = 0; r < cuda::rows_per_thread; ++r) {
    const bool is_feature = feature + me.row(r) < x.table.count;
    const T of_one = is_feature ? state[me.row(r) * state_ld + x.dv] : T(0);
#pragma unroll
    for (int n = 0; n < 4; ++n) map[r][n] += of_one * last_of(me.key(n));
  }
  if (x.drops())
    drop_feature_grads(
        me, x, tiles.keep_mask, feature, [&](int n) { return me.key(n); }, map);
  cuda::put_map(me, map, tiles.map);
}

/// Gradients of the weights of pairs(own, met) into tiles.weights; last_of(own, met): the last number of the
/// query's g.
template <class T, int W, class Met, class Own, class Pair, class Last>
__device__ inline void put_weight_grads(const cuda::Share& me, const PolynomialShape<T>& x,
                                        const BackwardTiles<T, W>& tiles, Met fetch_other, Own fetch_own,
                                        Pair pair, Last last_of) {
  T grads[cuda::rows_per_thread][4];
  cuda::clear(grads);
  cuda::dots_of_slices<T, W>(
      me, tiles.left, tiles.right, x.dv, [&](int64_t c) { fetch_other(tiles.left, c); },
      [&](int64_t c) { fetch_own(tiles.right, c); }, grads);
#pragma unroll
  for (int r = 0; r < cuda::rows_per_thread; ++r) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int own = me.key(n), other = me.row(r);
      grads[r][n] = pair(own, other) ? grads[r][n] + last_of(own, other) : T(0);
    }
  }
  cuda::put_map(me, grads, tiles.weights);
}

/// Adds to `rows` [own token, feature] the gradients of the own tokens' features from the pairs of this tile:
/// sum over the other tokens j of tiles.weights[j, own] * tiles.other[j, feature]. `weighted`: multiplied by
/// the weight of each feature's monomial.
template <class T, int W>
__device__ inline void backpropagate_pairs(const cuda::Share& me, const PolynomialShape<T>& x,
                                           const BackwardTiles<T, W>& tiles, int64_t feature, bool weighted,
                                           int count, const RowGrads<T>& rows) {
  constexpr int ld = BackwardTiles<T, W>::ld;
  T grads[cuda::rows_per_thread][4];
  cuda::clear(grads);
  cuda::outer<T, ld, ld>(me, tiles.other, tiles.weights, cuda::tile_rows, grads);
  drop_feature_grads(
      me, x, tiles.keep_mask, feature, [&](int n) { return me.column<4>(n); }, grads);
#pragma unroll
  for (int r = 0; r < cuda::rows_per_thread; ++r) {
#pragma unroll
    for (int n = 0; n < 4; ++n) tiles.map[me.row(r) * ld + me.column<4>(n)] = grads[r][n];
  }
  __syncthreads();
  backpropagate_features<T, W>(x, tiles.map, feature, weighted, count, rows);
  __syncthreads();
}

/// Adds this thread's part of sums [token, W columns] and writes the gradients of the rows.
template <class T, int W, int C>
__device__ inline void scatter_add_rows(const cuda::Share& me, const PolynomialShape<T>& x,
                                        const RowGrads<T>& rows, const T (&sum)[cuda::rows_per_thread][C],
                                        int count, T* to) {
#pragma unroll
  for (int r = 0; r < cuda::rows_per_thread; ++r) {
    if (me.row(r) >= count) continue;
    T all[C];
#pragma unroll
    for (int n = 0; n < C; ++n) all[n] = sum[r][n] + rows.grad[me.column<C>(n) * rows.ld + me.row(r)];
    cuda::put_columns(me, all, x.d - rows.column, to + me.row(r) * x.row_width + rows.column);
  }
}

/// Segments of a call's positions.
HEED_BOTH inline int64_t segments_of(int64_t length, int64_t segment) { return ceil_div(length, segment); }

/// From gradients of dropped rows to those of the rows themselves, one warp per row; rows past the keys that
/// there are get zero. `rows` are mapped, before dropout; `prescale` as for apply_feature_map().
template <class T>
__global__ void unmap_rows(PolynomialShape<T> x, const T* grads, const T* rows, const T* inverses,
                           int64_t length, bool query, T prescale, HeadView<T> to) {
  const int64_t row = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  if (row >= x.B * x.H * length) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t head = row / length, t = row % length;
  const bool is_seen = query || t < x.keys_of(head / x.H);
  const T *grad = grads + row * x.row_width, *y = rows + row * x.row_width;
  const T back = T(1) / prescale;
  const bool centred = x.prepare == FeatureMap::standard, turns = centred || x.prepare == FeatureMap::unit;
  T total = T(0), along = T(0);
  for (int64_t c = lane; turns && is_seen && c < x.d; c += 32) {
    const T own = grad[c] * prescale * x.kept(query, head, t, c);
    total += own;
    along += own * y[c];
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
    if (is_seen) {
      s = grad[c] * prescale * x.kept(query, head, t, c);
      if (x.prepare == FeatureMap::positive) s *= y[c] * back > T(1) ? T(1) : y[c] * back;
      if (turns) s = (s - total - along * y[c]) * inverses[row];
    }
    out[c] = s;
  }
}

template <class T>
void unmap_gradients(const PolynomialShape<T>& x, const Tensor& grads, const MappedRows<T>& rows, bool query,
                     const Tensor& to) {
  const int64_t length = to.extent(2), all = x.B * x.H * length;
  cuda::run(unmap_rows<T>, {.blocks = dim3(static_cast<unsigned>((all + 7) / 8)), .threads = dim3(256)}, x,
            static_cast<const T*>(grads.data<T>()), static_cast<const T*>(rows.whole.template data<T>()),
            static_cast<const T*>(rows.inverse.template data<T>()), length, query, query ? x.prescale : T(1),
            HeadView<T>(to));
}

}  // namespace heed::kernel

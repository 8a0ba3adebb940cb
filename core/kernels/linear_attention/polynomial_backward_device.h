// PolynomialAttention backward on a device: the inputs of both kernels, and the step from gradients of
// features to gradients of mapped rows.
#pragma once

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/linear_attention/polynomial_state_device.h"

namespace heed::kernel {

/// With g_i = [dout_i, -dout_i . out_i] / sum_i and v1_j = [v_j, 1], the gradient of the weight of pair (i,
/// j) is g_i . v1_j. So a state S = sum over keys of phi(k_j) v1_j^T gives the gradients of a query's
/// features, S g_i, and a state R = sum over queries of phi(q_i) g_i^T those of a key's features, R v1_j.
template <class T>
struct PolynomialBackCall {
  PolynomialShape<T> shape;
  const T *q = nullptr, *k = nullptr;  ///< mapped rows; null: there are none
  const T* g = nullptr;                ///< [B H Tq, state_width]
  HeadView<const T> v;
  const T *before = nullptr, *after = nullptr;  ///< [heads, segments, features, state_ld] of S and R, or null
  int64_t state_ld = 0;
  int64_t segment = 1;             ///< positions that share a state
  T *dq = nullptr, *dk = nullptr;  ///< gradients of the mapped rows, [B H T, row_width]
  HeadView<T> dv;
};

/// Writes dk of the mapped keys, and dv.
template <class T>
void polynomial_backward_keys(const PolynomialBackCall<T>& call);

/// The mapped rows of a tile's tokens, and the gradients of W of their columns (variables).
template <class T>
struct RowGrads {
  static constexpr int ld = cuda::tile_ld(cuda::tile_rows);
  static constexpr int64_t max_shared_variables = 128;  ///< more variables do not fit in shared memory
  const T* value;                                       ///< value[variable variable_step + token token_step]
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

/// rows.grad [variable, token] += gradients of the variables from those of the features, `tile` [feature,
/// token]: for a feature x_a x_b ..., d x_a = grad times the product of its other variables. Lanes are
/// tokens, so a warp does not diverge; half of the threads handle even variables and half odd ones, so each
/// sum has a fixed order.
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
      const int32_t variable_l = variable[l];
      if (variable_l == x.d) break;
      const int64_t column = variable_l - rows.column;
      if (variable_l % 2 != half || column < 0 || column >= W) continue;
      T product = grad;
      for (int n = 0; n < variables; ++n) {
        if (n != l) product *= rows.of(variable[n], token);
      }
      rows.grad[column * rows.ld + token] += product;
    }
  }
}

/// Applies the dropout mask to feature gradients `map` [feature, token]: scales them where features are kept,
/// else zero. token_of(n) is the token of this thread's column n.
template <class T, class Token>
__device__ inline void drop_feature_grads(const cuda::TileThread& thread, const PolynomialShape<T>& x,
                                          const KeepMask& keep_mask, int64_t first, Token token_of,
                                          T (&map)[cuda::rows_per_thread][4]) {
#pragma unroll
  for (int r = 0; r < cuda::rows_per_thread; ++r) {
    const int64_t feature = first + thread.row(r);
    const bool may_drop = feature < x.table.count && x.table.variables > 1 &&
                          x.table.variable[feature * x.table.variables + 1] != x.d;
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      if (may_drop) map[r][n] = keep_mask.has(token_of(n), thread.row(r)) ? map[r][n] * x.keep_scale : T(0);
    }
  }
}

/// The shared memory of a block that computes gradients of 64 tokens, its own, from the other tokens, 64 at a
/// time. W: numbers of a slice of rows.
template <class T, int W>
struct BackwardTiles {
  static constexpr int ld = cuda::tile_ld(cuda::tile_rows);
  T *left, *right;  ///< slices of rows
  T* map;           ///< numbers of pairs
  T* own;           ///< [token, feature]: features of its own tokens, only with `features`
  T* last;          ///< [64]: the last numbers of the queries' g
  T* rows;          ///< memory of gather_rows()
  // Only with dropout of monomials:
  T* other;         ///< [token, feature]: features of the other tokens
  T* weight_grads;  ///< [other token, own token]: gradients of the weights of pairs
  KeepMask keep_mask, other_keep_mask;

  __device__ BackwardTiles(const PolynomialShape<T>& x, bool features) {
    left = cuda::shared<T>();
    right = left + cuda::tile_size(W);
    map = right + cuda::tile_size(W);
    own = map + cuda::tile_size(cuda::tile_rows);
    last = own + (features ? cuda::tile_size(cuda::tile_rows) : 0);
    rows = last + cuda::tile_rows;
    other = rows + row_grads_size(x, W);
    weight_grads = other + cuda::tile_size(cuda::tile_rows);
    keep_mask.byte = reinterpret_cast<uint8_t*>(weight_grads + cuda::tile_size(cuda::tile_rows));
    other_keep_mask.byte = keep_mask.byte + KeepMask::bytes;
  }

  /// One block per 64 of `length` tokens of every head and W of `width` columns.
  static cuda::Grid grid(const PolynomialShape<T>& x, bool features, int64_t length, int64_t width) {
    const int numbers = 2 * cuda::tile_size(W) + (features ? 2 : 1) * cuda::tile_size(cuda::tile_rows) +
                        cuda::tile_rows + row_grads_size(x, W) +
                        (x.drops_monomials() ? 2 * cuda::tile_size(cuda::tile_rows) : 0);
    return {.blocks = dim3(static_cast<unsigned>(x.B * x.H * cuda::tiles_of(length)),
                           static_cast<unsigned>(std::max<int64_t>(1, ceil_div(width, W)))),
            .threads = dim3(cuda::tile_threads),
            .shared_bytes =
                numbers * static_cast<int>(sizeof(T)) + (x.drops_monomials() ? 2 * KeepMask::bytes : 0)};
  }
};

/// Calls f(std::integral_constant<int, W>) with the width of a slice.
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

/// True where the mapped rows of a tile fit into shared memory beside the other tiles.
template <class T>
bool variables_fit_in_shared(PolynomialShape<T> x) {
  if (x.d > RowGrads<T>::max_shared_variables) return false;
  x.variables_in_shared = true;
  bool fit = false;
  visit_slices(x, [&](auto W) {
    fit = BackwardTiles<T, decltype(W)::value>::grid(x, true, 1, 1).shared_bytes <= cuda::max_shared_bytes();
  });
  return fit;
}

/// last[i] = the last number of g of query i, for up to 64 queries; zero behind `count`.
template <class T>
__device__ inline void load_last(const PolynomialShape<T>& x, const T* g, int count, T* last) {
  const int row = static_cast<int>(threadIdx.x);
  if (row < cuda::tile_rows) last[row] = row < count ? g[row * x.state_width() + x.dv] : T(0);
}

/// tiles.map [feature, own token] = gradients of features from `map`, the products of a state's rows with g
/// or v: adds the products of the state's last column with last_of(token), and applies the dropout mask.
template <class T, int W, class Last>
__device__ inline void put_feature_grads(const cuda::TileThread& thread, const PolynomialShape<T>& x,
                                         const BackwardTiles<T, W>& tiles, int64_t feature, const T* state,
                                         int64_t state_ld, Last last_of, T (&map)[cuda::rows_per_thread][4]) {
#pragma unroll
  for (int r = 0; r < cuda::rows_per_thread; ++r) {
    const bool is_feature = feature + thread.row(r) < x.table.count;
    const T of_one = is_feature ? state[thread.row(r) * state_ld + x.dv] : T(0);
#pragma unroll
    for (int n = 0; n < 4; ++n) map[r][n] += of_one * last_of(thread.key(n));
  }
  if (x.drops_monomials())
    drop_feature_grads(
        thread, x, tiles.keep_mask, feature, [&](int n) { return thread.key(n); }, map);
  cuda::put_map(thread, map, tiles.map);
}

/// tiles.weight_grads [other, own] = g . [v, 1] of each pair for which is_pair(own, other), else 0.
/// last_of(own, other) is the last number of g of the pair's query.
template <class T, int W, class Other, class Own, class Pair, class Last>
__device__ inline void put_weight_grads(const cuda::TileThread& thread, const PolynomialShape<T>& x,
                                        const BackwardTiles<T, W>& tiles, Other fetch_other, Own fetch_own,
                                        Pair is_pair, Last last_of) {
  T grads[cuda::rows_per_thread][4];
  cuda::clear(grads);
  cuda::dots_of_slices<T, W>(
      thread, tiles.left, tiles.right, x.dv, [&](int64_t c) { fetch_other(tiles.left, c); },
      [&](int64_t c) { fetch_own(tiles.right, c); }, grads);
#pragma unroll
  for (int r = 0; r < cuda::rows_per_thread; ++r) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int own = thread.key(n), other = thread.row(r);
      grads[r][n] = is_pair(own, other) ? grads[r][n] + last_of(own, other) : T(0);
    }
  }
  cuda::put_map(thread, grads, tiles.weight_grads);
}

/// Adds to `rows` the gradients of the own tokens through their features: gradient of a feature = sum over
/// the other tokens j of tiles.weight_grads[j, own] tiles.other[j, feature], times the weight of its monomial
/// if `weighted`.
template <class T, int W>
__device__ inline void backpropagate_pairs(const cuda::TileThread& thread, const PolynomialShape<T>& x,
                                           const BackwardTiles<T, W>& tiles, int64_t feature, bool weighted,
                                           int count, const RowGrads<T>& rows) {
  constexpr int ld = BackwardTiles<T, W>::ld;
  T grads[cuda::rows_per_thread][4];
  cuda::clear(grads);
  cuda::outer<T, ld, ld>(thread, tiles.other, tiles.weight_grads, cuda::tile_rows, grads);
  drop_feature_grads(
      thread, x, tiles.keep_mask, feature, [&](int n) { return thread.column<4>(n); }, grads);
#pragma unroll
  for (int r = 0; r < cuda::rows_per_thread; ++r) {
#pragma unroll
    for (int n = 0; n < 4; ++n) tiles.map[thread.row(r) * ld + thread.column<4>(n)] = grads[r][n];
  }
  __syncthreads();
  backpropagate_features<T, W>(x, tiles.map, feature, weighted, count, rows);
  __syncthreads();
}

/// to [token, W columns] = sum, this thread's part of the gradients of pairs, plus rows.grad.
template <class T, int W, int C>
__device__ inline void scatter_add_rows(const cuda::TileThread& thread, const PolynomialShape<T>& x,
                                        const RowGrads<T>& rows, const T (&sum)[cuda::rows_per_thread][C],
                                        int count, T* to) {
#pragma unroll
  for (int r = 0; r < cuda::rows_per_thread; ++r) {
    if (thread.row(r) >= count) continue;
    T all[C];
#pragma unroll
    for (int n = 0; n < C; ++n) all[n] = sum[r][n] + rows.grad[thread.column<C>(n) * rows.ld + thread.row(r)];
    cuda::put_columns(thread, all, x.d - rows.column, to + thread.row(r) * x.row_width + rows.column);
  }
}

/// to[b, h, t, :] = gradients of tokens from `grads`, those of their mapped rows, by one warp per row; zero
/// for keys that are not visible. `rows` are the mapped rows before dropout. With y = row / prescale and g =
/// gradient of y: `positive` g min(y, 1); `unit` (g - (g . y) y) / norm; `standard` (g - mean(g) - mean(g y)
/// y) / deviation.
template <class T>
__global__ void unmap_rows(PolynomialShape<T> x, const T* grads, const T* rows, const T* inverses,
                           int64_t length, bool query, T prescale, HeadView<T> to) {
  const int64_t row = cuda::grid_warp();
  if (row >= x.B * x.H * length) return;
  const int lane = cuda::lane_number();
  const int64_t head = row / length, t = row % length;
  const bool is_visible = query || t < x.keys_of(head / x.H);
  const T *grad = grads + row * x.row_width, *y = rows + row * x.row_width;
  const T inverse_prescale = T(1) / prescale;
  const bool is_centred = x.prepare == FeatureMap::standard,
             is_scaled = is_centred || x.prepare == FeatureMap::unit;
  T grad_sum = T(0), grad_dot_y = T(0);
  for (int64_t c = lane; is_scaled && is_visible && c < x.d; c += 32) {
    const T g = grad[c] * prescale * x.row_dropout_factor(query, head, t, c);
    grad_sum += g;
    grad_dot_y += g * y[c];
  }
  grad_sum = cuda::warp_sum(grad_sum);
  grad_dot_y = cuda::warp_sum(grad_dot_y);
  const T mean_factor = is_centred ? T(1) / static_cast<T>(x.d) : T(1);
  grad_sum = is_centred ? grad_sum * mean_factor : T(0);
  grad_dot_y *= mean_factor * inverse_prescale * inverse_prescale;
  T* out = to.at(head / x.H, head % x.H, t);
  for (int64_t c = lane; c < x.d; c += 32) {
    T dx = T(0);
    if (is_visible) {
      dx = grad[c] * prescale * x.row_dropout_factor(query, head, t, c);
      if (x.prepare == FeatureMap::positive)
        dx *= y[c] * inverse_prescale > T(1) ? T(1) : y[c] * inverse_prescale;
      if (is_scaled) dx = (dx - grad_sum - grad_dot_y * y[c]) * inverses[row];
    }
    out[c] = dx;
  }
}

template <class T>
void unmap_gradients(const PolynomialShape<T>& x, const Tensor& grads, const MappedRows<T>& rows, bool query,
                     const Tensor& to) {
  const int64_t length = to.extent(2), all = x.B * x.H * length;
  cuda::run(unmap_rows<T>, cuda::warp_per_row(all), x, grads.data<T>(), rows.undropped.template data<T>(),
            rows.inverse.template data<T>(), length, query, query ? x.prescale : T(1), HeadView<T>(to));
}

}  // namespace heed::kernel

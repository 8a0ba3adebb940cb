// PolynomialAttention backward on a device: the inputs of both kernels, and the step from gradients of
// features to gradients of mapped rows.
#pragma once

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/linear_attention/polynomial_state_device.h"

namespace heed::kernel {

/// With g_i = [dout_i, -dout_i . out_i] / (sum of weights of query i), the gradients of its weighted sum of
/// values and of its sum of weights, and v1_j = [v_j, 1], the gradient of the weight of pair (i, j) is
/// g_i . v1_j. A key state, the sum over keys of phi(k_j) v1_j^T, times g_i gives the gradients of a query's
/// features; a query state, the sum over queries of phi(q_i) g_i^T, times v1_j those of a key's features.
template <class T>
struct PolynomialBackCall {
  PolynomialShape<T> shape;
  const T *q = nullptr, *k = nullptr;  ///< mapped rows; null: there are none
  const T* g = nullptr;                ///< [B H Tq, state_width]: g_i
  HeadView<const T> v;
  /// [heads, segments, features, state_ld]: of keys before each segment, of queries after it; null: none.
  const T *key_states = nullptr, *query_states = nullptr;
  int64_t state_ld = 0;
  int64_t segment = 1;             ///< positions that share a state
  T *dq = nullptr, *dk = nullptr;  ///< gradients of the mapped rows, [B H T, row_width]
  HeadView<T> dv;
};

/// Writes dk of the mapped keys, and dv.
template <class T>
void polynomial_backward_keys(const PolynomialBackCall<T>& call);

/// The mapped rows of a tile's tokens, whose numbers are variables, and the gradients of W of the variables.
template <class T>
struct RowGrads {
  static constexpr int ld = cuda::tile_ld(cuda::tile_rows);
  static constexpr int64_t max_shared_variables = 128;  ///< more variables do not fit in shared memory
  const T* variables;  ///< number of (variable, token) at variable variable_step + token token_step
  int64_t variable_step, token_step;
  T* grads;  ///< [W, ld] in shared memory: variables [first_variable, first_variable + W)
  int64_t first_variable;

  __device__ T variable(int64_t index, int token) const {
    return variables[index * variable_step + token * token_step];
  }
};

/// Numbers of shared memory for RowGrads.
template <class T>
HEED_BOTH int row_grads_size(const PolynomialShape<T>& x, int W) {
  return (W + (x.variables_in_shared ? static_cast<int>(x.d) + 1 : 0)) * RowGrads<T>::ld;
}

/// Loads the mapped rows of the tokens and zeros their gradients. All threads call it.
template <class T, int W>
__device__ inline RowGrads<T> load_row_grads(const PolynomialShape<T>& x, const TileTokens<T>& tokens,
                                             int64_t first_variable, T* memory) {
  RowGrads<T> row_grads{.variables = tokens.rows,
                        .variable_step = 1,
                        .token_step = x.row_width,
                        .grads = memory,
                        .first_variable = first_variable};
  constexpr int ld = RowGrads<T>::ld;
  for (int e = static_cast<int>(threadIdx.x); e < W * ld; e += cuda::tile_threads) memory[e] = T(0);
  if (x.variables_in_shared) {
    T* shared_variables = memory + W * ld;
    const int num_variables = static_cast<int>(x.d) + 1;
    for (int e = static_cast<int>(threadIdx.x); e < num_variables * 64; e += cuda::tile_threads) {
      const int token = e / num_variables, variable = e % num_variables;
      shared_variables[variable * ld + token] =
          token < tokens.count ? tokens.rows[token * x.row_width + variable] : T(0);
    }
    row_grads.variables = shared_variables;
    row_grads.variable_step = ld;
    row_grads.token_step = 1;
  }
  return row_grads;
}

/// row_grads.grads [variable, token] += gradients of the variables from feature_grads [feature, token], those
/// of up to 64 features: for a feature x_a x_b ..., d x_a = grad times the product of its other variables.
/// Lanes are tokens, so a warp does not diverge; half of the threads handle even variables and half odd ones,
/// so each sum has a fixed order.
template <class T, int W>
__device__ inline void backpropagate_features(const PolynomialShape<T>& x, const TileTokens<T>& tokens,
                                              int64_t first_feature, const T* feature_grads,
                                              const RowGrads<T>& row_grads) {
  const int token = static_cast<int>(threadIdx.x) % 64, half = static_cast<int>(threadIdx.x) / 64;
  if (token >= tokens.count) return;
  const bool is_weighted = tokens.role == TokenRole::query;
  const int features = static_cast<int>(min(x.table.num_features - first_feature, int64_t{64}));
  for (int f = 0; f < features; ++f) {
    const int32_t* variables = x.table.factors_of(first_feature + f);
    const T grad =
        feature_grads[f * row_grads.ld + token] * (is_weighted ? x.table.weights[first_feature + f] : T(1));
    for (int l = 0; l < x.table.factors; ++l) {
      if (variables[l] == x.d) break;  // the number one and those behind it have no gradient
      const int64_t column = variables[l] - row_grads.first_variable;
      if (variables[l] % 2 != half || column < 0 || column >= W) continue;
      T product = grad;
      for (int n = 0; n < x.table.factors; ++n) {
        if (n != l) product *= row_grads.variable(variables[n], token);
      }
      row_grads.grads[column * row_grads.ld + token] += product;
    }
  }
}

/// Applies the dropout mask to feature_grads [feature, token]: scales those of kept features, zeros others.
/// token_of(n) is the token of this thread's column n.
template <class T, class TokenOf>
__device__ inline void drop_feature_grads(const cuda::TileThread& thread, const PolynomialShape<T>& x,
                                          const KeepMask& keep_mask, int64_t first_feature, TokenOf token_of,
                                          T (&feature_grads)[cuda::rows_per_thread][4]) {
#pragma unroll
  for (int r = 0; r < cuda::rows_per_thread; ++r) {
    const bool may_drop = x.table.may_drop(first_feature + thread.row(r), x.d);
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      T& grad = feature_grads[r][n];
      if (may_drop) grad = keep_mask.has(token_of(n), thread.row(r)) ? grad * x.keep_scale : T(0);
    }
  }
}

/// The shared memory of a block that computes gradients of 64 tokens, its targets, from the tokens that they
/// form pairs with, its sources, 64 at a time. W: numbers of a slice of rows.
template <class T, int W>
struct BackwardTiles {
  static constexpr int ld = cuda::tile_ld(cuda::tile_rows);
  T *left, *right;     ///< slices of rows
  T* pairs;            ///< [target, source]: weights, or gradients of scores
  T* feature_grads;    ///< [feature, target]: in the memory of `pairs`
  T* target_features;  ///< [target, feature]: only where features_of_targets
  T* sum_grads;        ///< [64]: the gradients of the queries' sums of weights, the last numbers of g
  T* row_memory;       ///< for load_row_grads()
  // Only with dropout of monomials:
  T* source_features;  ///< [source, feature]
  T* weight_grads;     ///< [source, target]: gradients of the weights of pairs
  KeepMask target_mask, source_mask;

  __device__ BackwardTiles(const PolynomialShape<T>& x, bool features_of_targets) {
    left = cuda::shared<T>();
    right = left + cuda::tile_size(W);
    pairs = feature_grads = right + cuda::tile_size(W);
    target_features = pairs + cuda::tile_size(cuda::tile_rows);
    sum_grads = target_features + (features_of_targets ? cuda::tile_size(cuda::tile_rows) : 0);
    row_memory = sum_grads + cuda::tile_rows;
    source_features = row_memory + row_grads_size(x, W);
    weight_grads = source_features + cuda::tile_size(cuda::tile_rows);
    target_mask.byte = reinterpret_cast<uint8_t*>(weight_grads + cuda::tile_size(cuda::tile_rows));
    source_mask.byte = target_mask.byte + KeepMask::bytes;
  }

  /// One block per 64 of `length` targets of every head and W of `width` columns.
  static cuda::Grid grid(const PolynomialShape<T>& x, bool features_of_targets, int64_t length,
                         int64_t width) {
    const int numbers = 2 * cuda::tile_size(W) +
                        (features_of_targets ? 2 : 1) * cuda::tile_size(cuda::tile_rows) + cuda::tile_rows +
                        row_grads_size(x, W) +
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
    using Tiles = BackwardTiles<T, decltype(W)::value>;
    fit = Tiles::grid(x, /*features_of_targets=*/true, 1, 1).shared_bytes <= cuda::max_shared_bytes();
  });
  return fit;
}

/// sum_grads[i] = the gradient of the sum of weights of query i, the last number of its g, for up to 64
/// queries; zero behind num_queries.
template <class T>
__device__ inline void load_sum_grads(const PolynomialShape<T>& x, const T* g, int num_queries,
                                      T* sum_grads) {
  const int row = static_cast<int>(threadIdx.x);
  if (row < cuda::tile_rows) sum_grads[row] = row < num_queries ? g[row * x.state_width() + x.dv] : T(0);
}

/// tiles.feature_grads [feature, target] = state [values, sum factor]^T, after dropout. `products` holds the
/// products of the state's first dv columns with g or v; its sum column times sum_factor_of(target) is added.
template <class T, int W, class SumFactorOf>
__device__ inline void store_feature_grads(const cuda::TileThread& thread, const PolynomialShape<T>& x,
                                           const BackwardTiles<T, W>& tiles, int64_t first_feature,
                                           const T* state, int64_t state_ld, SumFactorOf sum_factor_of,
                                           T (&products)[cuda::rows_per_thread][4]) {
#pragma unroll
  for (int r = 0; r < cuda::rows_per_thread; ++r) {
    const bool is_feature = first_feature + thread.row(r) < x.table.num_features;
    const T sum = is_feature ? state[thread.row(r) * state_ld + x.dv] : T(0);
#pragma unroll
    for (int n = 0; n < 4; ++n) products[r][n] += sum * sum_factor_of(thread.key(n));
  }
  const auto token_of = [&](int n) { return thread.key(n); };
  if (x.drops_monomials())
    drop_feature_grads(thread, x, tiles.target_mask, first_feature, token_of, products);
  cuda::put_map(thread, products, tiles.feature_grads);
}

/// tiles.weight_grads [source, target] = g . [v, 1] of each pair for which is_pair(target, source), else 0.
/// sum_grad_of(target, source) is the last number of g of the pair's query.
template <class T, int W, class FetchSources, class FetchTargets, class IsPair, class SumGradOf>
__device__ inline void store_weight_grads(const cuda::TileThread& thread, const PolynomialShape<T>& x,
                                          const BackwardTiles<T, W>& tiles, FetchSources fetch_sources,
                                          FetchTargets fetch_targets, IsPair is_pair, SumGradOf sum_grad_of) {
  T weight_grads[cuda::rows_per_thread][4];
  cuda::clear(weight_grads);
  cuda::dots_of_slices<T, W>(
      thread, tiles.left, tiles.right, x.dv, [&](int64_t c) { fetch_sources(tiles.left, c); },
      [&](int64_t c) { fetch_targets(tiles.right, c); }, weight_grads);
#pragma unroll
  for (int r = 0; r < cuda::rows_per_thread; ++r) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int target = thread.key(n), source = thread.row(r);
      weight_grads[r][n] = is_pair(target, source) ? weight_grads[r][n] + sum_grad_of(target, source) : T(0);
    }
  }
  cuda::put_map(thread, weight_grads, tiles.weight_grads);
}

/// Adds to row_grads the gradients that reach the targets through 64 of their features: the gradient of a
/// feature = sum over the sources j of tiles.weight_grads[j, target] tiles.source_features[j, feature].
template <class T, int W>
__device__ inline void backpropagate_pairs(const cuda::TileThread& thread, const PolynomialShape<T>& x,
                                           const BackwardTiles<T, W>& tiles, const TileTokens<T>& targets,
                                           int64_t first_feature, const RowGrads<T>& row_grads) {
  constexpr int ld = BackwardTiles<T, W>::ld;
  T feature_grads[cuda::rows_per_thread][4];
  cuda::clear(feature_grads);
  cuda::outer<T, ld, ld>(thread, tiles.source_features, tiles.weight_grads, cuda::tile_rows, feature_grads);
  const auto token_of = [&](int n) { return thread.column<4>(n); };
  drop_feature_grads(thread, x, tiles.target_mask, first_feature, token_of, feature_grads);
#pragma unroll
  for (int r = 0; r < cuda::rows_per_thread; ++r) {
#pragma unroll
    for (int n = 0; n < 4; ++n)
      tiles.feature_grads[thread.row(r) * ld + thread.column<4>(n)] = feature_grads[r][n];
  }
  __syncthreads();
  backpropagate_features<T, W>(x, targets, first_feature, tiles.feature_grads, row_grads);
  __syncthreads();
}

/// mapped_grads [token, W columns] = pair_grads, this thread's part of the gradients through pairs, plus
/// row_grads, those through features.
template <class T, int W, int C>
__device__ inline void store_row_grads(const cuda::TileThread& thread, const PolynomialShape<T>& x,
                                       const RowGrads<T>& row_grads,
                                       const T (&pair_grads)[cuda::rows_per_thread][C], int count,
                                       T* mapped_grads) {
#pragma unroll
  for (int r = 0; r < cuda::rows_per_thread; ++r) {
    if (thread.row(r) >= count) continue;
    T sum[C];
#pragma unroll
    for (int n = 0; n < C; ++n)
      sum[n] = pair_grads[r][n] + row_grads.grads[thread.column<C>(n) * row_grads.ld + thread.row(r)];
    cuda::put_columns(thread, sum, x.d - row_grads.first_variable,
                      mapped_grads + thread.row(r) * x.row_width + row_grads.first_variable);
  }
}

/// dx[b, h, t, :] = gradients of tokens from mapped_grads, those of their mapped rows, by one warp per row;
/// zero for keys that are not visible. `rows` are the mapped rows before dropout. With y = row / prescale and
/// g = gradient of y: `positive` g min(y, 1); `unit` (g - (g . y) y) / norm; `standard` (g - mean(g) -
/// mean(g y) y) / deviation.
template <class T>
__global__ void backpropagate_feature_map(PolynomialShape<T> x, const T* mapped_grads, const T* rows,
                                          const T* inverse_divisors, TokenRole role, HeadView<T> dx) {
  const int64_t row = cuda::grid_warp(), length = x.length(role);
  if (row >= x.B * x.H * length) return;
  const int lane = cuda::lane_number();
  const int64_t head = row / length, t = row % length;
  if (t >= x.num_tokens(role, head / x.H)) return;  // past the end of a packed sequence
  const bool is_visible = role == TokenRole::query || t < x.visible_keys(head / x.H);
  const T *grad = mapped_grads + row * x.row_width, *y = rows + row * x.row_width;
  const T prescale = role == TokenRole::query ? x.prescale : T(1), inverse_prescale = T(1) / prescale;
  const bool is_centred = x.prepare == FeatureMap::standard,
             is_scaled = is_centred || x.prepare == FeatureMap::unit;
  T grad_sum = T(0), grad_dot_y = T(0);
  for (int64_t c = lane; is_scaled && is_visible && c < x.d; c += cuda::lanes) {
    const T g = grad[c] * prescale * x.row_dropout_factor(role, head, t, c);
    grad_sum += g;
    grad_dot_y += g * y[c];
  }
  grad_sum = cuda::warp_sum(grad_sum);
  grad_dot_y = cuda::warp_sum(grad_dot_y);
  const T mean_factor = is_centred ? T(1) / static_cast<T>(x.d) : T(1);
  grad_sum = is_centred ? grad_sum * mean_factor : T(0);
  grad_dot_y *= mean_factor * inverse_prescale * inverse_prescale;
  T* token_grad = dx.at(head / x.H, head % x.H, t);
  for (int64_t c = lane; c < x.d; c += cuda::lanes) {
    T g = T(0);
    if (is_visible) {
      g = grad[c] * prescale * x.row_dropout_factor(role, head, t, c);
      if (x.prepare == FeatureMap::positive)
        g *= y[c] * inverse_prescale > T(1) ? T(1) : y[c] * inverse_prescale;
      if (is_scaled) g = (g - grad_sum - grad_dot_y * y[c]) * inverse_divisors[row];
    }
    token_grad[c] = g;
  }
}

/// Starts backpropagate_feature_map() for all tokens.
template <class T>
void start_feature_map_gradient(const PolynomialShape<T>& x, const Tensor& mapped_grads,
                                const MappedRows<T>& rows, TokenRole role, const Tensor& dx) {
  cuda::run(backpropagate_feature_map<T>, cuda::warp_per_row(x.B * x.H * x.length(role)), x,
            mapped_grads.data<T>(), rows.undropped.template data<T>(),
            rows.inverse_divisors.template data<T>(), role, HeadView<T>(dx, x.starts(role)));
}

}  // namespace heed::kernel

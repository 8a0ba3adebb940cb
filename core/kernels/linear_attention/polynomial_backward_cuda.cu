// PolynomialAttention backward on a device: g of each query, states over keys and over queries, then dq per
// tile of queries and dk and dv per tile of keys (polynomial_backward_keys_cuda.cu).
#include "heed/core/kernels/linear_attention/polynomial_backward.h"

#include "heed/core/kernels/linear_attention/polynomial_backward_device.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

using cuda::rows_per_thread;
using cuda::tile_rows;

/// g [dv + 1] of each query = [dout, -dout . out] / (sum of weights), by one warp per query. Where the guard
/// replaces the sum of weights, the sum gets no gradient.
template <class T>
__global__ void make_output_grads(PolynomialShape<T> x, HeadView<const T> outs, HeadView<const T> douts,
                                  const T* sums, T* g) {
  const int64_t row = cuda::grid_warp();
  if (row >= x.B * x.H * x.queries) return;
  const int lane = cuda::lane_number();
  const int64_t head = row / x.queries, t = row % x.queries;
  if (t >= x.num_tokens(TokenRole::query, head / x.H)) return;  // past the end of a packed sequence
  const T *out = outs.at(head / x.H, head % x.H, t), *dout = douts.at(head / x.H, head % x.H, t);
  T dout_dot_out = T(0);
  for (int64_t c = lane; c < x.dv; c += cuda::lanes) dout_dot_out += out[c] * dout[c];
  dout_dot_out = cuda::warp_sum(dout_dot_out);
  const T inverse = x.inverse_weight_sum(sums[row]);
  const bool is_guarded = fabs(sums[row] + x.epsilon) < x.guard;
  for (int64_t c = lane; c < x.state_width(); c += cuda::lanes) {
    T grad = T(0);
    if (c < x.dv) grad = dout[c] * inverse;
    if (c == x.dv && !is_guarded) grad = -dout_dot_out * inverse;
    g[row * x.state_width() + c] = grad;
  }
}

/// dq of 64 mapped queries of a head and W columns, by one block: through the features, from the state before
/// their segment, then pair by pair with the keys of the segment: dq += score_grads k for score_grads
/// [query, key] = f'(q k^T) (g [v, 1]^T). W is also the width of a slice.
template <class T, int W>
__global__ void __launch_bounds__(cuda::tile_threads) back_queries(PolynomialBackCall<T> call) {
  constexpr int ld = cuda::tile_ld(tile_rows), ldw = cuda::tile_ld(W), C = W / 16;
  const PolynomialShape<T>& x = call.shape;
  const BackwardTiles<T, W> tile(x, /*features_of_targets=*/false);
  const cuda::TileThread thread;
  const int64_t tiles = cuda::tiles_of(x.queries), head = blockIdx.x / tiles, b = head / x.H, h = head % x.H;
  const int64_t first = blockIdx.x % tiles * tile_rows, column = int64_t{blockIdx.y} * W;
  const int num_queries =
      static_cast<int>(min(x.num_tokens(TokenRole::query, b) - first, int64_t{tile_rows}));
  if (num_queries <= 0) return;  // past the end of a packed sequence
  const int64_t segment = first / call.segment, segments = ceil_div(x.queries, call.segment);
  const TileTokens<T> queries = x.tokens(TokenRole::query, call.q, head, first, num_queries);
  const T* g = call.g + (head * x.queries + first) * x.state_width();
  const RowGrads<T> row_grads = load_row_grads<T, W>(x, queries, column, tile.row_memory);
  load_sum_grads(x, g, num_queries, tile.sum_grads);
  __syncthreads();

  const auto fetch_g = [&](T* to, int64_t c) {
    cuda::fetch_tile<T, W>(to, g + c, x.state_width(), num_queries, x.dv - c);
  };
  T dq[rows_per_thread][C];
  cuda::clear(dq);
  // Earlier segments, 64 features at a time: gradients of features = state g, and from them dq.
  for (int64_t feature = 0; call.key_states != nullptr && feature < x.table.num_features;
       feature += tile_rows) {
    const T* state =
        call.key_states + ((head * segments + segment) * x.table.num_features + feature) * call.state_ld;
    const int64_t count = min(x.table.num_features - feature, int64_t{tile_rows});
    if (x.drops_monomials()) draw_mask(x, queries, feature, tile.target_mask);
    T products[rows_per_thread][4];
    cuda::clear(products);
    cuda::dots_of_slices<T, W>(
        thread, tile.left, tile.right, x.dv,
        [&](int64_t c) { cuda::fetch_tile<T, W>(tile.left, state + c, call.state_ld, count, x.dv - c); },
        [&](int64_t c) { fetch_g(tile.right, c); }, products);
    store_feature_grads(
        thread, x, tile, feature, state, call.state_ld, [&](int query) { return tile.sum_grads[query]; },
        products);
    __syncthreads();
    backpropagate_features<T, W>(x, queries, feature, tile.feature_grads, row_grads);
    __syncthreads();
  }

  // Keys of the segment, 64 at a time.
  const int64_t visible = call.k == nullptr ? 0 : x.visible_keys(b);
  const int64_t end = x.causal ? min(first + num_queries, visible) : visible;
  for (int64_t j = x.causal ? segment * call.segment : 0; j < end; j += tile_rows) {
    const int num_keys = static_cast<int>(min(end - j, int64_t{tile_rows}));
    const TileTokens<T> keys = x.tokens(TokenRole::key, call.k, head, j, num_keys);
    const auto fetch_v = [&](T* to, int64_t c) {
      cuda::fetch_tile<T, W>(to, call.v.at(b, h, j) + c, call.v.ld, num_keys, x.dv - c);
    };
    const auto is_pair = [&](int query, int key) {
      return key < num_keys && query < num_queries && (!x.causal || j + key <= first + query);
    };
    // With dropout of monomials the gradients of pairs go through the features.
    if (x.drops_monomials()) {
      store_weight_grads(thread, x, tile, fetch_v, fetch_g, is_pair,
                         [&](int query, int) { return tile.sum_grads[query]; });
      for (int64_t feature = 0; feature < x.table.num_features; feature += tile_rows) {
        draw_mask(x, queries, feature, tile.target_mask);
        draw_features(x, keys, feature, tile.source_mask, tile.source_features);
        __syncthreads();
        backpropagate_pairs(thread, x, tile, queries, feature, row_grads);
      }
      continue;
    }
    T *left = tile.left, *right = tile.right;
    T scores[rows_per_thread][4], weight_grads[rows_per_thread][4];
    cuda::clear(scores);
    cuda::clear(weight_grads);
    const auto fetch_keys = [&](int64_t c) {
      cuda::fetch_tile<T, W>(right, keys.rows + c, x.row_width, num_keys, x.d - c);
    };
    cuda::dots_of_slices<T, W>(
        thread, left, right, x.d,
        [&](int64_t c) { cuda::fetch_tile<T, W>(left, queries.rows + c, x.row_width, num_queries, x.d - c); },
        fetch_keys, scores);
    cuda::dots_of_slices<T, W>(
        thread, left, right, x.dv, [&](int64_t c) { fetch_g(left, c); },
        [&](int64_t c) { fetch_v(right, c); }, weight_grads);
    fetch_keys(column);
    cuda::commit_copies();
    T score_grads[rows_per_thread][4];
#pragma unroll
    for (int r = 0; r < rows_per_thread; ++r) {
#pragma unroll
      for (int n = 0; n < 4; ++n)
        score_grads[r][n] =
            is_pair(thread.row(r), thread.key(n))
                ? x.f.derivative(scores[r][n]) * (weight_grads[r][n] + tile.sum_grads[thread.row(r)])
                : T(0);
    }
    cuda::put_map(thread, score_grads, tile.pairs);
    cuda::wait_for_copies<0>();
    __syncthreads();
    cuda::gather<T, ld, ldw>(thread, tile.pairs, right, tile_rows, dq);
    __syncthreads();
  }
  __syncthreads();
  store_row_grads<T, W>(thread, x, row_grads, dq, num_queries,
                        call.dq + (head * x.queries + first) * x.row_width);
}

/// dq, dk, dv and dstart: computes the states over keys before each segment and over queries after it, then
/// dq by tiles of queries, then dk and dv by tiles of keys.
template <class T>
void backward(const PolynomialInputs& in, const PolynomialParams& params, const Tensor& out,
              const Tensor& sums, const Tensor& dout, const PolynomialInputs& dx) {
  const bool dense =
      in.k && prefers_dense_polynomial(longest_sequence(in.k, params.keys), in.q.extent(3), params);
  PolynomialBackCall<T> call{.shape = polynomial_shape(in.q, in.k, out.extent(3), params, !dense, T()),
                             .v = HeadView<const T>(in.v, data_or_null<int32_t>(params.keys.starts)),
                             .segment = std::max<int64_t>(1, longest_sequence(in.q, params.queries)),
                             .dv = HeadView<T>(dx.v, data_or_null<int32_t>(params.keys.starts))};
  call.shape.variables_in_shared = variables_fit_in_shared(call.shape);
  const PolynomialShape<T>& x = call.shape;
  const auto uninitialized = [&](int64_t rows, int64_t width) {
    return empty_like(in.q, Shape{std::max<int64_t>(1, rows), width});
  };
  // Mapped queries, and for each query g [dv + 1].
  const MappedRows<T> queries = map_rows(x, in.q, TokenRole::query);
  call.q = queries.rows.template data<T>();
  const int64_t query_rows = x.B * x.H * x.queries, key_rows = x.B * x.H * x.keys;
  const Tensor g = uninitialized(query_rows, x.state_width());
  call.g = g.data<T>();
  cuda::run(make_output_grads<T>, cuda::warp_per_row(query_rows), x, HeadView<const T>(out, x.query_starts),
            HeadView<const T>(dout, x.query_starts), sums.data<T>(), g.data<T>());
  const Tensor dq_rows = uninitialized(query_rows, x.row_width);
  call.dq = dq_rows.data<T>();
  MappedRows<T> keys;
  Tensor dk_rows, key_states, query_states;
  if (in.k) {
    keys = map_rows(x, in.k, TokenRole::key);
    call.k = keys.rows.template data<T>();
    dk_rows = uninitialized(key_rows, x.row_width);
    call.dk = dk_rows.data<T>();
  }
  // query_states [B, H, segments, features, dv + 1]: sums over later queries of features times g; the sum
  // over all queries is dstart.
  const auto sum_queries = [&](int64_t segment) {
    PolynomialTokens<T> tokens{.role = TokenRole::query,
                               .rows = call.q,
                               .length = x.queries,
                               .segment = segment,
                               .values = {},
                               .sum_factors = g.data<T>() + x.dv,
                               .sum_factor_ld = x.state_width()};
    tokens.values.data = g.data<T>();
    tokens.values.ld = x.state_width();
    tokens.values.head = x.queries * x.state_width();
    tokens.values.batch = x.H * tokens.values.head;
    query_states = new_states(x, ceil_div(x.queries, segment), in.q);
    sum_other_segments(x, tokens, Tensor(), dx.start, query_states.data<T>());
  };
  // key_states: sums over earlier keys of features times [v, 1]. Neither is needed pair by pair.
  int64_t feature_products =
      dense ? 0 : 2;  // products of the features of a token with a row of dv + 1 numbers
  if (!in.k) {
    call.key_states = in.start.data<T>();
    call.state_ld = x.dv + 1;
    sum_queries(balanced_segment_length(x, x.queries));
  } else if (!dense) {
    call.segment = polynomial_segment_length(x);
    key_states = polynomial_prefixes(x, keys, in.v, in.start, call.segment);
    call.state_ld = x.state_width();
    call.key_states = key_states ? key_states.data<T>() : nullptr;
    if (dx.start || ceil_div(x.queries, call.segment) > 1) {
      sum_queries(call.segment);
      call.query_states = query_states.data<T>();
    }
    feature_products = 4;
  }
  const int64_t keys_per_query = dense ? x.keys : std::min(call.segment, x.keys);
  Count::add(2 * x.B * x.H * x.queries *
             (feature_products * x.table.num_features * (x.dv + 1) +
              (x.causal ? (keys_per_query + 1) / 2 : keys_per_query) * (4 * x.d + 3 * x.dv)));
  visit_slices(x, [&](auto width) {
    constexpr int W = decltype(width)::value;
    cuda::run(back_queries<T, W>, BackwardTiles<T, W>::grid(x, /*features_of_targets=*/false, x.queries, x.d),
              call);
  });
  start_feature_map_gradient(x, dq_rows, queries, TokenRole::query, dx.q);
  if (!in.k) return;
  polynomial_backward_keys(call);
  start_feature_map_gradient(x, dk_rows, keys, TokenRole::key, dx.k);
}

}  // namespace

void PolynomialAttentionBack::cuda(const PolynomialInputs& x, const PolynomialParams& params,
                                   const Tensor& out, const Tensor& sums, const Tensor& dout,
                                   const PolynomialInputs& dx) {
  visit_float("polynomial_attention", x.q.dtype(),
              [&]<class T>(Type<T>) { backward<T>(x, params, out, sums, dout, dx); });
}

}  // namespace heed::kernel

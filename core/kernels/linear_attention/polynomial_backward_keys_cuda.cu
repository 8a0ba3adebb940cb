// dk and dv of PolynomialAttention on a device: one block per 64 keys, from the state over queries after
// their segment and from the queries within it.
#include "heed/core/kernels/linear_attention/polynomial_backward_device.h"

namespace heed::kernel {
namespace {

using cuda::rows_per_thread;
using cuda::tile_rows;

/// Blocks that a multiprocessor shall hold, to which the compiler fits their registers: as many as shared
/// memory allows; 0: as it sees fit.
template <class T, int W>
inline constexpr int least_blocks = std::is_same_v<T, float>&& W == 32 ? 3 : 0;

/// dk and dv of 64 mapped keys of a head and W columns, by one block: through the features, from the state
/// over queries after their segment, then pair by pair with the queries of the segment: with scores
/// [key, query] = k q^T, dv += f(scores) g and dk += (f'(scores) ([v, 1] g^T)) q. W is also the width of a
/// slice.
template <class T, int W>
__global__ void __launch_bounds__(cuda::tile_threads, least_blocks<T, W>)
    back_keys(PolynomialBackCall<T> call) {
  constexpr int ld = cuda::tile_ld(tile_rows), ldw = cuda::tile_ld(W), C = W / 16;
  const PolynomialShape<T>& x = call.shape;
  const BackwardTiles<T, W> tile(x, /*features_of_targets=*/true);
  T *left = tile.left, *right = tile.right;
  const cuda::TileThread thread;
  const int64_t tiles = cuda::tiles_of(x.keys), head = blockIdx.x / tiles, b = head / x.H, h = head % x.H;
  const int64_t first = blockIdx.x % tiles * tile_rows, column = int64_t{blockIdx.y} * W;
  const int num_keys = static_cast<int>(min(x.num_tokens(TokenRole::key, b) - first, int64_t{tile_rows}));
  if (num_keys <= 0) return;  // past the end of a packed sequence
  const int visible = static_cast<int>(within(x.visible_keys(b) - first, 0, num_keys));
  const int64_t segment = first / call.segment, segments = ceil_div(x.keys, call.segment);
  const TileTokens<T> keys = x.tokens(TokenRole::key, call.k, head, first, visible);
  const RowGrads<T> row_grads = load_row_grads<T, W>(x, keys, column, tile.row_memory);

  const auto fetch_v = [&](T* to, int64_t c) {
    cuda::fetch_tile<T, W>(to, call.v.at(b, h, first) + c, call.v.ld, visible, x.dv - c);
  };
  T dk[rows_per_thread][C], dv[rows_per_thread][C];
  cuda::clear(dk);
  cuda::clear(dv);
  // Later segments, 64 features at a time: dv += features times the state; gradients of features = state
  // [v, 1], and from them dk.
  for (int64_t feature = 0; call.query_states != nullptr && visible > 0 && feature < x.table.num_features;
       feature += tile_rows) {
    const T* state =
        call.query_states + ((head * segments + segment) * x.table.num_features + feature) * call.state_ld;
    const int64_t count = min(x.table.num_features - feature, int64_t{tile_rows});
    const auto fetch_state = [&](int64_t c) {
      cuda::fetch_tile<T, W>(left, state + c, call.state_ld, count, x.dv - c);
    };
    draw_features(x, keys, feature, tile.target_mask, tile.target_features);
    T products[rows_per_thread][4];
    cuda::clear(products);
    cuda::dots_of_slices<T, W>(
        thread, left, right, x.dv, fetch_state, [&](int64_t c) { fetch_v(right, c); }, products);
    fetch_state(column);
    cuda::commit_copies();
    store_feature_grads(
        thread, x, tile, feature, state, call.state_ld, [](int) { return T(1); }, products);
    cuda::wait_for_copies<0>();
    __syncthreads();
    cuda::gather<T, ld, ldw>(thread, tile.target_features, left, tile_rows, dv);
    backpropagate_features<T, W>(x, keys, feature, tile.feature_grads, row_grads);
    __syncthreads();
  }

  // Queries of the segment, 64 at a time.
  const int64_t begin = x.causal ? first : 0, num_queries_of_head = x.num_tokens(TokenRole::query, b);
  const int64_t end = call.q == nullptr || visible == 0 ? begin
                      : x.causal ? min((segment + 1) * call.segment, num_queries_of_head)
                                 : num_queries_of_head;
  for (int64_t i = begin; i < end; i += tile_rows) {
    const int num_queries = static_cast<int>(min(end - i, int64_t{tile_rows}));
    const TileTokens<T> queries = x.tokens(TokenRole::query, call.q, head, i, num_queries);
    const T* g = call.g + (head * x.queries + i) * x.state_width();
    const auto fetch_g = [&](T* to, int64_t c) {
      cuda::fetch_tile<T, W>(to, g + c, x.state_width(), num_queries, x.dv - c);
    };
    const auto fetch_queries = [&](int64_t c) {
      cuda::fetch_tile<T, W>(right, queries.rows + c, x.row_width, num_queries, x.d - c);
    };
    __syncthreads();
    load_sum_grads(x, g, num_queries, tile.sum_grads);
    __syncthreads();
    T weights[rows_per_thread][4], score_grads[rows_per_thread][4];  // at first scores and weight gradients
    cuda::clear(weights);
    cuda::clear(score_grads);
    const auto is_pair = [&](int key, int query) {
      return key < visible && query < num_queries && (!x.causal || i + query >= first + key);
    };
    if (x.drops_monomials()) {
      store_weight_grads(thread, x, tile, fetch_g, fetch_v, is_pair,
                         [&](int, int query) { return tile.sum_grads[query]; });
      for (int64_t feature = 0; feature < x.table.num_features; feature += tile_rows) {
        draw_features(x, keys, feature, tile.target_mask, tile.target_features);
        draw_features(x, queries, feature, tile.source_mask, tile.source_features);
        __syncthreads();
        cuda::dots<T, ld, ld>(thread, tile.target_features, tile.source_features, tile_rows, weights);
        backpropagate_pairs(thread, x, tile, keys, feature, row_grads);
      }
    } else {
      cuda::dots_of_slices<T, W>(
          thread, left, right, x.d,
          [&](int64_t c) { cuda::fetch_tile<T, W>(left, keys.rows + c, x.row_width, visible, x.d - c); },
          fetch_queries, weights);
      cuda::dots_of_slices<T, W>(
          thread, left, right, x.dv, [&](int64_t c) { fetch_v(left, c); },
          [&](int64_t c) { fetch_g(right, c); }, score_grads);
    }
    fetch_g(left, column);
    if (!x.drops_monomials()) fetch_queries(column);
    cuda::commit_copies();
#pragma unroll
    for (int r = 0; r < rows_per_thread; ++r) {
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const bool is_visible = is_pair(thread.row(r), thread.key(n));
        const T score = weights[r][n], weight_grad = score_grads[r][n];
        weights[r][n] = !is_visible ? T(0) : x.drops_monomials() ? score : x.f.weight(score);
        if (!x.drops_monomials())
          score_grads[r][n] =
              is_visible ? x.f.derivative(score) * (weight_grad + tile.sum_grads[thread.key(n)]) : T(0);
      }
    }
    // dv += weights g and dk += score_grads q.
    cuda::put_map(thread, weights, tile.pairs);
    cuda::wait_for_copies<0>();
    __syncthreads();
    cuda::gather<T, ld, ldw>(thread, tile.pairs, left, tile_rows, dv);
    __syncthreads();
    if (x.drops_monomials()) continue;
    cuda::put_map(thread, score_grads, tile.pairs);
    __syncthreads();
    cuda::gather<T, ld, ldw>(thread, tile.pairs, right, tile_rows, dk);
    __syncthreads();
  }
  __syncthreads();
  store_row_grads<T, W>(thread, x, row_grads, dk, num_keys, call.dk + (head * x.keys + first) * x.row_width);
  T* dv_rows = call.dv.at(b, h, first) + column;
#pragma unroll
  for (int r = 0; r < rows_per_thread; ++r) {
    if (thread.row(r) < num_keys)
      cuda::put_columns(thread, dv[r], x.dv - column, dv_rows + thread.row(r) * call.dv.ld);
  }
}

}  // namespace

/// Starts back_keys(): one block per 64 keys of a head and W columns; W columns of dk and of dv, whichever is
/// wider.
template <class T>
void polynomial_backward_keys(const PolynomialBackCall<T>& call) {
  const PolynomialShape<T>& x = call.shape;
  visit_slices(x, [&](auto width) {
    constexpr int W = decltype(width)::value;
    const int64_t columns = std::max(x.d, x.dv);
    cuda::run(back_keys<T, W>, BackwardTiles<T, W>::grid(x, /*features_of_targets=*/true, x.keys, columns),
              call);
  });
}
template void polynomial_backward_keys(const PolynomialBackCall<float>& call);
template void polynomial_backward_keys(const PolynomialBackCall<double>& call);

}  // namespace heed::kernel

// dk and dv of PolynomialAttention on a device: one block per 64 keys, from the state over queries after
// their segment and from the queries within it.
#include "heed/core/kernels/linear_attention/polynomial_backward_device.h"

namespace heed::kernel {
namespace {

using cuda::rows_per_thread;
using cuda::tile_rows;

/// dk and dv of 64 mapped keys of a head and W columns, by one block: through the state over queries after
/// their segment, then pair by pair with the queries of the segment. W is also the width of a slice.
template <class T, int W>
__global__ void __launch_bounds__(cuda::tile_threads) back_keys(PolynomialBackCall<T> call) {
  constexpr int ld = cuda::tile_ld(tile_rows), ldw = cuda::tile_ld(W), C = W / 16;
  const PolynomialShape<T>& x = call.shape;
  const BackwardTiles<T, W> tile(x, true);
  T *left = tile.left, *right = tile.right;
  const cuda::TileThread thread;
  const int64_t tiles = cuda::tiles_of(x.keys), head = blockIdx.x / tiles, b = head / x.H, h = head % x.H;
  const int64_t first = blockIdx.x % tiles * tile_rows, column = int64_t{blockIdx.y} * W;
  const int rows = static_cast<int>(min(x.keys - first, int64_t{tile_rows}));
  const int visible = static_cast<int>(within(x.keys_of(b) - first, 0, rows));
  const int64_t segment = first / call.segment, segments = ceil_div(x.keys, call.segment);
  const T* k = call.k + (head * x.keys + first) * x.row_width;
  const RowGrads<T> row_grads = gather_rows<T, W>(x, k, visible, column, tile.rows);

  const auto fetch_v = [&](T* to, int64_t c) {
    cuda::fetch_tile<T, W>(to, call.v.at(b, h, first) + c, call.v.ld, visible, x.dv - c);
  };
  const auto make_keys = [&](int64_t feature) {
    if (x.drops_monomials()) {
      draw_features(x, tile.keep_mask, x.key_number(head, first), visible, feature);
      __syncthreads();
    }
    make_features(x, k, visible, feature, false, x.drops_monomials() ? &tile.keep_mask : nullptr, tile.own);
  };
  T dk[rows_per_thread][C], dv[rows_per_thread][C];
  cuda::clear(dk);
  cuda::clear(dv);
  // Later segments: dv += features times the state; gradients of features = state [v, 1], and from them dk.
  for (int64_t feature = 0; call.after != nullptr && visible > 0 && feature < x.table.count;
       feature += tile_rows) {
    const T* state = call.after + ((head * segments + segment) * x.table.count + feature) * call.state_ld;
    const int64_t count = min(x.table.count - feature, int64_t{tile_rows});
    const auto fetch_state = [&](int64_t c) {
      cuda::fetch_tile<T, W>(left, state + c, call.state_ld, count, x.dv - c);
    };
    make_keys(feature);
    T map[rows_per_thread][4];
    cuda::clear(map);
    cuda::dots_of_slices<T, W>(
        thread, left, right, x.dv, fetch_state, [&](int64_t c) { fetch_v(right, c); }, map);
    fetch_state(column);
    cuda::commit_copies();
    put_feature_grads(
        thread, x, tile, feature, state, call.state_ld, [](int) { return T(1); }, map);
    cuda::wait_for_copies<0>();
    __syncthreads();
    cuda::gather<T, ld, ldw>(thread, tile.own, left, tile_rows, dv);
    backpropagate_features<T, W>(x, tile.map, feature, false, visible, row_grads);
    __syncthreads();
  }

  // Queries of the segment, 64 at a time.
  const int64_t begin = x.causal ? first : 0;
  const int64_t end = call.q == nullptr || visible == 0 ? begin
                      : x.causal                        ? min((segment + 1) * call.segment, x.queries)
                                                        : x.queries;
  for (int64_t i = begin; i < end; i += tile_rows) {
    const int count = static_cast<int>(min(end - i, int64_t{tile_rows}));
    const T *q = call.q + (head * x.queries + i) * x.row_width,
            *g = call.g + (head * x.queries + i) * x.state_width();
    const auto fetch_g = [&](T* to, int64_t c) {
      cuda::fetch_tile<T, W>(to, g + c, x.state_width(), count, x.dv - c);
    };
    __syncthreads();
    load_last(x, g, count, tile.last);
    __syncthreads();
    T map[rows_per_thread][4], grads[rows_per_thread][4];
    cuda::clear(map);
    cuda::clear(grads);
    const auto pair = [&](int key, int query) {
      return key < visible && query < count && (!x.causal || i + query >= first + key);
    };
    if (x.drops_monomials()) {
      put_weight_grads(thread, x, tile, fetch_g, fetch_v, pair,
                       [&](int, int query) { return tile.last[query]; });
      for (int64_t feature = 0; feature < x.table.count; feature += tile_rows) {
        make_keys(feature);
        draw_features(x, tile.other_keep_mask, x.query_number(head, i), count, feature);
        __syncthreads();
        make_features(x, q, count, feature, true, &tile.other_keep_mask, tile.other);
        __syncthreads();
        cuda::dots<T, ld, ld>(thread, tile.own, tile.other, tile_rows, map);
        backpropagate_pairs(thread, x, tile, feature, false, visible, row_grads);
      }
    } else {
      cuda::dots_of_slices<T, W>(
          thread, left, right, x.d,
          [&](int64_t c) { cuda::fetch_tile<T, W>(left, k + c, x.row_width, visible, x.d - c); },
          [&](int64_t c) { cuda::fetch_tile<T, W>(right, q + c, x.row_width, count, x.d - c); }, map);
      cuda::dots_of_slices<T, W>(
          thread, left, right, x.dv, [&](int64_t c) { fetch_v(left, c); },
          [&](int64_t c) { fetch_g(right, c); }, grads);
    }
    fetch_g(left, column);
    if (!x.drops_monomials()) cuda::fetch_tile<T, W>(right, q + column, x.row_width, count, x.d - column);
    cuda::commit_copies();
    // map becomes the weights f(scores), grads f'(scores) (gradients of weights).
#pragma unroll
    for (int r = 0; r < rows_per_thread; ++r) {
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const bool is_pair = pair(thread.row(r), thread.key(n));
        const T s = map[r][n];
        map[r][n] = !is_pair ? T(0) : x.drops_monomials() ? s : x.f.value(s);
        if (!x.drops_monomials())
          grads[r][n] = is_pair ? x.f.grad(s) * (grads[r][n] + tile.last[thread.key(n)]) : T(0);
      }
    }
    // dv += map g and dk += grads q.
    cuda::put_map(thread, map, tile.map);
    cuda::wait_for_copies<0>();
    __syncthreads();
    cuda::gather<T, ld, ldw>(thread, tile.map, left, tile_rows, dv);
    __syncthreads();
    if (x.drops_monomials()) continue;
    cuda::put_map(thread, grads, tile.map);
    __syncthreads();
    cuda::gather<T, ld, ldw>(thread, tile.map, right, tile_rows, dk);
    __syncthreads();
  }
  __syncthreads();
  scatter_add_rows<T, W>(thread, x, row_grads, dk, rows, call.dk + (head * x.keys + first) * x.row_width);
#pragma unroll
  for (int r = 0; r < rows_per_thread; ++r) {
    if (thread.row(r) < rows)
      cuda::put_columns(thread, dv[r], x.dv - column, call.dv.at(b, h, first + thread.row(r)) + column);
  }
}

}  // namespace

template <class T>
void polynomial_backward_keys(const PolynomialBackCall<T>& call) {
  const PolynomialShape<T>& x = call.shape;
  visit_slices(x, [&](auto width) {
    constexpr int W = decltype(width)::value;
    cuda::run(back_keys<T, W>, BackwardTiles<T, W>::grid(x, true, x.keys, std::max(x.d, x.dv)), call);
  });
}
template void polynomial_backward_keys(const PolynomialBackCall<float>& call);
template void polynomial_backward_keys(const PolynomialBackCall<double>& call);

}  // namespace heed::kernel

// PolynomialAttention backward on a device: g of each query, states over keys and over queries, then dq per
// tile of queries and dk and dv per tile of keys (polynomial_backward_keys_cuda.cu).
#include "heed/core/kernels/linear_attention/polynomial_backward.h"

#include "heed/core/kernels/linear_attention/polynomial_backward_device.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

using cuda::rows_per_thread;
using cuda::tile_rows;

/// g [dv + 1] of each query = [dout, -dout . out] / (sum of weights), by one warp per query.
template <class T>
__global__ void make_output_grads(PolynomialShape<T> x, HeadView<const T> outs, HeadView<const T> douts,
                                  const T* sums, T* g) {
  const int64_t row = cuda::grid_warp();
  if (row >= x.B * x.H * x.queries) return;
  const int lane = cuda::lane_number();
  const int64_t head = row / x.queries, t = row % x.queries;
  const T *out = outs.at(head / x.H, head % x.H, t), *dout = douts.at(head / x.H, head % x.H, t);
  T out_dot_dout = T(0);
  for (int64_t c = lane; c < x.dv; c += 32) out_dot_dout += out[c] * dout[c];
  out_dot_dout = cuda::warp_sum(out_dot_dout);
  const T inverse = x.inverse(sums[row]);
  const bool is_guarded = fabs(sums[row] + x.epsilon) < x.guard;
  for (int64_t c = lane; c < x.state_width(); c += 32) {
    T grad = T(0);
    if (c < x.dv) grad = dout[c] * inverse;
    if (c == x.dv && !is_guarded) grad = -out_dot_dout * inverse;
    g[row * x.state_width() + c] = grad;
  }
}

/// dq of 64 mapped queries of a head and W columns, by one block: through the state before their segment,
/// then pair by pair with the keys of the segment. W is also the width of a slice.
template <class T, int W>
__global__ void __launch_bounds__(cuda::tile_threads) back_queries(PolynomialBackCall<T> call) {
  constexpr int ld = cuda::tile_ld(tile_rows), ldw = cuda::tile_ld(W), C = W / 16;
  const PolynomialShape<T>& x = call.shape;
  const BackwardTiles<T, W> tile(x, false);
  const cuda::TileThread thread;
  const int64_t tiles = cuda::tiles_of(x.queries), head = blockIdx.x / tiles, b = head / x.H, h = head % x.H;
  const int64_t first = blockIdx.x % tiles * tile_rows, column = int64_t{blockIdx.y} * W;
  const int rows = static_cast<int>(min(x.queries - first, int64_t{tile_rows}));
  const int64_t segment = first / call.segment, segments = ceil_div(x.queries, call.segment);
  const T *q = call.q + (head * x.queries + first) * x.row_width, *k = call.k + head * x.keys * x.row_width;
  const T* g = call.g + (head * x.queries + first) * x.state_width();
  const RowGrads<T> row_grads = gather_rows<T, W>(x, q, rows, column, tile.rows);
  load_last(x, g, rows, tile.last);
  __syncthreads();

  const auto fetch_g = [&](T* to, int64_t c) {
    cuda::fetch_tile<T, W>(to, g + c, x.state_width(), rows, x.dv - c);
  };
  const auto draw_queries = [&](int64_t feature) {
    draw_features(x, tile.keep_mask, x.query_number(head, first), rows, feature);
  };
  T dq[rows_per_thread][C];
  cuda::clear(dq);
  // Earlier segments: gradients of features = state g, 64 features at a time, and from them dq.
  for (int64_t feature = 0; call.before != nullptr && feature < x.table.count; feature += tile_rows) {
    const T* state = call.before + ((head * segments + segment) * x.table.count + feature) * call.state_ld;
    const int64_t count = min(x.table.count - feature, int64_t{tile_rows});
    if (x.drops_monomials()) draw_queries(feature);
    T map[rows_per_thread][4];
    cuda::clear(map);
    cuda::dots_of_slices<T, W>(
        thread, tile.left, tile.right, x.dv,
        [&](int64_t c) { cuda::fetch_tile<T, W>(tile.left, state + c, call.state_ld, count, x.dv - c); },
        [&](int64_t c) { fetch_g(tile.right, c); }, map);
    put_feature_grads(
        thread, x, tile, feature, state, call.state_ld, [&](int query) { return tile.last[query]; }, map);
    __syncthreads();
    backpropagate_features<T, W>(x, tile.map, feature, true, rows, row_grads);
    __syncthreads();
  }

  // Keys of the segment, 64 at a time.
  const int64_t visible = call.k == nullptr ? 0 : x.keys_of(b);
  const int64_t end = x.causal ? min(first + rows, visible) : visible;
  for (int64_t j = x.causal ? segment * call.segment : 0; j < end; j += tile_rows) {
    const int count = static_cast<int>(min(end - j, int64_t{tile_rows}));
    const auto fetch_v = [&](T* to, int64_t c) {
      cuda::fetch_tile<T, W>(to, call.v.at(b, h, j) + c, call.v.ld, count, x.dv - c);
    };
    const auto pair = [&](int query, int key) {
      return key < count && query < rows && (!x.causal || j + key <= first + query);
    };
    // With dropout of features the gradients of pairs go through the features.
    if (x.drops_monomials()) {
      put_weight_grads(thread, x, tile, fetch_v, fetch_g, pair,
                       [&](int query, int) { return tile.last[query]; });
      for (int64_t feature = 0; feature < x.table.count; feature += tile_rows) {
        draw_queries(feature);
        draw_features(x, tile.other_keep_mask, x.key_number(head, j), count, feature);
        __syncthreads();
        make_features(x, k + j * x.row_width, count, feature, false, &tile.other_keep_mask, tile.other);
        __syncthreads();
        backpropagate_pairs(thread, x, tile, feature, true, rows, row_grads);
      }
      continue;
    }
    // map [64, 64] = f'(scores) (gradients of weights), and dq += map k.
    T *left = tile.left, *right = tile.right;
    T map[rows_per_thread][4], grads[rows_per_thread][4];
    cuda::clear(map);
    cuda::clear(grads);
    cuda::dots_of_slices<T, W>(
        thread, left, right, x.d,
        [&](int64_t c) { cuda::fetch_tile<T, W>(left, q + c, x.row_width, rows, x.d - c); },
        [&](int64_t c) {
          cuda::fetch_tile<T, W>(right, k + j * x.row_width + c, x.row_width, count, x.d - c);
        },
        map);
    cuda::dots_of_slices<T, W>(
        thread, left, right, x.dv, [&](int64_t c) { fetch_g(left, c); },
        [&](int64_t c) { fetch_v(right, c); }, grads);
    cuda::fetch_tile<T, W>(right, k + j * x.row_width + column, x.row_width, count, x.d - column);
    cuda::commit_copies();
#pragma unroll
    for (int r = 0; r < rows_per_thread; ++r) {
#pragma unroll
      for (int n = 0; n < 4; ++n)
        map[r][n] = pair(thread.row(r), thread.key(n))
                        ? x.f.grad(map[r][n]) * (grads[r][n] + tile.last[thread.row(r)])
                        : T(0);
    }
    cuda::put_map(thread, map, tile.map);
    cuda::wait_for_copies<0>();
    __syncthreads();
    cuda::gather<T, ld, ldw>(thread, tile.map, right, tile_rows, dq);
    __syncthreads();
  }
  __syncthreads();
  scatter_add_rows<T, W>(thread, x, row_grads, dq, rows, call.dq + (head * x.queries + first) * x.row_width);
}

/// dq, dk, dv and dstart: computes the states over keys before each segment and over queries after it, then
/// dq by tiles of queries, then dk and dv by tiles of keys.
template <class T>
void backward(const PolynomialInputs& in, const PolynomialParams& params, const Tensor& out,
              const Tensor& sums, const Tensor& dout, const PolynomialInputs& dx) {
  const bool dense = in.k && prefers_dense_polynomial(in.k.extent(2), in.q.extent(3), params);
  PolynomialBackCall<T> call{.shape = polynomial_shape(in.q, in.k, out.extent(3), params, !dense, T()),
                             .v = HeadView<const T>(in.v),
                             .segment = std::max<int64_t>(1, in.q.extent(2)),
                             .dv = HeadView<T>(dx.v)};
  call.shape.variables_in_shared = variables_fit_in_shared(call.shape);
  const PolynomialShape<T>& x = call.shape;
  const auto uninitialized = [&](int64_t rows, int64_t width) {
    return Tensor(Shape{std::max<int64_t>(1, rows), width}, in.q.dtype(), in.q.device());
  };
  // Mapped queries, and for each query g [dv + 1], the gradients of its weighted sum of values and of its sum
  // of weights.
  const MappedRows<T> queries = map_rows(x, in.q, true);
  call.q = queries.rows.template data<T>();
  const int64_t query_rows = x.B * x.H * x.queries, key_rows = x.B * x.H * x.keys;
  const Tensor g = uninitialized(query_rows, x.state_width());
  call.g = g.data<T>();
  cuda::run(make_output_grads<T>, cuda::warp_per_row(query_rows), x, HeadView<const T>(out),
            HeadView<const T>(dout), sums.data<T>(), g.data<T>());
  const Tensor dq_rows = uninitialized(query_rows, x.row_width);
  call.dq = dq_rows.data<T>();
  MappedRows<T> keys;
  Tensor dk_rows, before, after;
  if (in.k) {
    keys = map_rows(x, in.k, false);
    call.k = keys.rows.template data<T>();
    dk_rows = uninitialized(key_rows, x.row_width);
    call.dk = dk_rows.data<T>();
  }
  // after [B, H, segments, features, dv + 1]: sums over later queries of features times g; their total is
  // dstart.
  PolynomialTokens<T> tokens{
      .rows = call.q,
      .augmented = {.rows = {}, .last = g.data<T>() + x.dv, .last_ld = x.state_width()},
      .length = x.queries,
      .segment = call.segment,
      .query = true};
  tokens.augmented.rows.data = g.data<T>();
  tokens.augmented.rows.ld = x.state_width();
  tokens.augmented.rows.head = x.queries * x.state_width();
  tokens.augmented.rows.batch = x.H * tokens.augmented.rows.head;
  const auto sum_queries = [&](int64_t segment) {
    tokens.segment = segment;
    const int64_t segments = ceil_div(x.queries, segment);
    after = uninitialized(x.B * x.H * segments * x.table.count, x.state_width());
    start_feature_sums(x, tokens, after.data<T>());
    start_accumulate_segments(after.data<T>(), x.B, x.H, segments, x.table.count, x.dv + 1, x.state_width(),
                              Tensor(), dx.start, true);
  };
  // before: sums over earlier keys of features times [v, 1]. Neither is needed pair by pair.
  int64_t products = dense ? 0 : 2;  // products of each token with all features
  if (!in.k) {
    call.before = in.start.data<T>();
    call.state_ld = x.dv + 1;
    sum_queries(balanced_segment_length(x, x.queries));
  } else if (!dense) {
    before = polynomial_prefixes(x, keys, in.v, in.start, call.segment);
    call.state_ld = x.state_width();
    call.before = before ? before.data<T>() : nullptr;
    if (dx.start || ceil_div(x.queries, call.segment) > 1) {
      sum_queries(call.segment);
      call.after = after.data<T>();
    }
    products = 4;
  }
  const int64_t keys_per_query = dense ? x.keys : std::min(call.segment, x.keys);
  Count::add(2 * x.B * x.H * x.queries *
             (products * x.table.count * (x.dv + 1) +
              (x.causal ? (keys_per_query + 1) / 2 : keys_per_query) * (4 * x.d + 3 * x.dv)));
  visit_slices(x, [&](auto width) {
    constexpr int W = decltype(width)::value;
    cuda::run(back_queries<T, W>, BackwardTiles<T, W>::grid(x, false, x.queries, x.d), call);
  });
  unmap_gradients(x, dq_rows, queries, true, dx.q);
  if (!in.k) return;
  polynomial_backward_keys(call);
  unmap_gradients(x, dk_rows, keys, false, dx.k);
}

}  // namespace

void PolynomialAttentionBack::cuda(const PolynomialInputs& x, const PolynomialParams& params,
                                   const Tensor& out, const Tensor& sums, const Tensor& dout,
                                   const PolynomialInputs& dx) {
  visit_float("polynomial_attention", x.q.dtype(),
              [&]<class T>(Type<T>) { backward<T>(x, params, out, sums, dout, dx); });
}

}  // namespace heed::kernel

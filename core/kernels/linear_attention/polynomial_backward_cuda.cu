// Fastmax backward on a device: the gradients of each row's sums, states over keys and over queries, then dq
// by tiles of queries and dk and dv by tiles of keys (fastmax_back_keys_cuda.cu).
#include "core/kernels/fastmax_back.h"

#include "core/count.h"
#include "core/kernels/fastmax_back_device.h"

namespace heed::kernel {
namespace {

using cuda::mine;
using cuda::tile_rows;

/// A warp a row: g~ [state_wide].
template <class T>
__global__ void make_slopes(FastmaxShape<T> x, Heads<const T> outs, Heads<const T> douts, const T* sums,
                            T* g) {
  const int64_t row = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  if (row >= x.B * x.H * x.queries) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t head = row / x.queries, t = row % x.queries;
  const T *out = outs.at(head / x.H, head % x.H, t), *dout = douts.at(head / x.H, head % x.H, t);
  T along = T(0);
  for (int64_t c = lane; c < x.dv; c += 32) along += out[c] * dout[c];
#pragma unroll
  for (int bits = 16; bits > 0; bits /= 2) along += __shfl_xor_sync(0xffffffffU, along, bits);
  const T inverse = x.inverse(sums[row]);
  const bool held = fabs(sums[row] + x.epsilon) < x.guard;
  for (int64_t c = lane; c < x.state_wide(); c += 32) {
    T slope = T(0);
    if (c < x.dv) slope = dout[c] * inverse;
    if (c == x.dv && !held) slope = -along * inverse;
    g[row * x.state_wide() + c] = slope;
  }
}

/// W: columns of dq, as many for each block; also the numbers of a slice.
template <class T, int W>
__global__ void __launch_bounds__(cuda::tile_threads) back_queries(FastmaxBackCall<T> call) {
  constexpr int wide = tile_rows, ld = cuda::tile_ld(wide), ldw = cuda::tile_ld(W), C = W / 16;
  const FastmaxShape<T>& x = call.shape;
  const BackTiles<T, W> tile(x, false);
  const cuda::Share me;
  const int64_t tiles = cuda::tiles_of(x.queries), head = blockIdx.x / tiles, b = head / x.H, h = head % x.H;
  const int64_t first = blockIdx.x % tiles * wide, column = int64_t{blockIdx.y} * W;
  const int rows = static_cast<int>(min(x.queries - first, int64_t{wide}));
  const int64_t segment = first / call.segment, segments = segments_of(x.queries, call.segment);
  const T *q = call.q + (head * x.queries + first) * x.wide, *k = call.k + head * x.keys * x.wide;
  const T* g = call.g + (head * x.queries + first) * x.state_wide();
  const PulledRows<T> pulled = take_rows<T, W>(x, q, rows, column, tile.rows);
  load_last(x, g, rows, tile.last);
  __syncthreads();

  const auto fetch_g = [&](T* to, int64_t c) {
    cuda::fetch_tile<T, W>(to, g + c, x.state_wide(), rows, x.dv - c);
  };
  const auto draw_queries = [&](int64_t feature) {
    draw_features(x, tile.kept, x.query_number(head, first), rows, feature);
  };
  T dq[mine][C];
  cuda::clear(dq);
  for (int64_t feature = 0; call.before != nullptr && feature < x.table.count; feature += wide) {
    const T* state = call.before + ((head * segments + segment) * x.table.count + feature) * call.state_ld;
    const int64_t count = min(x.table.count - feature, int64_t{wide});
    if (x.drops()) draw_queries(feature);
    T map[mine][4];
    cuda::clear(map);
    cuda::dots_of_slices<T, W>(
        me, tile.left, tile.right, x.dv,
        [&](int64_t c) { cuda::fetch_tile<T, W>(tile.left, state + c, call.state_ld, count, x.dv - c); },
        [&](int64_t c) { fetch_g(tile.right, c); }, map);
    put_feature_slopes(
        me, x, tile, feature, state, call.state_ld, [&](int query) { return tile.last[query]; }, map);
    __syncthreads();
    pull_features<T, W>(x, tile.map, feature, true, rows, pulled);
    __syncthreads();
  }

  const int64_t present = call.k == nullptr ? 0 : x.keys_of(b);
  const int64_t end = x.causal ? min(first + rows, present) : present;
  for (int64_t j = x.causal ? segment * call.segment : 0; j < end; j += wide) {
    const int count = static_cast<int>(min(end - j, int64_t{wide}));
    const auto fetch_v = [&](T* to, int64_t c) {
      cuda::fetch_tile<T, W>(to, call.v.at(b, h, j) + c, call.v.ld, count, x.dv - c);
    };
    const auto pair = [&](int query, int key) {
      return key < count && query < rows && (!x.causal || j + key <= first + query);
    };
    if (x.drops()) {
      put_weight_slopes(me, x, tile, fetch_v, fetch_g, pair,
                        [&](int query, int) { return tile.last[query]; });
      for (int64_t feature = 0; feature < x.table.count; feature += wide) {
        draw_queries(feature);
        draw_features(x, tile.kept_met, x.key_number(head, j), count, feature);
        __syncthreads();
        make_features(x, k + j * x.wide, count, feature, false, &tile.kept_met, tile.met);
        __syncthreads();
        pull_met_features(me, x, tile, feature, true, rows, pulled);
      }
      continue;
    }
    T *left = tile.left, *right = tile.right;
    T map[mine][4], slopes[mine][4];
    cuda::clear(map);
    cuda::clear(slopes);
    cuda::dots_of_slices<T, W>(
        me, left, right, x.d, [&](int64_t c) { cuda::fetch_tile<T, W>(left, q + c, x.wide, rows, x.d - c); },
        [&](int64_t c) { cuda::fetch_tile<T, W>(right, k + j * x.wide + c, x.wide, count, x.d - c); }, map);
    cuda::dots_of_slices<T, W>(
        me, left, right, x.dv, [&](int64_t c) { fetch_g(left, c); }, [&](int64_t c) { fetch_v(right, c); },
        slopes);
    cuda::fetch_tile<T, W>(right, k + j * x.wide + column, x.wide, count, x.d - column);
    cuda::commit_copies();
#pragma unroll
    for (int r = 0; r < mine; ++r) {
#pragma unroll
      for (int n = 0; n < 4; ++n)
        map[r][n] =
            pair(me.row(r), me.key(n)) ? x.f.slope(map[r][n]) * (slopes[r][n] + tile.last[me.row(r)]) : T(0);
    }
    cuda::put_map(me, map, tile.map);
    cuda::wait_for_copies<0>();
    __syncthreads();
    cuda::gather<T, ld, ldw>(me, tile.map, right, wide, dq);
    __syncthreads();
  }
  __syncthreads();
  put_rows<T, W>(me, x, pulled, dq, rows, call.dq + (head * x.queries + first) * x.wide);
}

template <class T>
void backward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& start,
              const FastmaxTerms& terms, const Tensor& out, const Tensor& sums, const Tensor& dout,
              const Tensor& dq, const Tensor& dk, const Tensor& dv, const Tensor& dstart) {
  const bool dense = k && fastmax_dense(k.extent(2), q.extent(3), terms);
  FastmaxBackCall<T> call{.shape = fastmax_shape(q, k, out.extent(3), terms, !dense, T()),
                          .v = Heads<const T>(v),
                          .segment = std::max<int64_t>(1, q.extent(2)),
                          .dv = Heads<T>(dv)};
  call.shape.letters_near = letters_fit(call.shape);
  const FastmaxShape<T>& x = call.shape;
  const auto fresh = [&](int64_t rows, int64_t width) {
    return Tensor(Shape{std::max<int64_t>(1, rows), width}, q.dtype(), q.device());
  };
  const PreparedRows<T> queries = prepared(x, q, x.carried);
  call.q = queries.rows.template data<T>();
  const int64_t query_rows = x.B * x.H * x.queries, key_rows = x.B * x.H * x.keys;
  const Tensor g = fresh(query_rows, x.state_wide());
  call.g = g.data<T>();
  cuda::run(make_slopes<T>,
            {.blocks = dim3(static_cast<unsigned>((query_rows + 7) / 8)), .threads = dim3(256)}, x,
            Heads<const T>(out), Heads<const T>(dout), static_cast<const T*>(sums.data<T>()), g.data<T>());
  const Tensor dq_rows = fresh(query_rows, x.wide);
  call.dq = dq_rows.data<T>();
  PreparedRows<T> keys;
  Tensor dk_rows, before, after;
  if (k) {
    keys = prepared(x, k, T(1));
    call.k = keys.rows.template data<T>();
    dk_rows = fresh(key_rows, x.wide);
    call.dk = dk_rows.data<T>();
  }
  FastmaxTokens<T> tokens{.rows = call.q,
                          .with = {.rows = {}, .last = g.data<T>() + x.dv, .last_ld = x.state_wide()},
                          .length = x.queries,
                          .segment = call.segment,
                          .query = true};
  tokens.with.rows.data = g.data<T>();
  tokens.with.rows.ld = x.state_wide();
  tokens.with.rows.head = x.queries * x.state_wide();
  tokens.with.rows.batch = x.H * tokens.with.rows.head;
  const auto sum_queries = [&](int64_t segment) {
    tokens.segment = segment;
    const int64_t segments = segments_of(x.queries, segment);
    after = fresh(x.B * x.H * segments * x.table.count, x.state_wide());
    start_feature_sums(x, tokens, after.data<T>());
    start_pass_states_on(after.data<T>(), x.B, x.H, segments, x.table.count, x.dv + 1, x.state_wide(),
                         Tensor(), dstart, true);
  };
  int64_t products = dense ? 0 : 2;  // of each token with all features
  if (!k) {
    call.before = start.data<T>();
    call.state_ld = x.dv + 1;
    sum_queries(fastmax_share(x, x.queries));
  } else if (!dense) {
    before = fastmax_prefixes(x, keys, v, start, call.segment);
    call.state_ld = x.state_wide();
    call.before = before ? before.data<T>() : nullptr;
    if (dstart || segments_of(x.queries, call.segment) > 1) {
      sum_queries(call.segment);
      call.after = after.data<T>();
    }
    products = 4;
  }
  const int64_t seen = dense ? x.keys : std::min(call.segment, x.keys);
  Count::add(
      2 * x.B * x.H * x.queries *
      (products * x.table.count * (x.dv + 1) + (x.causal ? (seen + 1) / 2 : seen) * (4 * x.d + 3 * x.dv)));
  visit_slices(x, [&](auto wide) {
    constexpr int W = decltype(wide)::value;
    cuda::run(back_queries<T, W>, BackTiles<T, W>::grid(x, false, x.queries, x.d), call);
  });
  unprepare(x, dq_rows, queries, true, x.carried, dq);
  if (!k) return;
  fastmax_back_keys(call);
  unprepare(x, dk_rows, keys, false, T(1), dk);
}

}  // namespace

void FastmaxBack::cuda(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& start,
                       const FastmaxTerms& terms, const Tensor& out, const Tensor& sums, const Tensor& dout,
                       const Tensor& dq, const Tensor& dk, const Tensor& dv, const Tensor& dstart) {
  visit_float("fastmax", q.dtype(), [&](auto type) {
    backward<typename decltype(type)::type>(q, k, v, start, terms, out, sums, dout, dq, dk, dv, dstart);
  });
}

}  // namespace heed::kernel

// dk and dv of Fastmax on a device: a block for each 64 keys, from the state over the queries after its
// segment and from those within it.
#include "core/kernels/fastmax_back_device.h"

namespace heed::kernel {
namespace {

using cuda::mine;
using cuda::tile_rows;

/// W: columns of dk and dv, as many for each block; also the numbers of a slice.
template <class T, int W>
__global__ void __launch_bounds__(cuda::tile_threads) back_keys(FastmaxBackCall<T> call) {
  constexpr int wide = tile_rows, ld = cuda::tile_ld(wide), ldw = cuda::tile_ld(W), C = W / 16;
  const FastmaxShape<T>& x = call.shape;
  T* left = cuda::shared<T>();
  T* right = left + cuda::tile_size(W);
  T* map_tile = right + cuda::tile_size(W);
  T* phi = map_tile + cuda::tile_size(wide);  // features of keys
  T* last = phi + cuda::tile_size(wide);      // a column of the state, or of g
  T* memory = last + wide;
  const cuda::Share me;
  const int64_t tiles = cuda::tiles_of(x.keys), head = blockIdx.x / tiles, b = head / x.H, h = head % x.H;
  const int64_t first = blockIdx.x % tiles * wide, column = int64_t{blockIdx.y} * W;
  const int rows = static_cast<int>(min(x.keys - first, int64_t{wide}));
  const int seen = static_cast<int>(within(x.keys_of(b) - first, 0, rows));
  const int64_t segment = first / call.segment, segments = segments_of(x.keys, call.segment);
  const T* k = call.k + (head * x.keys + first) * x.wide;
  const PulledRows<T> pulled = take_rows<T, W>(x, k, seen, column, memory);
  // Only where monomials are dropped:
  T* phi_queries = memory + (W + (x.d <= pulled.most ? static_cast<int>(x.d) + 1 : 0)) * ld;
  T* g_tile = phi_queries + cuda::tile_size(wide);
  const KeptPairs kept{reinterpret_cast<uint8_t*>(g_tile + cuda::tile_size(wide))},
      kept_queries{kept.byte + KeptPairs::bytes};

  const auto fetch_v = [&](T* tile, int64_t c) {
    cuda::fetch_tile<T, W>(tile, call.v.at(b, h, first) + c, call.v.ld, seen, x.dv - c);
  };
  const auto make_keys = [&](int64_t feature) {
    if (x.drops()) {
      draw_features(x, kept, x.key_number(head, first), seen, feature);
      __syncthreads();
    }
    make_features(x, k, seen, feature, false, x.drops() ? &kept : nullptr, phi);
  };
  T dk[mine][C], dv[mine][C];
  cuda::clear(dk);
  cuda::clear(dv);
  for (int64_t feature = 0; call.after != nullptr && seen > 0 && feature < x.table.count; feature += wide) {
    const T* state = call.after + ((head * segments + segment) * x.table.count + feature) * call.state_ld;
    const int64_t count = min(x.table.count - feature, int64_t{wide});
    const auto fetch_state = [&](int64_t c) {
      cuda::fetch_tile<T, W>(left, state + c, call.state_ld, count, x.dv - c);
    };
    make_keys(feature);
    T map[mine][4];
    cuda::clear(map);
    cuda::dots_of_slices<T, W>(
        me, left, right, x.dv, fetch_state, [&](int64_t c) { fetch_v(right, c); }, map);
    fetch_state(column);
    cuda::commit_copies();
#pragma unroll
    for (int r = 0; r < mine; ++r) {
      const T of_one = me.row(r) < count ? state[me.row(r) * call.state_ld + x.dv] : T(0);
#pragma unroll
      for (int n = 0; n < 4; ++n) map[r][n] += of_one;
    }
    if (x.drops())
      drop_slopes(
          me, x, kept, feature, [&](int n) { return me.key(n); }, map);
    cuda::put_map(me, map, map_tile);
    cuda::wait_for_copies<0>();
    __syncthreads();
    cuda::gather<T, ld, ldw>(me, phi, left, wide, dv);
    pull_features<T, W>(x, map_tile, feature, false, seen, pulled);
    __syncthreads();
  }

  const int64_t begin = x.causal ? first : 0;
  const int64_t end = call.q == nullptr || seen == 0 ? begin
                      : x.causal                     ? min((segment + 1) * call.segment, x.queries)
                                                     : x.queries;
  for (int64_t i = begin; i < end; i += wide) {
    const int count = static_cast<int>(min(end - i, int64_t{wide}));
    const T *q = call.q + (head * x.queries + i) * x.wide,
            *g = call.g + (head * x.queries + i) * x.state_wide();
    const auto fetch_g = [&](T* tile, int64_t c) {
      cuda::fetch_tile<T, W>(tile, g + c, x.state_wide(), count, x.dv - c);
    };
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < wide)
      last[threadIdx.x] =
          static_cast<int>(threadIdx.x) < count ? g[threadIdx.x * x.state_wide() + x.dv] : T(0);
    __syncthreads();
    T map[mine][4], slopes[mine][4];
    cuda::clear(map);
    cuda::clear(slopes);
    const auto pair = [&](int key, int query) {
      return key < seen && query < count && (!x.causal || i + query >= first + key);
    };
    if (x.drops()) {
      // Gradients of weights as [query, key]: what features of queries are gathered by.
      cuda::dots_of_slices<T, W>(
          me, left, right, x.dv, [&](int64_t c) { fetch_g(left, c); }, [&](int64_t c) { fetch_v(right, c); },
          slopes);
#pragma unroll
      for (int r = 0; r < mine; ++r) {
#pragma unroll
        for (int n = 0; n < 4; ++n)
          slopes[r][n] = pair(me.key(n), me.row(r)) ? slopes[r][n] + last[me.row(r)] : T(0);
      }
      cuda::put_map(me, slopes, g_tile);
      for (int64_t feature = 0; feature < x.table.count; feature += wide) {
        make_keys(feature);
        draw_features(x, kept_queries, x.query_number(head, i), count, feature);
        __syncthreads();
        make_features(x, q, count, feature, true, &kept_queries, phi_queries);
        __syncthreads();
        cuda::dots<T, ld, ld>(me, phi, phi_queries, wide, map);
        T pulls[mine][4];
        cuda::clear(pulls);
        cuda::outer<T, ld, ld>(me, phi_queries, g_tile, wide, pulls);
        drop_slopes(
            me, x, kept, feature, [&](int n) { return me.column<4>(n); }, pulls);
#pragma unroll
        for (int r = 0; r < mine; ++r) {
#pragma unroll
          for (int n = 0; n < 4; ++n) map_tile[me.row(r) * ld + me.column<4>(n)] = pulls[r][n];
        }
        __syncthreads();
        pull_features<T, W>(x, map_tile, feature, false, seen, pulled);
        __syncthreads();
      }
    } else {
      cuda::dots_of_slices<T, W>(
          me, left, right, x.d,
          [&](int64_t c) { cuda::fetch_tile<T, W>(left, k + c, x.wide, seen, x.d - c); },
          [&](int64_t c) { cuda::fetch_tile<T, W>(right, q + c, x.wide, count, x.d - c); }, map);
      cuda::dots_of_slices<T, W>(
          me, left, right, x.dv, [&](int64_t c) { fetch_v(left, c); }, [&](int64_t c) { fetch_g(right, c); },
          slopes);
    }
    fetch_g(left, column);
    if (!x.drops()) cuda::fetch_tile<T, W>(right, q + column, x.wide, count, x.d - column);
    cuda::commit_copies();
#pragma unroll
    for (int r = 0; r < mine; ++r) {
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const bool there = pair(me.row(r), me.key(n));
        const T s = map[r][n];
        map[r][n] = !there ? T(0) : x.drops() ? s : x.f.value(s);
        if (!x.drops()) slopes[r][n] = there ? x.f.slope(s) * (slopes[r][n] + last[me.key(n)]) : T(0);
      }
    }
    cuda::put_map(me, map, map_tile);
    cuda::wait_for_copies<0>();
    __syncthreads();
    cuda::gather<T, ld, ldw>(me, map_tile, left, wide, dv);
    __syncthreads();
    if (x.drops()) continue;
    cuda::put_map(me, slopes, map_tile);
    __syncthreads();
    cuda::gather<T, ld, ldw>(me, map_tile, right, wide, dk);
    __syncthreads();
  }
  __syncthreads();
  put_rows<T, W>(me, x, pulled, dk, rows, call.dk + (head * x.keys + first) * x.wide);
#pragma unroll
  for (int r = 0; r < mine; ++r) {
    if (me.row(r) < rows)
      cuda::put_columns(me, dv[r], x.dv - column, call.dv.at(b, h, first + me.row(r)) + column);
  }
}

template <class T, int W>
void start(const FastmaxBackCall<T>& call) {
  const FastmaxShape<T>& x = call.shape;
  int numbers =
      2 * cuda::tile_size(W) + 2 * cuda::tile_size(tile_rows) + tile_rows + pulled_numbers<T>(x.d, W);
  if (x.drops()) numbers += 2 * cuda::tile_size(tile_rows);
  const int64_t columns = std::max<int64_t>(1, (std::max(x.d, x.dv) + W - 1) / W);
  cuda::run(back_keys<T, W>,
            {.blocks = dim3(static_cast<unsigned>(x.B * x.H * cuda::tiles_of(x.keys)),
                            static_cast<unsigned>(columns)),
             .threads = dim3(cuda::tile_threads),
             .shared_bytes = numbers * static_cast<int>(sizeof(T)) + (x.drops() ? 2 * KeptPairs::bytes : 0)},
            call);
}

}  // namespace

void fastmax_back_keys(const FastmaxBackCall<double>& call) { start<double, 32>(call); }

void fastmax_back_keys(const FastmaxBackCall<float>& call) {
  if (std::max(call.shape.d, call.shape.dv) <= 32) {
    start<float, 32>(call);
  } else {
    start<float, 64>(call);
  }
}

}  // namespace heed::kernel

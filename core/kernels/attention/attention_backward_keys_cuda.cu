// dk and dv of tiled attention on a device without rounding. Tiles have keys as rows and queries as columns,
// so sums over queries stay in registers.
#include "heed/core/ceil_div.h"
#include "heed/core/kernels/attention/attention_backward_device.h"

namespace heed::kernel {
namespace {

using cuda::rows_per_thread;
using cuda::tile_rows;

/// dk_j = scale sum_i ds_ij q_i and dv_j = sum_i w_ij dout_i of 64 keys and D columns: w_ij are weights after
/// dropout, ds_ij the gradients of scaled products. One block per 64 keys of a key head (b, h / group) loops
/// over tiles of 64 queries of all heads that share it.
template <class T, int D>
__global__ void __launch_bounds__(cuda::tile_threads) back_keys(AttentionBackCall<T> x) {
  constexpr int ld = cuda::tile_ld(D), ld_map = cuda::tile_ld(tile_rows), C = D / 16;
  T* k_tile = cuda::shared<T>();
  T* v_tile = k_tile + cuda::tile_size(D);
  T* q_tile = v_tile + cuda::tile_size(D);
  T* dout_tile = q_tile + cuda::tile_size(D);
  T* map_tile = dout_tile + cuda::tile_size(D);
  const KeepMask keep_mask{reinterpret_cast<uint8_t*>(map_tile + cuda::tile_size(tile_rows))};

  const cuda::Share me;
  const int64_t tiles = cuda::tiles_of(x.Tk), head = blockIdx.x / tiles, heads = x.H / x.group;
  const int64_t b = head / heads, shared_head = head % heads;
  const int64_t first = blockIdx.x % tiles * tile_rows;  // early keys have the most queries
  const int64_t all = min(x.Tk - first, int64_t{tile_rows}), column = int64_t{blockIdx.y} * D;
  const int64_t keys = within(x.keys_of(b) - first, 0, all);
  const int64_t begin = x.first_of(first) / tile_rows * tile_rows;
  const int64_t steps = keys == 0 || begin >= x.Tq ? 0 : cuda::tiles_of(x.Tq - begin);  // of each head
  const bool whole = x.d <= D && x.dv <= D;
  const T scale_log2 = x.scale_log2();

  const auto fetch_k = [&](int64_t c) {
    cuda::fetch_tile<T, D>(k_tile, x.ks.at(b, shared_head, first) + c, x.ks.ld, keys, x.d - c);
  };
  const auto fetch_v = [&](int64_t c) {
    cuda::fetch_tile<T, D>(v_tile, x.vs.at(b, shared_head, first) + c, x.vs.ld, keys, x.dv - c);
  };
  const auto head_of = [&](int64_t step) { return shared_head * x.group + step / steps; };
  const auto query_of = [&](int64_t step) { return begin + step % steps * tile_rows; };
  const auto fetch_q = [&](int64_t step, int64_t c) {
    const int64_t i = query_of(step);
    cuda::fetch_tile<T, D>(q_tile, x.qs.at(b, head_of(step), i) + c, x.qs.ld, x.Tq - i, x.d - c);
  };
  const auto fetch_dout = [&](int64_t step, int64_t c) {
    const int64_t i = query_of(step);
    cuda::fetch_tile<T, D>(dout_tile, x.douts.at(b, head_of(step), i) + c, x.douts.ld, x.Tq - i, x.dv - c);
  };

  T dk[rows_per_thread][C], dv[rows_per_thread][C];
  cuda::clear(dk);
  cuda::clear(dv);
  const int64_t all_steps = steps * x.group;
  if (whole && all_steps > 0) {
    fetch_k(0);
    fetch_v(0);
    fetch_q(0, 0);
    fetch_dout(0, 0);
    cuda::commit_copies();
  }
  for (int64_t step = 0; step < all_steps; ++step) {
    const int64_t h = head_of(step), i = query_of(step), queries = min(x.Tq - i, int64_t{tile_rows});
    T map[rows_per_thread][4], dmap[rows_per_thread][4];
    cuda::clear(map);
    cuda::clear(dmap);
    RowStats<T> row[4];
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int64_t query = i + me.key(n);
      row[n] = query < x.Tq ? x.stats[(b * x.H + h) * x.Tq + query] : RowStats<T>{infinity<T>, T(0)};
    }
    // The dropout mask of the tile [64 keys, 64 queries], and its products map = k . q and dmap = v . dout.
    if (x.dropped) {
      keep_mask.draw(x.drawn, static_cast<int>(queries), static_cast<int>(keys),
                     [&](int query) { return x.element(b, h, i + query, first); });
    }
    if (whole) {
      cuda::wait_for_copies<0>();
      __syncthreads();
      cuda::dots<T, ld, ld>(me, k_tile, q_tile, static_cast<int>((x.d + 3) / 4 * 4), map);
      cuda::dots<T, ld, ld>(me, v_tile, dout_tile, static_cast<int>((x.dv + 3) / 4 * 4), dmap);
    } else {
      cuda::dots_of_slices<T, D>(
          me, k_tile, q_tile, x.d, fetch_k, [&](int64_t c) { fetch_q(step, c); }, map);
      cuda::dots_of_slices<T, D>(
          me, v_tile, dout_tile, x.dv, fetch_v, [&](int64_t c) { fetch_dout(step, c); }, dmap);
      fetch_q(step, column);
      fetch_dout(step, column);
      cuda::commit_copies();
      cuda::wait_for_copies<0>();
    }
    // In place: map becomes the weights after dropout, dmap the gradients of the scaled products.
#pragma unroll
    for (int r = 0; r < rows_per_thread; ++r) {
      const int64_t key = me.row(r);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const int64_t query = i + me.key(n);
        const bool pair = key < keys && query < x.Tq && x.sees(query, first + key);
        T cap_grad = T(0);
        PairGradient<T> back{T(0), T(0)};
        if (pair) {
          const T score = score_of(x, scale_log2, b, h, query, first + key, map[r][n], cap_grad);
          const T keep = !x.dropped ? T(1) : keep_mask.has(me.key(n), me.row(r)) ? x.keep_scale : T(0);
          back = score_gradient(score, dmap[r][n], keep, row[n]);
        }
        map[r][n] = back.weight;
        dmap[r][n] = back.score_grad * cap_grad;
      }
    }
    // dv += map dout and dk += dmap q; the next queries are copied meanwhile.
    const bool more = whole && step + 1 < all_steps;
    cuda::put_map(me, map, map_tile);
    __syncthreads();
    cuda::gather<T, ld_map, ld>(me, map_tile, dout_tile, tile_rows, dv);
    __syncthreads();
    if (more) fetch_dout(step + 1, 0);
    cuda::put_map(me, dmap, map_tile);
    __syncthreads();
    cuda::gather<T, ld_map, ld>(me, map_tile, q_tile, tile_rows, dk);
    __syncthreads();
    if (more) {
      fetch_q(step + 1, 0);
      cuda::commit_copies();
    }
  }
#pragma unroll
  for (int r = 0; r < rows_per_thread; ++r) {
    const int64_t key = me.row(r);
    if (key >= all) continue;
#pragma unroll
    for (int n = 0; n < C; ++n) dk[r][n] *= x.scale;
    cuda::put_columns(me, dk[r], x.d - column, x.dks.at(b, shared_head, first + key) + column);
    cuda::put_columns(me, dv[r], x.dv - column, x.dvs.at(b, shared_head, first + key) + column);
  }
}

template <class T, int D>
void start(const AttentionBackCall<T>& call) {
  const int numbers = 4 * cuda::tile_size(D) + cuda::tile_size(tile_rows);
  const int64_t columns = std::max<int64_t>(1, ceil_div(std::max(call.d, call.dv), D));
  cuda::run(back_keys<T, D>,
            {.blocks = dim3(static_cast<unsigned>(call.B * (call.H / call.group) * cuda::tiles_of(call.Tk)),
                            static_cast<unsigned>(columns)),
             .threads = dim3(cuda::tile_threads),
             .shared_bytes = numbers * static_cast<int>(sizeof(T)) + KeepMask::bytes},
            call);
}

}  // namespace

template <class T>
void attention_back_keys(const AttentionBackCall<T>& call) {
  visit_tiles<T>(std::max(call.d, call.dv), [&](auto wide) { start<T, decltype(wide)::value>(call); });
}
template void attention_back_keys(const AttentionBackCall<float>& call);
template void attention_back_keys(const AttentionBackCall<double>& call);

}  // namespace heed::kernel

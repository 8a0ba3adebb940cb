// Tiled attention backward on a device without rounding: one kernel computes dq per tile of queries, another
// dk and dv per tile of keys. No two blocks add to one number, so sums have a fixed order.
#include "heed/core/ceil_div.h"
#include "heed/core/kernels/attention/attention_backward_device.h"
#include "heed/core/kernels/attention/attention_tensor_core_device.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

using cuda::rows_per_thread;
using cuda::tile_rows;

/// dq_i = scale sum_j ds_ij k_j of 64 queries and D columns, by one block that loops over tiles of 64 keys.
/// ds_ij is the gradient of the scaled product; with `diagonals` also its sums along i - j.
template <class T, int D>
__global__ void __launch_bounds__(cuda::tile_threads) back_queries(AttentionBackCall<T> x) {
  constexpr int ld = cuda::tile_ld(D), ld_map = cuda::tile_ld(tile_rows), C = D / 16;
  T* q_tile = cuda::shared<T>();
  T* dout_tile = q_tile + cuda::tile_size(D);
  T* k_tile = dout_tile + cuda::tile_size(D);
  T* v_tile = k_tile + cuda::tile_size(D);
  T* map_tile = v_tile + cuda::tile_size(D);
  const KeepMask keep_mask{reinterpret_cast<uint8_t*>(map_tile + cuda::tile_size(tile_rows))};

  const cuda::Share me;
  const int64_t tiles = cuda::tiles_of(x.Tq), head = blockIdx.x / tiles;
  const int64_t b = head / x.H, h = head % x.H, shared_head = h / x.group;
  const int64_t first = (tiles - 1 - blockIdx.x % tiles) * tile_rows;
  const int64_t queries = min(x.Tq - first, int64_t{tile_rows}), column = int64_t{blockIdx.y} * D;
  const int64_t keys = x.keys_before(b, first + queries);
  const bool whole = x.d <= D && x.dv <= D;
  const T scale_log2 = x.scale_log2();

  const auto fetch_q = [&](int64_t c) {
    cuda::fetch_tile<T, D>(q_tile, x.qs.at(b, h, first) + c, x.qs.ld, queries, x.d - c);
  };
  const auto fetch_dout = [&](int64_t c) {
    cuda::fetch_tile<T, D>(dout_tile, x.douts.at(b, h, first) + c, x.douts.ld, queries, x.dv - c);
  };
  const auto fetch_k = [&](int64_t j, int64_t c) {
    cuda::fetch_tile<T, D>(k_tile, x.ks.at(b, shared_head, j) + c, x.ks.ld, keys - j, x.d - c);
  };
  const auto fetch_v = [&](int64_t j, int64_t c) {
    cuda::fetch_tile<T, D>(v_tile, x.vs.at(b, shared_head, j) + c, x.vs.ld, keys - j, x.dv - c);
  };

  RowStats<T> row[rows_per_thread];
#pragma unroll
  for (int r = 0; r < rows_per_thread; ++r) {
    const int64_t i = first + me.row(r);
    row[r] = i < x.Tq ? x.stats[head * x.Tq + i] : RowStats<T>{infinity<T>, T(0)};
  }
  T* diagonals = x.diagonals == nullptr || column > 0
                     ? nullptr
                     : x.diagonals + (head * tiles + first / tile_rows) * (x.Tk + tile_rows - 1);
  T sum[rows_per_thread][C];
  cuda::clear(sum);
  if (whole && keys > 0) {
    fetch_q(0);
    fetch_dout(0);
    fetch_k(0, 0);
    fetch_v(0, 0);
    cuda::commit_copies();
  }
  for (int64_t j = 0; j < keys; j += tile_rows) {
    T map[rows_per_thread][4], dmap[rows_per_thread][4];
    cuda::clear(map);
    cuda::clear(dmap);
    // The dropout mask of the tile [64 queries, 64 keys], and its products map = q . k and dmap = dout . v.
    if (x.dropped) {
      keep_mask.draw(x.drawn, static_cast<int>(queries), static_cast<int>(min(keys - j, int64_t{tile_rows})),
                     [&](int i) { return x.element(b, h, first + i, j); });
    }
    if (whole) {
      cuda::wait_for_copies<0>();
      __syncthreads();
      cuda::dots<T, ld, ld>(me, q_tile, k_tile, static_cast<int>((x.d + 3) / 4 * 4), map);
      cuda::dots<T, ld, ld>(me, dout_tile, v_tile, static_cast<int>((x.dv + 3) / 4 * 4), dmap);
    } else {
      cuda::dots_of_slices<T, D>(
          me, q_tile, k_tile, x.d, fetch_q, [&](int64_t c) { fetch_k(j, c); }, map);
      cuda::dots_of_slices<T, D>(
          me, dout_tile, v_tile, x.dv, fetch_dout, [&](int64_t c) { fetch_v(j, c); }, dmap);
      fetch_k(j, column);
      cuda::commit_copies();
      cuda::wait_for_copies<0>();
    }
    // In place: map becomes the gradient of the scaled products.
#pragma unroll
    for (int r = 0; r < rows_per_thread; ++r) {
      const int64_t i = first + me.row(r);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const int64_t key = j + me.key(n);
        const bool pair = i < x.Tq && key < keys && x.sees(i, key);
        T cap_grad = T(0), score_grad = T(0);
        if (pair) {
          const T score = score_of(x, scale_log2, b, h, i, key, map[r][n], cap_grad);
          const T keep = !x.dropped ? T(1) : keep_mask.has(me.row(r), me.key(n)) ? x.keep_scale : T(0);
          score_grad = score_gradient(score, dmap[r][n], keep, row[r]).score_grad;
        }
        map[r][n] = score_grad * cap_grad;
      }
    }
    cuda::put_map(me, map, map_tile);
    __syncthreads();
    if (whole && j + tile_rows < keys) fetch_v(j + tile_rows, 0);
    // One thread per diagonal i - j of the tile sums the gradients along it.
    if (diagonals != nullptr && threadIdx.x < 2 * tile_rows - 1) {
      const int apart = static_cast<int>(threadIdx.x) - (tile_rows - 1);  // i - j within the tile
      T along = T(0);
      for (int i = max(apart, 0); i < min(apart, 0) + tile_rows; ++i)
        along += map_tile[i * ld_map + i - apart];
      const int64_t at = apart - j + x.Tk - 1;  // negative past the last key, where gradients are zero
      if (at >= 0) diagonals[at] += along;
    }
    // sum [64 queries, D] += map k.
    cuda::gather<T, ld_map, ld>(me, map_tile, k_tile, tile_rows, sum);
    __syncthreads();
    if (whole && j + tile_rows < keys) {
      fetch_k(j + tile_rows, 0);
      cuda::commit_copies();
    }
  }
#pragma unroll
  for (int r = 0; r < rows_per_thread; ++r) {
#pragma unroll
    for (int n = 0; n < C; ++n) sum[r][n] *= x.scale;
    const int64_t i = first + me.row(r);
    if (i < x.Tq) cuda::put_columns(me, sum[r], x.d - column, x.dqs.at(b, h, i) + column);
  }
}

/// Adds the diagonals of all tiles of queries into to [H, Tq + Tk - 1], in order of batch rows and tiles.
template <class T>
__global__ void sum_diagonals(AttentionShape x, const T* from, T* to) {
  const int64_t span = x.Tq + x.Tk - 1, tiles = cuda::tiles_of(x.Tq), width = x.Tk + tile_rows - 1;
  const int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= x.H * span) return;
  const int64_t h = at / span, place = at % span;
  T sum = T(0);
  for (int64_t b = 0; b < x.B; ++b) {
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t within = place - tile * tile_rows;
      if (within >= 0 && within < width) sum += from[((b * x.H + h) * tiles + tile) * width + within];
    }
  }
  to[at] = sum;
}

template <class T, int D>
void start_queries(const AttentionBackCall<T>& call) {
  const int numbers = 4 * cuda::tile_size(D) + cuda::tile_size(tile_rows);
  const int64_t columns = std::max<int64_t>(1, ceil_div(call.d, D));
  cuda::run(back_queries<T, D>,
            {.blocks = dim3(static_cast<unsigned>(call.B * call.H * cuda::tiles_of(call.Tq)),
                            static_cast<unsigned>(columns)),
             .threads = dim3(cuda::tile_threads),
             .shared_bytes = numbers * static_cast<int>(sizeof(T)) + KeepMask::bytes},
            call);
}

/// dq, dk and dv with unrounded products: dq by one block per 64 queries of a head, then dk and dv by one
/// block per 64 keys of a key head. drelative is the sum of the diagonals that the first kernel writes.
template <class T>
void backward(const AttentionBackTensors& t, const AttentionParams& params) {
  AttentionBackCall<T> call(t.q, t.k, t.v, params, t.dout, t.dq, t.dk, t.dv);
  const Tensor stats = row_stats<T>(t.out, t.lse, t.dout);
  call.stats = reinterpret_cast<const RowStats<T>*>(stats.data<T>());
  const int64_t tiles = cuda::tiles_of(call.Tq);
  Tensor diagonals;
  if (t.drelative) {
    diagonals =
        Tensor::zeros(Shape{call.B * call.H * tiles, call.Tk + tile_rows - 1}, t.q.dtype(), t.q.device());
    call.diagonals = diagonals.data<T>();
  }
  visit_tiles<T>(std::max(call.d, call.dv),
                 [&](auto wide) { start_queries<T, decltype(wide)::value>(call); });
  attention_back_keys(call);
  if (!t.drelative) return;
  const int64_t places = call.H * (call.Tq + call.Tk - 1);
  cuda::run(sum_diagonals<T>,
            {.blocks = dim3(static_cast<unsigned>(ceil_div(places, 256))), .threads = dim3(256)},
            static_cast<const AttentionShape&>(call), static_cast<const T*>(diagonals.data<T>()),
            t.drelative.data<T>());
}

}  // namespace

/// Gradients of Attention: on the tensor cores where f32 products may be rounded and drelative is not wanted,
/// else with unrounded products.
void AttentionBack::cuda(const AttentionBackTensors& t, const AttentionParams& params) {
  visit_float("attention", t.q.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const AttentionScores<T> call(t.q, t.k, t.v, params);
    Count::add(attention_flops(call, true));
    if (std::is_same_v<T, float> && !t.drelative && takes_tensor_cores(call, params.rounding)) {
      attention_rounded_back(t, params);
      return;
    }
    backward<T>(t, params);
  });
}

}  // namespace heed::kernel

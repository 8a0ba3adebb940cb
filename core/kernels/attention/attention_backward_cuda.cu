// Tiled attention backward on a device, exact: dq in one pass over the keys of each tile of queries, dk and
// dv in another over the queries of each tile of keys. Nothing is added by two blocks, so sums have one
// order.
#include "core/count.h"
#include "core/kernels/attention_back_device.h"
#include "core/kernels/attention_rounded_device.h"

namespace heed::kernel {
namespace {

using cuda::mine;
using cuda::tile_rows;

/// dq of 64 queries; with `diagonals` also the sums of their score gradients along them.
template <class T, int D>
__global__ void __launch_bounds__(cuda::tile_threads) back_queries(AttentionBackCall<T> x) {
  constexpr int ld = cuda::tile_ld(D), ld_map = cuda::tile_ld(tile_rows), C = D / 16;
  T* q_tile = cuda::shared<T>();
  T* dout_tile = q_tile + cuda::tile_size(D);
  T* k_tile = dout_tile + cuda::tile_size(D);
  T* v_tile = k_tile + cuda::tile_size(D);
  T* map_tile = v_tile + cuda::tile_size(D);
  const KeptPairs kept{reinterpret_cast<uint8_t*>(map_tile + cuda::tile_size(tile_rows))};

  const cuda::Share me;
  const int64_t tiles = cuda::tiles_of(x.Tq), head = blockIdx.x / tiles;
  const int64_t b = head / x.H, h = head % x.H, shared_head = h / x.group;
  const int64_t first = (tiles - 1 - blockIdx.x % tiles) * tile_rows;
  const int64_t queries = min(x.Tq - first, int64_t{tile_rows}), column = int64_t{blockIdx.y} * D;
  const int64_t keys = x.keys_before(b, first + queries);
  const bool whole = x.d <= D && x.dv <= D;
  const T factor = x.factor();

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

  RowStats<T> row[mine];
#pragma unroll
  for (int r = 0; r < mine; ++r) {
    const int64_t i = first + me.row(r);
    row[r] = i < x.Tq ? x.stats[head * x.Tq + i] : RowStats<T>{infinity<T>, T(0)};
  }
  T* diagonals = x.diagonals == nullptr || column > 0
                     ? nullptr
                     : x.diagonals + (head * tiles + first / tile_rows) * (x.Tk + tile_rows - 1);
  T sum[mine][C];
  cuda::clear(sum);
  if (whole && keys > 0) {
    fetch_q(0);
    fetch_dout(0);
    fetch_k(0, 0);
    fetch_v(0, 0);
    cuda::commit_copies();
  }
  for (int64_t j = 0; j < keys; j += tile_rows) {
    T map[mine][4], dmap[mine][4];
    cuda::clear(map);
    cuda::clear(dmap);
    if (x.dropped) {
      kept.draw(x.drawn, static_cast<int>(queries), static_cast<int>(min(keys - j, int64_t{tile_rows})),
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
#pragma unroll
    for (int r = 0; r < mine; ++r) {
      const int64_t i = first + me.row(r);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const int64_t key = j + me.key(n);
        const bool pair = i < x.Tq && key < keys && x.sees(i, key);
        T steep = T(0), slope = T(0);
        if (pair) {
          const T score = score_of(x, factor, b, h, i, key, map[r][n], steep);
          const T keep = !x.dropped ? T(1) : kept.has(me.row(r), me.key(n)) ? x.keep_scale : T(0);
          slope = back_of(score, dmap[r][n], keep, row[r]).slope;
        }
        map[r][n] = slope * steep;
      }
    }
    cuda::put_map(me, map, map_tile);
    __syncthreads();
    if (whole && j + tile_rows < keys) fetch_v(j + tile_rows, 0);
    if (diagonals != nullptr && threadIdx.x < 2 * tile_rows - 1) {
      const int apart = static_cast<int>(threadIdx.x) - (tile_rows - 1);  // i - j within the tile
      T along = T(0);
      for (int i = max(apart, 0); i < min(apart, 0) + tile_rows; ++i)
        along += map_tile[i * ld_map + i - apart];
      const int64_t at = apart - j + x.Tk - 1;  // below zero past the last key, where all is zero
      if (at >= 0) diagonals[at] += along;
    }
    cuda::gather<T, ld_map, ld>(me, map_tile, k_tile, tile_rows, sum);
    __syncthreads();
    if (whole && j + tile_rows < keys) {
      fetch_k(j + tile_rows, 0);
      cuda::commit_copies();
    }
  }
#pragma unroll
  for (int r = 0; r < mine; ++r) {
#pragma unroll
    for (int n = 0; n < C; ++n) sum[r][n] *= x.scale;
    const int64_t i = first + me.row(r);
    if (i < x.Tq) cuda::put_columns(me, sum[r], x.d - column, x.dqs.at(b, h, i) + column);
  }
}

/// to [H, Tq + Tk - 1] from the sums of each tile of queries, in order of batch rows and tiles.
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
  const int64_t columns = std::max<int64_t>(1, cuda::pieces(call.d, D));
  cuda::run(back_queries<T, D>,
            {.blocks = dim3(static_cast<unsigned>(call.B * call.H * cuda::tiles_of(call.Tq)),
                            static_cast<unsigned>(columns)),
             .threads = dim3(cuda::tile_threads),
             .shared_bytes = numbers * static_cast<int>(sizeof(T)) + KeptPairs::bytes},
            call);
}

template <class T>
void backward(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms,
              const Tensor& out, const Tensor& lse, const Tensor& dout, const Tensor& dq, const Tensor& dk,
              const Tensor& dv, const Tensor& drelative) {
  AttentionBackCall<T> call(q, k, v, terms, dout, dq, dk, dv);
  const Tensor stats = row_stats<T>(out, lse, dout);
  call.stats = reinterpret_cast<const RowStats<T>*>(stats.data<T>());
  const int64_t tiles = cuda::tiles_of(call.Tq);
  Tensor diagonals;
  if (drelative) {
    diagonals = Tensor::zeros(Shape{call.B * call.H * tiles, call.Tk + tile_rows - 1}, q.dtype(), q.device());
    call.diagonals = diagonals.data<T>();
  }
  visit_tiles<T>(std::max(call.d, call.dv),
                 [&](auto wide) { start_queries<T, decltype(wide)::value>(call); });
  attention_back_keys(call);
  if (!drelative) return;
  const int64_t places = call.H * (call.Tq + call.Tk - 1);
  cuda::run(sum_diagonals<T>,
            {.blocks = dim3(static_cast<unsigned>(cuda::pieces(places, 256))), .threads = dim3(256)},
            static_cast<const AttentionShape&>(call), static_cast<const T*>(diagonals.data<T>()),
            drelative.data<T>());
}

}  // namespace

void AttentionBack::cuda(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms,
                         const Tensor& out, const Tensor& lse, const Tensor& dout, const Tensor& dq,
                         const Tensor& dk, const Tensor& dv, const Tensor& drelative) {
  visit_float("attention", q.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const AttentionScores<T> call(q, k, v, terms);
    Count::add(attention_flops(call, true));
    if (std::is_same_v<T, float> && !drelative && takes_tensor_cores(call, terms.rounding)) {
      attention_rounded_back(q, k, v, terms, out, lse, dout, dq, dk, dv);
      return;
    }
    backward<T>(q, k, v, terms, out, lse, dout, dq, dk, dv, drelative);
  });
}

}  // namespace heed::kernel

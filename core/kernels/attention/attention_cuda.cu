// Tiled attention forward on a device without rounding. A block handles 64 queries of a head and loops over
// tiles of 64 keys; it copies the next keys while it multiplies weights and values.
#include "heed/core/kernels/attention/attention.h"

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/attention/attention_few_queries_device.h"
#include "heed/core/kernels/attention/attention_tensor_core_device.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

using cuda::rows_per_thread;
using cuda::tile_rows;

/// What the forward kernel reads and writes.
template <class T>
struct ForwardCall : AttentionScores<T> {
  HeadView<const T> qs, ks, vs;
  HeadView<T> outs;
  RowLogs<T> lse;
  DeviceDraw drawn;

  ForwardCall(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionParams& params,
              const Tensor& out, const Tensor& sums)
      : AttentionScores<T>(q, k, v, params),
        qs(q),
        ks(k),
        vs(v),
        outs(out),
        lse(sums, q.extent(0) * q.extent(1) * q.extent(2)),
        drawn(params.dropout, params.draw) {}
};

/// out = softmax(q k^T) v for 64 queries and D columns of v. D is the width of a tile; wider q and k go
/// through it in slices.
template <class T, int D>
__global__ void __launch_bounds__(cuda::tile_threads) forward(ForwardCall<T> x) {
  constexpr int ld = cuda::tile_ld(D), ld_map = cuda::tile_ld(tile_rows), C = D / 16;
  T* q_tile = cuda::shared<T>();
  T* k_tile = q_tile + cuda::tile_size(D);
  T* v_tile = k_tile + cuda::tile_size(D);
  T* map_tile = v_tile + cuda::tile_size(D);
  const KeepMask keep_mask{reinterpret_cast<uint8_t*>(map_tile + cuda::tile_size(tile_rows))};

  const cuda::Share me;
  const int64_t tiles = cuda::tiles_of(x.Tq), head = blockIdx.x / tiles;
  const int64_t b = head / x.H, h = head % x.H, shared_head = h / x.group;
  const int64_t first = (tiles - 1 - blockIdx.x % tiles) * tile_rows;  // the longest causal tiles first
  const int64_t queries = min(x.Tq - first, int64_t{tile_rows}), column = int64_t{blockIdx.y} * D;
  const int64_t keys = x.keys_before(b, first + queries);
  const bool whole = x.d <= D;
  const int depth = static_cast<int>((min(x.d, int64_t{D}) + 3) / 4 * 4);
  const T scale_log2 = x.scale_log2();

  const auto fetch_keys = [&](int64_t j) {
    cuda::fetch_tile<T, D>(k_tile, x.ks.at(b, shared_head, j), x.ks.ld, keys - j, x.d);
    cuda::commit_copies();
  };
  OnlineSoftmax<T> rows;
  rows.start(me, x.sink_of(h));
  T sum[rows_per_thread][C];
  cuda::clear(sum);
  if (whole && keys > 0) {
    cuda::fetch_tile<T, D>(q_tile, x.qs.at(b, h, first), x.qs.ld, queries, x.d);
    fetch_keys(0);
  }
  for (int64_t j = 0; j < keys; j += tile_rows) {
    const int64_t count = min(keys - j, int64_t{tile_rows});
    T map[rows_per_thread][4];
    cuda::clear(map);
    cuda::fetch_tile<T, D>(v_tile, x.vs.at(b, shared_head, j) + column, x.vs.ld, count, x.dv - column);
    cuda::commit_copies();
    if (x.dropped) {
      keep_mask.draw(x.drawn, static_cast<int>(queries), static_cast<int>(count),
                     [&](int i) { return x.element(b, h, first + i, j); });
    }
    if (whole) {
      cuda::wait_for_copies<1>();
      __syncthreads();
      cuda::dots<T, ld, ld>(me, q_tile, k_tile, depth, map);
    } else {
      cuda::dots_of_slices<T, D>(
          me, q_tile, k_tile, x.d,
          [&](int64_t c) {
            cuda::fetch_tile<T, D>(q_tile, x.qs.at(b, h, first) + c, x.qs.ld, queries, x.d - c);
          },
          [&](int64_t c) {
            cuda::fetch_tile<T, D>(k_tile, x.ks.at(b, shared_head, j) + c, x.ks.ld, count, x.d - c);
          },
          map);
    }
#pragma unroll
    for (int r = 0; r < rows_per_thread; ++r) {
      const int64_t i = first + me.row(r);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const int64_t key = j + me.key(n);
        T cap_grad;
        const bool pair = i < x.Tq && key < keys && x.sees(i, key);
        map[r][n] = pair ? score_of(x, scale_log2, b, h, i, key, map[r][n], cap_grad) : -infinity<T>;
      }
    }
    softmax_tile(me, x, keep_mask, rows, map, sum, map_tile);
    cuda::wait_for_copies<0>();
    __syncthreads();
    if (whole && j + tile_rows < keys) fetch_keys(j + tile_rows);
    cuda::gather<T, ld_map, ld>(me, map_tile, v_tile, tile_rows, sum);
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < rows_per_thread; ++r) {
    RowLog<T> lse;
    const T inverse = rows.finish(r, lse);
#pragma unroll
    for (int n = 0; n < C; ++n) sum[r][n] *= inverse;
    const int64_t i = first + me.row(r);
    if (i >= x.Tq) continue;
    cuda::put_columns(me, sum[r], x.dv - column, x.outs.at(b, h, i) + column);
    if (me.x == 0 && column == 0) x.lse.put(head * x.Tq + i, lse);
  }
}

template <class T, int D>
void start(const ForwardCall<T>& call) {
  const int64_t tiles = call.B * call.H * cuda::tiles_of(call.Tq);
  const int bytes = (3 * cuda::tile_size(D) + cuda::tile_size(tile_rows)) * static_cast<int>(sizeof(T));
  cuda::run(forward<T, D>,
            {.blocks = dim3(static_cast<unsigned>(tiles),
                            static_cast<unsigned>(std::max<int64_t>(1, ceil_div(call.dv, D)))),
             .threads = dim3(cuda::tile_threads),
             .shared_bytes = bytes + KeepMask::bytes},
            call);
}

}  // namespace

/// out and lse: by attention_rows() for few queries, on the tensor cores where f32 products may be rounded,
/// else by unrounded products with one block per 64 queries of a head and D columns of the values.
void Attention::cuda(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionParams& params,
                     const Tensor& out, const Tensor& lse) {
  visit_float("attention", q.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const ForwardCall<T> call(q, k, v, params, out, lse);
    Count::add(attention_flops(call, false));
    if (takes_rows(call, params)) return attention_rows(q, k, v, params, out, lse);
    if (std::is_same_v<T, float> && takes_tensor_cores(call, params.rounding))
      return attention_rounded(q, k, v, params, out, lse);
    visit_tiles<T>(std::max(call.d, call.dv), [&](auto wide) { start<T, decltype(wide)::value>(call); });
  });
}

}  // namespace heed::kernel

// Tiled attention forward on the tensor cores. A block handles 128 queries, 32 per warp, and loops over tiles
// of 64 keys, copying the next tile while it multiplies. Weights stay in registers between the two products.
#include "heed/core/ceil_div.h"
#include "heed/core/kernels/attention/attention_tensor_core_softmax.h"

namespace heed::kernel {
namespace {

constexpr int M = 2;  // blocks of 16 queries a warp
constexpr int block_rows = 4 * 16 * M;

template <class E>
struct ForwardCall : AttentionScores<float> {
  PackedRows<E> qs, ks, vs;
  HeadView<float> outs;
  RowLogs<float> lse;
  DeviceDraw drawn;
  float sink_unit;  ///< converts a sink to the unit of unscaled products
};

/// out[b, h, i, :] = sum_j softmax_j(score_ij) v_j and lse of 128 queries of a head, by one block. Each of
/// its four warps holds 32 queries and loops over tiles of 64 keys with an online softmax.
template <class E, int D, Pairs pairs>
__global__ void __launch_bounds__(cuda::tile_threads) forward(ForwardCall<E> x) {
  constexpr int ld = packed_ld<E, D>, N = key_tile / 8;
  E* q_tile = cuda::shared<E>();
  E* k_tiles = q_tile + block_rows * ld;     // two
  E* v_tiles = k_tiles + 2 * key_tile * ld;  // two
  const KeepMask keep_mask{reinterpret_cast<uint8_t*>(v_tiles + 2 * key_tile * ld)};
  const WarpPlace me;
  const int64_t tiles = ceil_div(x.Tq, block_rows), head = blockIdx.x / tiles, b = head / x.H, h = head % x.H;
  const int64_t shared_head = h / x.group, first = (tiles - 1 - blockIdx.x % tiles) * block_rows;
  const int64_t queries = min(x.Tq - first, int64_t{block_rows}), keys = x.keys_before(b, first + queries);
  // Keys that this warp's queries see; it skips later ones. The widest rows leave no registers for skipping.
  constexpr bool skips = D < 128;
  const int64_t own_keys = 16 * M * me.warp < queries ? x.keys_before(b, first + 16 * M * (me.warp + 1)) : 0;
  const float scale_log2 = x.scale_log2();
  // Products are scaled on becoming weights: the scale is positive, so it keeps their order.
  const float unit = pairs == Pairs::any ? 1.0F : scale_log2;
  const bool drops = pairs != Pairs::plain && (pairs == Pairs::dropped || x.dropped);

  const auto fetch_keys = [&](int64_t j) {
    const int64_t place = j / key_tile % 2 * key_tile * ld;
    fetch_packed<E, D, key_tile>(k_tiles + place, x.ks.template at<D>(b, shared_head, j), keys - j);
    fetch_packed<E, D, key_tile>(v_tiles + place, x.vs.template at<D>(b, shared_head, j), keys - j);
    cuda::commit_copies();
  };
  WarpOnlineSoftmax<M> rows;
  rows.start(me, pairs == Pairs::any ? x.sink_of(h) : x.sink_of(h) * x.sink_unit);
  WarpSums<M, D / 8> sums;
  sums.clear();
  if (keys > 0) {
    fetch_packed<E, D, block_rows>(q_tile, x.qs.template at<D>(b, h, first), queries);
    fetch_keys(0);
  }
  for (int64_t j = 0; j < keys; j += key_tile) {
    const int64_t place = j / key_tile % 2 * key_tile * ld;
    if (j + key_tile < keys) {
      fetch_keys(j + key_tile);
      cuda::wait_for_copies<1>();
    } else {
      cuda::wait_for_copies<0>();
    }
    if (drops) {
      keep_mask.draw(x.drawn, static_cast<int>(queries), static_cast<int>(min(keys - j, int64_t{key_tile})),
                     [&](int i) { return x.element(b, h, first + i, j); });
    }
    __syncthreads();
    if (!skips || j < own_keys) {
      // map [32 queries of this warp, 64 keys] = q . k.
      WarpSums<M, N> map;
      map.clear();
      warp_dots<D, M>(me, q_tile, k_tiles + place, map);
      // Scores: -infinity for pairs that are masked; softcap and biases where the call has them.
      if (pairs == Pairs::any || !skips || j + key_tile > keys || !x.sees(first, j + key_tile - 1)) {
#pragma unroll
        for (int m = 0; m < M; ++m) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int64_t i = first + me.row<M>(m, half);
            const int seen = keys_seen(x, i, j, keys);
#pragma unroll
            for (int n = 0; n < N; ++n) {
#pragma unroll
              for (int e = 2 * half; e < 2 * half + 2; ++e) {
                const int key = me.column(n, e);
                float &s = map.x[m][n][e], cap_grad;
                if (key >= seen) {
                  s = -infinity<float>;
                } else if constexpr (pairs == Pairs::any) {
                  s = score_of<float>(x, scale_log2, b, h, i, j + key, s, cap_grad);
                }
              }
            }
          }
        }
      }
      // Weights relative to the largest score so far, with dropout; sums [32, D] += weights v.
      rows.scores_to_weights(map, unit, sums, [&](int m, int half) {
        const uint64_t bits = drops ? keep_mask.of(me.row<M>(m, half)) >> me.column(0, 0) : 0;
        return [=, scale = x.keep_scale](int n, int e) {
          return !drops ? 1.0F : (bits >> (8 * n + e % 2) & 1) != 0 ? scale : 0.0F;
        };
      });
      warp_gather<D, M>(me, map, v_tiles + place, sums);
    }
    __syncthreads();
  }
  // out = sums / sum of weights, and lse of each row.
  float inverse[M][2];
#pragma unroll
  for (int m = 0; m < M; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      RowLog<float> lse;
      inverse[m][half] = rows.finish(m, half, unit, lse);
      const int64_t i = first + me.row<M>(m, half);
      if (me.lane % 4 == 0 && i < x.Tq) x.lse.put(head * x.Tq + i, lse);
    }
  }
  store_warp_rows(
      me, sums, x.dv,
      [&](int m, int half) {
        const int64_t i = first + me.row<M>(m, half);
        return i < x.Tq ? x.outs.at(b, h, i) : nullptr;
      },
      [&](int m, int half) { return RowFactors{inverse[m][half]}; });
}

}  // namespace

/// Attention with products of rounded factors (bf16 or tf32) and sums in f32: rounds q, k and v into rows of
/// D numbers and starts one block per 128 queries of a head.
void attention_rounded(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionParams& params,
                       const Tensor& out, const Tensor& lse) {
  with_packed(params.rounding, std::max(q.extent(3), v.extent(3)), [&]<class E, int D>() {
    const Tensor all_q = packed<E>(q, D), all_k = packed<E>(k, D), all_v = packed<E>(v, D);
    const float scale_log2 = AttentionScores<float>(q, k, v, params).scale_log2();
    // True where the scale keeps the order of the scores and sinks can be divided by it.
    const bool scales = scale_log2 > 1e-20F;
    const ForwardCall<E> call{{q, k, v, params},
                              {all_q, q},
                              {all_k, k},
                              {all_v, v},
                              HeadView<float>(out),
                              RowLogs<float>(lse, q.extent(0) * q.extent(1) * q.extent(2)),
                              DeviceDraw(params.dropout, params.draw),
                              scales ? 1.0F / scale_log2 : 1.0F};
    constexpr int bytes =
        (block_rows + 4 * key_tile) * packed_ld<E, D> * static_cast<int>(sizeof(E)) + block_rows * 8;
    const auto start = [&]<Pairs pairs>() {
      cuda::run(forward<E, D, pairs>,
                {.blocks = dim3(static_cast<unsigned>(call.B * call.H * ceil_div(call.Tq, block_rows))),
                 .threads = dim3(cuda::tile_threads),
                 .shared_bytes = bytes},
                call);
    };
    scales ? with_pairs(call, start) : start.template operator()<Pairs::any>();
  });
}

}  // namespace heed::kernel

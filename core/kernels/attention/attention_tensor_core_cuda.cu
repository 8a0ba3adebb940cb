// Tiled attention forward on the tensor cores: a block takes 128 queries, 32 a warp, through the keys, with
// the next 64 under way while these are multiplied. Weights go from one product to the next in registers.
#include "core/kernels/attention_rounded_softmax.h"

namespace heed::kernel {
namespace {

constexpr int M = 2;  // blocks of 16 queries a warp
constexpr int tall = 4 * 16 * M;

template <class E>
struct ForwardCall : AttentionScores<float> {
  PackedRows<E> qs, ks, vs;
  Heads<float> outs;
  RowLogs<float> lse;
  DeviceDraw drawn;
  float sink_unit;  ///< what makes a sink one of the numbers that the scale will multiply
};

template <class E, int D, Pairs pairs>
__global__ void __launch_bounds__(cuda::tile_threads) forward(ForwardCall<E> x) {
  constexpr int ld = packed_ld<E, D>, N = met / 8;
  E* q_tile = cuda::shared<E>();
  E* k_tiles = q_tile + tall * ld;      // two
  E* v_tiles = k_tiles + 2 * met * ld;  // two
  const KeptPairs kept{reinterpret_cast<uint8_t*>(v_tiles + 2 * met * ld)};
  const WarpPlace me;
  const int64_t tiles = (x.Tq + tall - 1) / tall, head = blockIdx.x / tiles, b = head / x.H, h = head % x.H;
  const int64_t shared_head = h / x.group, first = (tiles - 1 - blockIdx.x % tiles) * tall;
  const int64_t queries = min(x.Tq - first, int64_t{tall}), keys = x.keys_before(b, first + queries);
  // Keys of this warp's queries: with later ones it has nothing to do. With the widest rows the sums leave no
  // registers for what spares work here.
  constexpr bool skips = D < 128;
  const int64_t own_keys = 16 * M * me.warp < queries ? x.keys_before(b, first + 16 * M * (me.warp + 1)) : 0;
  const float factor = x.factor();
  // Products are scaled as they become weights, where their order is that of the scores.
  const float unit = pairs == Pairs::any ? 1.0F : factor;
  const bool drops = pairs != Pairs::plain && (pairs == Pairs::dropped || x.dropped);

  const auto fetch_keys = [&](int64_t j) {
    const int64_t place = j / met % 2 * met * ld;
    fetch_packed<E, D, met>(k_tiles + place, x.ks.template at<D>(b, shared_head, j), keys - j);
    fetch_packed<E, D, met>(v_tiles + place, x.vs.template at<D>(b, shared_head, j), keys - j);
    cuda::commit_copies();
  };
  WarpRunningRows<M> rows;
  rows.start(me, pairs == Pairs::any ? x.sink_of(h) : x.sink_of(h) * x.sink_unit);
  WarpSums<M, D / 8> sums;
  sums.clear();
  if (keys > 0) {
    fetch_packed<E, D, tall>(q_tile, x.qs.template at<D>(b, h, first), queries);
    fetch_keys(0);
  }
  for (int64_t j = 0; j < keys; j += met) {
    const int64_t place = j / met % 2 * met * ld;
    if (j + met < keys) {
      fetch_keys(j + met);
      cuda::wait_for_copies<1>();
    } else {
      cuda::wait_for_copies<0>();
    }
    if (drops) {
      kept.draw(x.drawn, static_cast<int>(queries), static_cast<int>(min(keys - j, int64_t{met})),
                [&](int i) { return x.element(b, h, first + i, j); });
    }
    __syncthreads();
    if (!skips || j < own_keys) {
      WarpSums<M, N> map;
      map.clear();
      warp_dots<D, M>(me, q_tile, k_tiles + place, map);
      if (pairs == Pairs::any || !skips || j + met > keys || !x.sees(first, j + met - 1)) {
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
                float &s = map.x[m][n][e], steep;
                if (key >= seen) {
                  s = -infinity<float>;
                } else if constexpr (pairs == Pairs::any) {
                  s = score_of<float>(x, factor, b, h, i, j + key, s, steep);
                }
              }
            }
          }
        }
      }
      rows.weigh(map, unit, sums, [&](int m, int half) {
        const uint64_t bits = drops ? kept.of(me.row<M>(m, half)) >> me.column(0, 0) : 0;
        return [=, scale = x.keep_scale](int n, int e) {
          return !drops ? 1.0F : (bits >> (8 * n + e % 2) & 1) != 0 ? scale : 0.0F;
        };
      });
      warp_gather<D, M>(me, map, v_tiles + place, sums);
    }
    __syncthreads();
  }
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
  put_warp_rows(
      me, sums, x.dv,
      [&](int m, int half) {
        const int64_t i = first + me.row<M>(m, half);
        return i < x.Tq ? x.outs.at(b, h, i) : nullptr;
      },
      [&](int m, int half) { return RowShares{inverse[m][half]}; });
}

}  // namespace

void attention_rounded(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms,
                       const Tensor& out, const Tensor& lse) {
  with_packed(terms.rounding, std::max(q.extent(3), v.extent(3)), [&]<class E, int D>() {
    const Tensor all_q = packed<E>(q, D), all_k = packed<E>(k, D), all_v = packed<E>(v, D);
    const float factor = AttentionScores<float>(q, k, v, terms).factor();
    // Whether the scale keeps the order of the scores, and sinks can be divided by it.
    const bool scales = factor > 1e-20F;
    const ForwardCall<E> call{{q, k, v, terms},
                              {all_q, q},
                              {all_k, k},
                              {all_v, v},
                              Heads<float>(out),
                              RowLogs<float>(lse, q.extent(0) * q.extent(1) * q.extent(2)),
                              DeviceDraw(terms.dropout, terms.draw),
                              scales ? 1.0F / factor : 1.0F};
    constexpr int bytes = (tall + 4 * met) * packed_ld<E, D> * static_cast<int>(sizeof(E)) + tall * 8;
    const auto start = [&]<Pairs pairs>() {
      cuda::run(forward<E, D, pairs>,
                {.blocks = dim3(static_cast<unsigned>(call.B * call.H * cuda::pieces(call.Tq, tall))),
                 .threads = dim3(cuda::tile_threads),
                 .shared_bytes = bytes},
                call);
    };
    scales ? with_pairs(call, start) : start.template operator()<Pairs::any>();
  });
}

}  // namespace heed::kernel

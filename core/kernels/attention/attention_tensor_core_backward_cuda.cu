// Tiled attention backward on the tensor cores: dq by tiles of 64 queries, dk and dv by tiles of 64 keys, 16
// rows a warp. What is met is copied two steps deep; maps go from one product to the next in registers.
#include "core/kernels/attention_back_device.h"
#include "core/kernels/attention_rounded_device.h"

namespace heed::kernel {
namespace {

constexpr int tall = 64;  // rows of a block

template <class E>
struct BackCall : AttentionScores<float> {
  PackedRows<E> qs, ks, vs, douts;
  Heads<float> dqs, dks, dvs;
  const RowStats<float>* stats;
  DeviceDraw drawn;
};

/// `keyed`: rows are keys and columns queries, giving dk and dv; else the other way round, giving dq.
template <class E, int D, bool keyed, Pairs pairs>
__global__ void __launch_bounds__(cuda::tile_threads) backward(BackCall<E> x) {
  constexpr int ld = packed_ld<E, D>, N = met / 8;
  E* own_tile = cuda::shared<E>();                                              // q, or k
  E* own_other = own_tile + tall * ld;                                          // dout, or v
  E* met_tiles = own_other + tall * ld;                                         // k, or q: two
  E* met_others = met_tiles + 2 * met * ld;                                     // v, or dout: two
  auto* stats = reinterpret_cast<RowStats<float>*>(met_others + 2 * met * ld);  // of the tile's queries
  const KeptPairs kept{reinterpret_cast<uint8_t*>(stats + met)};
  const WarpPlace me;
  const int64_t length = keyed ? x.Tk : x.Tq, tiles = (length + tall - 1) / tall, at = blockIdx.x / tiles;
  const int64_t heads = keyed ? x.H / x.group : x.H, b = at / heads, own_head = at % heads;
  const int64_t tile = blockIdx.x % tiles, first = (keyed ? tile : tiles - 1 - tile) * tall;
  const int64_t rows = min(length - first, int64_t{tall});
  const int64_t present = keyed ? within(x.keys_of(b) - first, 0, rows) : rows;
  const int64_t begin = keyed ? x.first_of(first) / met * met : 0;
  const int64_t end = !keyed ? x.keys_before(b, first + rows) : present == 0 ? begin : x.Tq;
  const int64_t steps = begin < end ? (end - begin + met - 1) / met : 0;  // of each head
  const int64_t all_steps = keyed ? steps * x.group : steps;
  const float factor = x.factor();
  const auto head_of = [&](int64_t step) { return keyed ? own_head * x.group + step / steps : own_head; };
  const auto place_of = [&](int64_t step) { return begin + (keyed ? step % steps : step) * met; };

  const auto fetch = [&](int64_t step) {
    const int64_t n = place_of(step), met_head = keyed ? head_of(step) : own_head / x.group;
    const int64_t place = step % 2 * met * ld;
    fetch_packed<E, D, met>(met_tiles + place, (keyed ? x.qs : x.ks).template at<D>(b, met_head, n), end - n);
    fetch_packed<E, D, met>(met_others + place, (keyed ? x.douts : x.vs).template at<D>(b, met_head, n),
                            end - n);
    cuda::commit_copies();
  };
  if (!keyed && static_cast<int>(threadIdx.x) < tall) {
    const int64_t i = first + threadIdx.x;
    stats[threadIdx.x] =
        i < x.Tq ? x.stats[(b * x.H + own_head) * x.Tq + i] : RowStats<float>{infinity<float>, 0.0F};
  }
  WarpSums<1, D / 8> sums, other_sums;  // dq, or dk and dv
  sums.clear();
  if constexpr (keyed) other_sums.clear();
  if (all_steps > 0) {
    fetch_packed<E, D, tall>(own_tile, (keyed ? x.ks : x.qs).template at<D>(b, own_head, first), present);
    fetch_packed<E, D, tall>(own_other, (keyed ? x.vs : x.douts).template at<D>(b, own_head, first), present);
    fetch(0);
  }
  for (int64_t step = 0; step < all_steps; ++step) {
    const int64_t h = head_of(step), n_first = place_of(step), place = step % 2 * met * ld;
    if (step + 1 < all_steps) {
      fetch(step + 1);
      cuda::wait_for_copies<1>();
    } else {
      cuda::wait_for_copies<0>();
    }
    if (keyed && static_cast<int>(threadIdx.x) < met) {
      const int64_t i = n_first + threadIdx.x;
      stats[threadIdx.x] =
          i < x.Tq ? x.stats[(b * x.H + h) * x.Tq + i] : RowStats<float>{infinity<float>, 0.0F};
    }
    const int64_t query_first = keyed ? n_first : first, key_first = keyed ? first : n_first;
    if (pairs != Pairs::plain && x.dropped) {
      kept.draw(x.drawn, static_cast<int>(min(x.Tq - query_first, int64_t{64})),
                static_cast<int>(min(x.Tk - key_first, int64_t{64})),
                [&](int i) { return x.element(b, h, query_first + i, key_first); });
    }
    __syncthreads();
    WarpSums<1, N> map, slopes;
    map.clear();
    slopes.clear();
    warp_dots<D, 1>(me, own_tile, met_tiles + place, map);
    warp_dots<D, 1>(me, own_other, met_others + place, slopes);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = me.row<1>(0, half);
      // Columns of pairs: the queries that see a key, or the keys that a query sees.
      const int low = keyed ? queries_before(x, first + row, n_first) : 0;
      const int high = !keyed          ? keys_seen(x, first + row, n_first, end)
                       : row < present ? static_cast<int>(min(x.Tq - n_first, int64_t{met}))
                                       : 0;
#pragma unroll
      for (int n = 0; n < N; ++n) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          const int column = me.column(n, e), query = keyed ? column : row, key = keyed ? row : column;
          BackPair<float> back{0.0F, 0.0F};
          float steep = 1.0F;
          if (low <= column && column < high) {
            float score = map.x[0][n][e] * factor;
            if constexpr (pairs == Pairs::any) {
              score = score_of<float>(x, factor, b, h, query_first + query, key_first + key, map.x[0][n][e],
                                      steep);
            }
            float keep = 1.0F;
            if (pairs != Pairs::plain && x.dropped) keep = kept.has(query, key) ? x.keep_scale : 0.0F;
            back = back_of(score, slopes.x[0][n][e], keep, stats[query]);
          }
          map.x[0][n][e] = back.weight;
          slopes.x[0][n][e] = back.slope * steep;
        }
      }
    }
    if constexpr (keyed) warp_gather<D, 1>(me, map, met_others + place, other_sums);
    warp_gather<D, 1>(me, slopes, met_tiles + place, sums);
    __syncthreads();
  }
  const auto put = [&](const WarpSums<1, D / 8>& from, const Heads<float>& to, int64_t width, float scale) {
    put_warp_rows(
        me, from, width,
        [&](int m, int half) {
          const int row = me.row<1>(m, half);
          return row < rows ? to.at(b, own_head, first + row) : nullptr;
        },
        [&](int, int) { return RowShares{scale}; });
  };
  if constexpr (keyed) {
    put(sums, x.dks, x.d, x.scale);
    put(other_sums, x.dvs, x.dv, 1.0F);
  } else {
    put(sums, x.dqs, x.d, x.scale);
  }
}

}  // namespace

void attention_rounded_back(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms,
                            const Tensor& out, const Tensor& lse, const Tensor& dout, const Tensor& dq,
                            const Tensor& dk, const Tensor& dv) {
  const Tensor stats = row_stats<float>(out, lse, dout);
  with_packed(terms.rounding, std::max(q.extent(3), v.extent(3)), [&]<class E, int D>() {
    const Tensor all_q = packed<E>(q, D), all_k = packed<E>(k, D), all_v = packed<E>(v, D),
                 all_dout = packed<E>(dout, D);
    const BackCall<E> call{{q, k, v, terms},
                           {all_q, q},
                           {all_k, k},
                           {all_v, v},
                           {all_dout, dout},
                           Heads<float>(dq),
                           Heads<float>(dk),
                           Heads<float>(dv),
                           reinterpret_cast<const RowStats<float>*>(stats.data<float>()),
                           DeviceDraw(terms.dropout, terms.draw)};
    constexpr int bytes = (2 * tall + 4 * met) * packed_ld<E, D> * static_cast<int>(sizeof(E)) +
                          met * static_cast<int>(sizeof(RowStats<float>)) + KeptPairs::bytes;
    const auto grid = [&](int64_t heads, int64_t length) {
      return cuda::Grid{.blocks = dim3(static_cast<unsigned>(heads * cuda::pieces(length, tall))),
                        .threads = dim3(cuda::tile_threads),
                        .shared_bytes = bytes};
    };
    with_pairs(call, [&]<Pairs pairs>() {
      cuda::run(backward<E, D, false, pairs>, grid(call.B * call.H, call.Tq), call);
      cuda::run(backward<E, D, true, pairs>, grid(call.B * (call.H / call.group), call.Tk), call);
    });
  });
}

}  // namespace heed::kernel

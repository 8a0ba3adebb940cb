// Tiled attention backward on the tensor cores: dq per tile of 64 queries, dk and dv per tile of 64 keys, 16
// rows per warp. Column tiles are double-buffered; weights stay in registers between products.
#include "heed/core/ceil_div.h"
#include "heed/core/kernels/attention/attention_backward_device.h"
#include "heed/core/kernels/attention/attention_tensor_core_device.h"

namespace heed::kernel {
namespace {

constexpr int block_rows = 64;  // rows of a block

template <class E>
struct BackCall : AttentionScores<float> {
  PackedRows<E> qs, ks, vs, douts;
  HeadView<float> dqs, dks, dvs;
  const RowStats<float>* stats;
  DeviceDraw drawn;
};

/// Gradients of 64 rows of a head: with rows as queries and columns as keys (`keys_are_rows` false) dq, with
/// rows as keys and columns as queries dk and dv. One block, 16 rows per warp, loops over tiles of 64
/// columns.
template <class E, int D, bool keys_are_rows, Pairs pairs>
__global__ void __launch_bounds__(cuda::tile_threads) backward(BackCall<E> x) {
  constexpr int ld = packed_ld<E, D>, N = key_tile / 8;
  E* row_qk = cuda::shared<E>();                    // q, or k
  E* row_vdout = row_qk + block_rows * ld;          // dout, or v
  E* column_qk = row_vdout + block_rows * ld;       // k, or q: two
  E* column_vdout = column_qk + 2 * key_tile * ld;  // v, or dout: two
  auto* stats =
      reinterpret_cast<RowStats<float>*>(column_vdout + 2 * key_tile * ld);  // of the tile's queries
  const KeepMask keep_mask{reinterpret_cast<uint8_t*>(stats + key_tile)};
  const WarpPlace me;
  const int64_t length = keys_are_rows ? x.Tk : x.Tq, tiles = ceil_div(length, block_rows),
                at = blockIdx.x / tiles;
  const int64_t heads = keys_are_rows ? x.H / x.group : x.H, b = at / heads, row_head = at % heads;
  const int64_t tile = blockIdx.x % tiles, first = (keys_are_rows ? tile : tiles - 1 - tile) * block_rows;
  const int64_t rows = min(length - first, int64_t{block_rows});
  const int64_t present = keys_are_rows ? within(x.keys_of(b) - first, 0, rows) : rows;
  const int64_t begin = keys_are_rows ? x.first_of(first) / key_tile * key_tile : 0;
  const int64_t end = !keys_are_rows ? x.keys_before(b, first + rows) : present == 0 ? begin : x.Tq;
  const int64_t steps = begin < end ? (end - begin + key_tile - 1) / key_tile : 0;  // of each head
  const int64_t all_steps = keys_are_rows ? steps * x.group : steps;
  const float scale_log2 = x.scale_log2();
  const auto head_of = [&](int64_t step) {
    return keys_are_rows ? row_head * x.group + step / steps : row_head;
  };
  const auto place_of = [&](int64_t step) {
    return begin + (keys_are_rows ? step % steps : step) * key_tile;
  };

  const auto fetch = [&](int64_t step) {
    const int64_t n = place_of(step), column_head = keys_are_rows ? head_of(step) : row_head / x.group;
    const int64_t place = step % 2 * key_tile * ld;
    fetch_packed<E, D, key_tile>(column_qk + place,
                                 (keys_are_rows ? x.qs : x.ks).template at<D>(b, column_head, n), end - n);
    fetch_packed<E, D, key_tile>(column_vdout + place,
                                 (keys_are_rows ? x.douts : x.vs).template at<D>(b, column_head, n), end - n);
    cuda::commit_copies();
  };
  if (!keys_are_rows && static_cast<int>(threadIdx.x) < block_rows) {
    const int64_t i = first + threadIdx.x;
    stats[threadIdx.x] =
        i < x.Tq ? x.stats[(b * x.H + row_head) * x.Tq + i] : RowStats<float>{infinity<float>, 0.0F};
  }
  WarpSums<1, D / 8> sums, other_sums;  // dq, or dk and dv
  sums.clear();
  if constexpr (keys_are_rows) other_sums.clear();
  if (all_steps > 0) {
    fetch_packed<E, D, block_rows>(row_qk, (keys_are_rows ? x.ks : x.qs).template at<D>(b, row_head, first),
                                   present);
    fetch_packed<E, D, block_rows>(
        row_vdout, (keys_are_rows ? x.vs : x.douts).template at<D>(b, row_head, first), present);
    fetch(0);
  }
  for (int64_t step = 0; step < all_steps; ++step) {
    const int64_t h = head_of(step), n_first = place_of(step), place = step % 2 * key_tile * ld;
    if (step + 1 < all_steps) {
      fetch(step + 1);
      cuda::wait_for_copies<1>();
    } else {
      cuda::wait_for_copies<0>();
    }
    if (keys_are_rows && static_cast<int>(threadIdx.x) < key_tile) {
      const int64_t i = n_first + threadIdx.x;
      stats[threadIdx.x] =
          i < x.Tq ? x.stats[(b * x.H + h) * x.Tq + i] : RowStats<float>{infinity<float>, 0.0F};
    }
    const int64_t query_first = keys_are_rows ? n_first : first, key_first = keys_are_rows ? first : n_first;
    if (pairs != Pairs::plain && x.dropped) {
      keep_mask.draw(x.drawn, static_cast<int>(min(x.Tq - query_first, int64_t{64})),
                     static_cast<int>(min(x.Tk - key_first, int64_t{64})),
                     [&](int i) { return x.element(b, h, query_first + i, key_first); });
    }
    __syncthreads();
    // Products of the tile [64 rows, 64 columns]: map = q . k and score_grads = dout . v.
    WarpSums<1, N> map, score_grads;
    map.clear();
    score_grads.clear();
    warp_dots<D, 1>(me, row_qk, column_qk + place, map);
    warp_dots<D, 1>(me, row_vdout, column_vdout + place, score_grads);
    // In place: map becomes the weights after dropout, score_grads the gradients of the scaled products.
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = me.row<1>(0, half);
      // Visible columns [low, high): the queries that see this key, or the keys that this query sees.
      const int low = keys_are_rows ? queries_before(x, first + row, n_first) : 0;
      const int high = !keys_are_rows  ? keys_seen(x, first + row, n_first, end)
                       : row < present ? static_cast<int>(min(x.Tq - n_first, int64_t{key_tile}))
                                       : 0;
#pragma unroll
      for (int n = 0; n < N; ++n) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          const int column = me.column(n, e), query = keys_are_rows ? column : row,
                    key = keys_are_rows ? row : column;
          PairGradient<float> back{0.0F, 0.0F};
          float cap_grad = 1.0F;
          if (low <= column && column < high) {
            float score = map.x[0][n][e] * scale_log2;
            if constexpr (pairs == Pairs::any) {
              score = score_of<float>(x, scale_log2, b, h, query_first + query, key_first + key,
                                      map.x[0][n][e], cap_grad);
            }
            float keep = 1.0F;
            if (pairs != Pairs::plain && x.dropped) keep = keep_mask.has(query, key) ? x.keep_scale : 0.0F;
            back = score_gradient(score, score_grads.x[0][n][e], keep, stats[query]);
          }
          map.x[0][n][e] = back.weight;
          score_grads.x[0][n][e] = back.score_grad * cap_grad;
        }
      }
    }
    // dv += weights dout and dk += score_grads q; or dq += score_grads k.
    if constexpr (keys_are_rows) warp_gather<D, 1>(me, map, column_vdout + place, other_sums);
    warp_gather<D, 1>(me, score_grads, column_qk + place, sums);
    __syncthreads();
  }
  const auto put = [&](const WarpSums<1, D / 8>& from, const HeadView<float>& to, int64_t width,
                       float scale) {
    store_warp_rows(
        me, from, width,
        [&](int m, int half) {
          const int row = me.row<1>(m, half);
          return row < rows ? to.at(b, row_head, first + row) : nullptr;
        },
        [&](int, int) { return RowFactors{scale}; });
  };
  if constexpr (keys_are_rows) {
    put(sums, x.dks, x.d, x.scale);
    put(other_sums, x.dvs, x.dv, 1.0F);
  } else {
    put(sums, x.dqs, x.d, x.scale);
  }
}

}  // namespace

/// dq, dk and dv with products of rounded factors and sums in f32: rounds q, k, v and dout into rows of D
/// numbers, then starts one block per 64 queries of a head for dq, and one per 64 keys of a key head for dk
/// and dv.
void attention_rounded_back(const AttentionBackTensors& t, const AttentionParams& params) {
  const Tensor stats = row_stats<float>(t.out, t.lse, t.dout);
  with_packed(params.rounding, std::max(t.q.extent(3), t.v.extent(3)), [&]<class E, int D>() {
    const Tensor all_q = packed<E>(t.q, D), all_k = packed<E>(t.k, D), all_v = packed<E>(t.v, D),
                 all_dout = packed<E>(t.dout, D);
    const BackCall<E> call{{t.q, t.k, t.v, params},
                           {all_q, t.q},
                           {all_k, t.k},
                           {all_v, t.v},
                           {all_dout, t.dout},
                           HeadView<float>(t.dq),
                           HeadView<float>(t.dk),
                           HeadView<float>(t.dv),
                           reinterpret_cast<const RowStats<float>*>(stats.data<float>()),
                           DeviceDraw(params.dropout, params.draw)};
    constexpr int bytes = (2 * block_rows + 4 * key_tile) * packed_ld<E, D> * static_cast<int>(sizeof(E)) +
                          key_tile * static_cast<int>(sizeof(RowStats<float>)) + KeepMask::bytes;
    const auto grid = [&](int64_t heads, int64_t length) {
      return cuda::Grid{.blocks = dim3(static_cast<unsigned>(heads * ceil_div(length, block_rows))),
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

// Tiled attention backward on the tensor cores: dq per tile of 64 queries, dk and dv per tile of 64 keys, 16
// rows per warp. Column tiles are double-buffered; weights stay in registers between products.
#include "heed/core/ceil_div.h"
#include "heed/core/kernels/attention/attention_backward_device.h"
#include "heed/core/kernels/attention/attention_tensor_core_device.h"

namespace heed::kernel {
namespace {

constexpr int block_rows = 64;  // rows of a block

/// Inputs and outputs of the kernel.
template <class E>
struct BackCall : AttentionScores<float> {
  RoundedRows<E> qs, ks, vs, douts;
  HeadView<float> dqs, dks, dvs;
  const RowStats<float>* stats;
  DeviceDraw dropout;
};

/// Gradients of 64 rows of a head: with rows as queries and columns as keys (`keys_are_rows` false) dq, with
/// rows as keys and columns as queries dk and dv. One block, 16 rows per warp, loops over tiles of 64
/// columns; with keys as rows, over those of all query heads that share the keys. Two buffers of columns take
/// turns.
template <class E, int D, bool keys_are_rows, Pairs pairs>
__global__ void __launch_bounds__(cuda::tile_threads) backward(BackCall<E> x) {
  constexpr int ld = rounded_ld<E, D>, N = key_tile / 8;
  E* row_qk = cuda::shared<E>();                    // q, or k
  E* row_vdout = row_qk + block_rows * ld;          // dout, or v
  E* column_qk = row_vdout + block_rows * ld;       // k, or q: two buffers
  E* column_vdout = column_qk + 2 * key_tile * ld;  // v, or dout: two buffers
  auto* stats =
      reinterpret_cast<RowStats<float>*>(column_vdout + 2 * key_tile * ld);  // one for each query of the tile
  const KeepMask keep_mask{reinterpret_cast<uint8_t*>(stats + key_tile)};
  const WarpThread thread;
  const int64_t length = keys_are_rows ? x.Tk : x.Tq, num_tiles = ceil_div(length, block_rows),
                block_head = blockIdx.x / num_tiles;
  const int64_t heads_of_rows = keys_are_rows ? x.H / x.group : x.H, b = block_head / heads_of_rows,
                row_head = block_head % heads_of_rows;
  const int64_t tile = blockIdx.x % num_tiles,
                row_begin = (keys_are_rows ? tile : num_tiles - 1 - tile) * block_rows;
  const int64_t num_rows =
      min((keys_are_rows ? x.key_rows(b) : x.num_queries(b)) - row_begin, int64_t{block_rows});
  if (num_rows <= 0) return;  // past the end of a packed sequence
  const int64_t num_present = keys_are_rows ? within(x.num_keys(b) - row_begin, 0, num_rows) : num_rows;
  const int64_t columns_begin = keys_are_rows ? x.first_query_of(row_begin) / key_tile * key_tile : 0;
  const int64_t columns_end = !keys_are_rows     ? x.num_keys_before(b, row_begin + num_rows)
                              : num_present == 0 ? columns_begin
                                                 : x.num_queries(b);
  const int64_t steps_per_head =
      columns_begin < columns_end ? (columns_end - columns_begin + key_tile - 1) / key_tile : 0;
  const int64_t num_steps = keys_are_rows ? steps_per_head * x.group : steps_per_head;
  const float scale_log2 = x.scale_log2();
  const auto head_of_step = [&](int64_t step) {
    return keys_are_rows ? row_head * x.group + step / steps_per_head : row_head;
  };
  const auto column_of_step = [&](int64_t step) {
    return columns_begin + (keys_are_rows ? step % steps_per_head : step) * key_tile;
  };

  const auto fetch = [&](int64_t step) {
    const int64_t n = column_of_step(step),
                  column_head = keys_are_rows ? head_of_step(step) : row_head / x.group;
    const int64_t buffer = step % 2 * key_tile * ld;
    fetch_rounded<E, D, key_tile>(
        column_qk + buffer, (keys_are_rows ? x.qs : x.ks).template at<D>(b, column_head, n), columns_end - n);
    fetch_rounded<E, D, key_tile>(column_vdout + buffer,
                                  (keys_are_rows ? x.douts : x.vs).template at<D>(b, column_head, n),
                                  columns_end - n);
    cuda::commit_copies();
  };
  if (!keys_are_rows && static_cast<int>(threadIdx.x) < block_rows) {
    stats[threadIdx.x] = static_cast<int>(threadIdx.x) < num_rows
                             ? x.stats[(b * x.H + row_head) * x.Tq + row_begin + threadIdx.x]
                             : RowStats<float>{infinity<float>, 0.0F};
  }
  WarpAccumulator<1, D / 8> dq_or_dk, dv;  // dv where rows are keys
  dq_or_dk.clear();
  if constexpr (keys_are_rows) dv.clear();
  if (num_steps > 0) {
    fetch_rounded<E, D, block_rows>(
        row_qk, (keys_are_rows ? x.ks : x.qs).template at<D>(b, row_head, row_begin), num_present);
    fetch_rounded<E, D, block_rows>(
        row_vdout, (keys_are_rows ? x.vs : x.douts).template at<D>(b, row_head, row_begin), num_present);
    fetch(0);
  }
  for (int64_t step = 0; step < num_steps; ++step) {
    const int64_t h = head_of_step(step), column_begin = column_of_step(step),
                  buffer = step % 2 * key_tile * ld;
    if (step + 1 < num_steps) {
      fetch(step + 1);
      cuda::wait_for_copies<1>();
    } else {
      cuda::wait_for_copies<0>();
    }
    if (keys_are_rows && static_cast<int>(threadIdx.x) < key_tile) {
      const int64_t i = column_begin + threadIdx.x;
      stats[threadIdx.x] =
          i < columns_end ? x.stats[(b * x.H + h) * x.Tq + i] : RowStats<float>{infinity<float>, 0.0F};
    }
    const int64_t query_begin = keys_are_rows ? column_begin : row_begin,
                  key_begin = keys_are_rows ? row_begin : column_begin;
    if (pairs != Pairs::plain && x.has_dropout) {
      keep_mask.draw(x.dropout, static_cast<int>(min(x.Tq - query_begin, int64_t{64})),
                     static_cast<int>(min(x.Tk - key_begin, int64_t{64})),
                     [&](int i) { return x.dropout_index(b, h, query_begin + i, key_begin); });
    }
    __syncthreads();
    // Products [16 rows of this warp, 64 columns]: scores = q . k and grad_scores = dout . v.
    WarpAccumulator<1, N> scores, grad_scores;
    scores.clear();
    grad_scores.clear();
    warp_dots<D, 1>(thread, row_qk, column_qk + buffer, scores);
    warp_dots<D, 1>(thread, row_vdout, column_vdout + buffer, grad_scores);
    // In place, scores are replaced by the weights after dropout and grad_scores by the gradients of the
    // scaled products.
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = thread.row<1>(0, half);
      // Visible columns of the tile: the queries that see this key, or the keys that this query sees.
      const int visible_begin = keys_are_rows ? queries_not_seeing(x, row_begin + row, column_begin) : 0;
      const int visible_end = !keys_are_rows ? keys_seen(x, row_begin + row, column_begin, columns_end)
                              : row < num_present
                                  ? static_cast<int>(min(columns_end - column_begin, int64_t{key_tile}))
                                  : 0;
#pragma unroll
      for (int n = 0; n < N; ++n) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          const int column = thread.column(n, e), query = keys_are_rows ? column : row,
                    key = keys_are_rows ? row : column;
          PairGradient<float> gradients{0.0F, 0.0F};
          float softcap_grad = 1.0F;
          if (visible_begin <= column && column < visible_end) {
            float score = scores.x[0][n][e] * scale_log2;
            if constexpr (pairs == Pairs::any) {
              score = score_of<float>(x, scale_log2, b, h, query_begin + query, key_begin + key,
                                      scores.x[0][n][e], softcap_grad);
            }
            const float keep = pairs == Pairs::plain ? 1.0F : keep_mask.factor(x, query, key);
            gradients = score_gradient(score, grad_scores.x[0][n][e], keep, stats[query]);
          }
          scores.x[0][n][e] = gradients.weight;
          grad_scores.x[0][n][e] = gradients.grad_score * softcap_grad;
        }
      }
    }
    // dv += weights dout and dk += grad_scores q; or dq += grad_scores k.
    if constexpr (keys_are_rows) warp_gather<D, 1>(thread, scores, column_vdout + buffer, dv);
    warp_gather<D, 1>(thread, grad_scores, column_qk + buffer, dq_or_dk);
    __syncthreads();
  }
  const auto store = [&](const WarpAccumulator<1, D / 8>& sums, const HeadView<float>& gradient,
                         int64_t width, float scale) {
    float* rows = gradient.at(b, row_head, row_begin);
    store_warp_rows(
        thread, sums, width,
        [&](int m, int half) {
          const int row = thread.row<1>(m, half);
          return row < num_rows ? rows + row * gradient.ld : nullptr;
        },
        [&](int, int) { return RowFactors{scale}; });
  };
  if constexpr (keys_are_rows) {
    store(dq_or_dk, x.dks, x.d, x.scale);
    store(dv, x.dvs, x.dv, 1.0F);
  } else {
    store(dq_or_dk, x.dqs, x.d, x.scale);
  }
}

}  // namespace

/// dq, dk and dv with products of rounded factors and sums in f32: rounds q, k, v and dout into rows of D
/// numbers, then launches one block per 64 queries of a head for dq, and one per 64 keys of a key head for dk
/// and dv.
void attention_rounded_back(const AttentionBackTensors& t, const AttentionParams& params) {
  const AttentionScores<float> scores(t.q, t.k, t.v, params);
  const Tensor stats = row_stats<float>(scores, t.out, t.lse, t.dout);
  with_rounded(params.rounding, std::max(t.q.extent(3), t.v.extent(3)), [&]<class E, int D>() {
    const auto rounded = rounded_copies<E>(
        D, {{t.q, params.queries}, {t.k, params.keys}, {t.v, params.keys}, {t.dout, params.queries}});
    const BackCall<E> call{scores,
                           rounded[0],
                           rounded[1],
                           rounded[2],
                           rounded[3],
                           HeadView<float>(t.dq, scores.query_starts),
                           HeadView<float>(t.dk, scores.key_starts),
                           HeadView<float>(t.dv, scores.key_starts),
                           reinterpret_cast<const RowStats<float>*>(stats.data<float>()),
                           DeviceDraw(params.dropout, params.draw)};
    constexpr int bytes = (2 * block_rows + 4 * key_tile) * rounded_ld<E, D> * static_cast<int>(sizeof(E)) +
                          key_tile * static_cast<int>(sizeof(RowStats<float>)) + KeepMask::bytes;
    const auto grid = [&](int64_t heads, int64_t length) {
      return tile_grid(heads * ceil_div(length, block_rows), 1, bytes);
    };
    with_pairs(call, [&]<Pairs pairs>() {
      cuda::run(backward<E, D, /*keys_are_rows=*/false, pairs>, grid(call.B * call.H, call.Tq), call);
      cuda::run(backward<E, D, /*keys_are_rows=*/true, pairs>, grid(call.B * (call.H / call.group), call.Tk),
                call);
    });
  });
}

}  // namespace heed::kernel

// Tiled attention forward on the tensor cores. A block handles 128 queries, 32 per warp, and loops over tiles
// of 64 keys, copying the next tile while it multiplies. Weights stay in registers between the two products.
#include "heed/core/ceil_div.h"
#include "heed/core/kernels/attention/attention_tensor_core_softmax.h"

namespace heed::kernel {
namespace {

constexpr int M = 2;                    // number of fragments of 16 queries of a warp
constexpr int block_rows = 4 * 16 * M;  // queries of the four warps of a block

/// Inputs and outputs of the kernel.
template <class E>
struct ForwardCall : AttentionScores<float> {
  RoundedRows<E> qs, ks, vs;
  HeadView<float> outs;
  LseView<float> lse;
  DeviceDraw dropout;
  float sink_factor;  ///< from a sink in log2 units to the unit of the products
};

/// Blocks that a multiprocessor shall hold, to which the compiler fits their registers; 0: as it sees fit.
template <int D, Pairs pairs>
inline constexpr int least_blocks = D == 32 && pairs == Pairs::plain ? 3 : 0;

/// out[b, h, i, :] = sum_j softmax_j(score_ij) v_j and lse of 128 queries of a head, by one block. Each of
/// its four warps holds 32 queries, with its output_sum [32, D] in registers, and loops over tiles of 64 keys
/// with an online softmax. Two buffers of keys and values take turns.
template <class E, int D, Pairs pairs>
__global__ void __launch_bounds__(cuda::tile_threads, least_blocks<D, pairs>) forward(ForwardCall<E> x) {
  constexpr int ld = rounded_ld<E, D>, N = key_tile / 8;
  E* q_tile = cuda::shared<E>();
  E* k_tiles = q_tile + block_rows * ld;     // two buffers
  E* v_tiles = k_tiles + 2 * key_tile * ld;  // two buffers
  const KeepMask keep_mask{reinterpret_cast<uint8_t*>(v_tiles + 2 * key_tile * ld)};
  const WarpThread thread;
  const int64_t num_tiles = ceil_div(x.Tq, block_rows), head = blockIdx.x / num_tiles, b = head / x.H,
                h = head % x.H;
  const int64_t kv_head = h / x.group, query_begin = (num_tiles - 1 - blockIdx.x % num_tiles) * block_rows;
  const int num_queries = static_cast<int>(min(x.num_queries(b) - query_begin, int64_t{block_rows}));
  if (num_queries <= 0) return;  // past the end of a packed sequence
  const int64_t key_end = x.num_keys_before(b, query_begin + num_queries);
  // Each warp skips keys past the last one that its queries see. The widest rows leave no registers for that.
  constexpr bool skips_keys = D < 128;
  const int64_t warp_key_end =
      16 * M * thread.warp < num_queries ? x.num_keys_before(b, query_begin + 16 * M * (thread.warp + 1)) : 0;
  const float scale_log2 = x.scale_log2();
  // Products are scaled when they become weights: the scale is positive, so it keeps their order.
  const float unit = pairs == Pairs::any ? 1.0F : scale_log2;
  const bool has_dropout = pairs != Pairs::plain && (pairs == Pairs::with_dropout || x.has_dropout);

  const auto fetch_keys = [&](int64_t j) {
    const int64_t buffer = j / key_tile % 2 * key_tile * ld;
    fetch_rounded<E, D, key_tile>(k_tiles + buffer, x.ks.template at<D>(b, kv_head, j), key_end - j);
    fetch_rounded<E, D, key_tile>(v_tiles + buffer, x.vs.template at<D>(b, kv_head, j), key_end - j);
    cuda::commit_copies();
  };
  WarpOnlineSoftmax<M> rows;
  rows.start(thread, pairs == Pairs::any ? x.sink_log2(h) : x.sink_log2(h) * x.sink_factor);
  WarpAccumulator<M, D / 8> output_sum;
  output_sum.clear();
  if (key_end > 0) {
    fetch_rounded<E, D, block_rows>(q_tile, x.qs.template at<D>(b, h, query_begin), int64_t{num_queries});
    fetch_keys(0);
  }
  for (int64_t j = 0; j < key_end; j += key_tile) {
    const int64_t buffer = j / key_tile % 2 * key_tile * ld;
    if (j + key_tile < key_end) {
      fetch_keys(j + key_tile);
      cuda::wait_for_copies<1>();
    } else {
      cuda::wait_for_copies<0>();
    }
    if (has_dropout) {
      keep_mask.draw(x.dropout, num_queries, static_cast<int>(min(key_end - j, int64_t{key_tile})),
                     [&](int i) { return x.dropout_index(b, h, query_begin + i, j); });
    }
    __syncthreads();
    if (!skips_keys || j < warp_key_end) {
      // scores [32 queries of this warp, 64 keys] = q . k.
      WarpAccumulator<M, N> scores;
      scores.clear();
      warp_dots<D, M>(thread, q_tile, k_tiles + buffer, scores);
      // -infinity for masked pairs; scale, softcap and biases where the call has any of these.
      if (pairs == Pairs::any || !skips_keys || j + key_tile > key_end ||
          !x.sees(query_begin, j + key_tile - 1)) {
#pragma unroll
        for (int m = 0; m < M; ++m) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int64_t i = query_begin + thread.row<M>(m, half);
            const int num_seen = keys_seen(x, i, j, key_end);
#pragma unroll
            for (int n = 0; n < N; ++n) {
#pragma unroll
              for (int e = 2 * half; e < 2 * half + 2; ++e) {
                const int key = thread.column(n, e);
                float &s = scores.x[m][n][e], softcap_grad;
                if (key >= num_seen) {
                  s = minus_infinity<float>;
                } else if constexpr (pairs == Pairs::any) {
                  s = score_of<float>(x, scale_log2, b, h, i, j + key, s, softcap_grad);
                }
              }
            }
          }
        }
      }
      // scores become weights after dropout; output_sum [32, D] += weights v.
      rows.scores_to_weights(scores, unit, output_sum, [&](int m, int half) {
        const uint64_t bits = has_dropout ? keep_mask.of(thread.row<M>(m, half)) >> thread.column(0, 0) : 0;
        return [=, scale = x.keep_scale](int n, int e) {
          return !has_dropout ? 1.0F : (bits >> (8 * n + e % 2) & 1) != 0 ? scale : 0.0F;
        };
      });
      warp_gather<D, M>(thread, scores, v_tiles + buffer, output_sum);
    }
    __syncthreads();
  }
  // out = output_sum / row_sum, and lse of each row.
  const int num_rows = static_cast<int>(min(x.num_queries(b) - query_begin, int64_t{block_rows}));
  float* out_rows = x.outs.at(b, h, query_begin);
  float inverse[M][2];
#pragma unroll
  for (int m = 0; m < M; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      RowLse<float> lse;
      inverse[m][half] = rows.finish(m, half, unit, lse);
      const int row = thread.row<M>(m, half);
      if (thread.lane % 4 == 0 && row < num_rows) x.lse.put(head * x.Tq + query_begin + row, lse);
    }
  }
  store_warp_rows(
      thread, output_sum, x.dv,
      [&](int m, int half) {
        const int row = thread.row<M>(m, half);
        return row < num_rows ? out_rows + row * x.outs.ld : nullptr;
      },
      [&](int m, int half) { return RowFactors{inverse[m][half]}; });
}

}  // namespace

/// Attention with products of rounded factors (bf16 or tf32) and sums in f32: rounds q, k and v into rows of
/// D numbers and launches one block per 128 queries of a head.
void attention_rounded(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionParams& params,
                       const Tensor& out, const Tensor& lse) {
  with_rounded(params.rounding, std::max(q.extent(3), v.extent(3)), [&]<class E, int D>() {
    const auto rounded = rounded_copies<E>(D, {{q, params.queries}, {k, params.keys}, {v, params.keys}});
    const AttentionScores<float> scores(q, k, v, params);
    const float scale_log2 = scores.scale_log2();
    // Only a positive scale keeps the order of the scores and can divide sinks; others scale the scores at
    // once.
    const bool scales_late = scale_log2 > 1e-20F;
    const ForwardCall<E> call{scores,
                              rounded[0],
                              rounded[1],
                              rounded[2],
                              HeadView<float>(out, scores.query_starts),
                              LseView<float>(lse, scores.B * scores.H * scores.Tq),
                              DeviceDraw(params.dropout, params.draw),
                              scales_late ? 1.0F / scale_log2 : 1.0F};
    constexpr int bytes =
        (block_rows + 4 * key_tile) * rounded_ld<E, D> * static_cast<int>(sizeof(E)) + 2 * KeepMask::bytes;
    const auto launch = [&]<Pairs pairs>() {
      cuda::run(forward<E, D, pairs>, tile_grid(call.B * call.H * ceil_div(call.Tq, block_rows), 1, bytes),
                call);
    };
    scales_late ? with_pairs(call, launch) : launch.template operator()<Pairs::any>();
  });
}

}  // namespace heed::kernel

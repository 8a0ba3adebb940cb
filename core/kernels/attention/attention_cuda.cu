// Tiled attention forward on a device without rounding. A block handles 64 queries of a head and loops over
// tiles of 64 keys; it copies the next keys while it multiplies weights and values.
#include "heed/core/kernels/attention/attention.h"

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/attention/attention_device.h"
#include "heed/core/kernels/attention/attention_tensor_core_device.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

using cuda::rows_per_thread;
using cuda::tile_rows;

/// out[b, h, i, :] = sum_j softmax_j(score_ij) v_j and lse for 64 queries of a head and D columns of the
/// values, by one block: an online softmax over tiles of 64 keys. Each thread has eight rows of the
/// output_sum [64, D] and of the scores [64, 64]. D is the width of a tile; wider q and k are read in slices
/// of D columns.
template <class T, int D>
__global__ void __launch_bounds__(cuda::tile_threads) forward(DeviceForwardCall<T> x) {
  constexpr int ld = cuda::tile_ld(D), ld_weights = cuda::tile_ld(tile_rows), C = D / 16;
  T* q_tile = cuda::shared<T>();
  T* k_tile = q_tile + cuda::tile_size(D);
  T* v_tile = k_tile + cuda::tile_size(D);
  T* weights_tile = v_tile + cuda::tile_size(D);
  const KeepMask keep_mask{reinterpret_cast<uint8_t*>(weights_tile + cuda::tile_size(tile_rows))};

  const cuda::TileThread thread;
  const int64_t num_tiles = cuda::tiles_of(x.Tq), head = blockIdx.x / num_tiles;
  const int64_t b = head / x.H, h = head % x.H, kv_head = h / x.group;
  // Causal tiles with most keys run first.
  const int64_t query_begin = (num_tiles - 1 - blockIdx.x % num_tiles) * tile_rows;
  const int num_queries = static_cast<int>(min(x.num_queries(b) - query_begin, int64_t{tile_rows}));
  const int64_t column_begin = int64_t{blockIdx.y} * D;
  if (num_queries <= 0) return;  // past the end of a packed sequence
  const int64_t key_end = x.num_keys_before(b, query_begin + num_queries);
  const bool fits_tile = x.d <= D;
  const int depth = static_cast<int>((min(x.d, int64_t{D}) + 3) / 4 * 4);
  const T scale_log2 = x.scale_log2();

  const T *q_rows = x.qs.at(b, h, query_begin), *k_rows = x.ks.at(b, kv_head, 0),
          *v_rows = x.vs.at(b, kv_head, 0) + column_begin;
  const auto fetch_keys = [&](int64_t j) {
    cuda::fetch_tile<T, D>(k_tile, k_rows + j * x.ks.ld, x.ks.ld, key_end - j, x.d);
    cuda::commit_copies();
  };
  OnlineSoftmax<T> rows;
  rows.start(thread, x.sink_log2(h));
  T output_sum[rows_per_thread][C];
  cuda::clear(output_sum);
  if (fits_tile && key_end > 0) {
    cuda::fetch_tile<T, D>(q_tile, q_rows, x.qs.ld, num_queries, x.d);
    fetch_keys(0);
  }
  for (int64_t j = 0; j < key_end; j += tile_rows) {
    const int64_t num_keys = min(key_end - j, int64_t{tile_rows});
    // scores [64 queries, 64 keys] = q . k; the values are copied meanwhile.
    T scores[rows_per_thread][4];
    cuda::clear(scores);
    cuda::fetch_tile<T, D>(v_tile, v_rows + j * x.vs.ld, x.vs.ld, num_keys, x.dv - column_begin);
    cuda::commit_copies();
    if (x.has_dropout) {
      keep_mask.draw(x.dropout, num_queries, static_cast<int>(num_keys),
                     [&](int i) { return x.dropout_index(b, h, query_begin + i, j); });
    }
    if (fits_tile) {
      cuda::wait_for_copies<1>();
      __syncthreads();
      cuda::dots<T, ld, ld>(thread, q_tile, k_tile, depth, scores);
    } else {
      cuda::dots_of_slices<T, D>(
          thread, q_tile, k_tile, x.d,
          [&](int64_t c) { cuda::fetch_tile<T, D>(q_tile, q_rows + c, x.qs.ld, num_queries, x.d - c); },
          [&](int64_t c) {
            cuda::fetch_tile<T, D>(k_tile, k_rows + j * x.ks.ld + c, x.ks.ld, num_keys, x.d - c);
          },
          scores);
    }
    // Scale, softcap and biases; -infinity for masked pairs.
#pragma unroll
    for (int r = 0; r < rows_per_thread; ++r) {
      const int64_t i = query_begin + thread.row(r);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const int64_t key = j + thread.key(n);
        T softcap_grad;
        const bool is_pair = thread.row(r) < num_queries && key < key_end && x.sees(i, key);
        scores[r][n] =
            is_pair ? score_of(x, scale_log2, b, h, i, key, scores[r][n], softcap_grad) : minus_infinity<T>;
      }
    }
    softmax_tile(thread, x, keep_mask, rows, scores, output_sum, weights_tile);
    cuda::wait_for_copies<0>();
    __syncthreads();
    if (fits_tile && j + tile_rows < key_end) fetch_keys(j + tile_rows);
    // output_sum [64, D] += weights v.
    cuda::gather<T, ld_weights, ld>(thread, weights_tile, v_tile, tile_rows, output_sum);
    __syncthreads();
  }
  // out = output_sum / row_sum, and lse of each row.
  T* out_rows = x.outs.at(b, h, query_begin) + column_begin;
#pragma unroll
  for (int r = 0; r < rows_per_thread; ++r) {
    RowLse<T> lse;
    const T inverse = rows.finish(r, lse);
#pragma unroll
    for (int n = 0; n < C; ++n) output_sum[r][n] *= inverse;
    if (thread.row(r) >= num_queries) continue;
    cuda::put_columns(thread, output_sum[r], x.dv - column_begin, out_rows + thread.row(r) * x.outs.ld);
    if (thread.x == 0 && column_begin == 0) x.lse.put(head * x.Tq + query_begin + thread.row(r), lse);
  }
}

/// Launches `forward`: one block per 64 queries of a head and D columns of the values.
template <class T, int D>
void launch(const DeviceForwardCall<T>& call) {
  const int64_t blocks = call.B * call.H * cuda::tiles_of(call.Tq),
                slices = std::max<int64_t>(1, ceil_div(call.dv, D));
  const int bytes = (3 * cuda::tile_size(D) + cuda::tile_size(tile_rows)) * static_cast<int>(sizeof(T));
  cuda::run(forward<T, D>, tile_grid(blocks, slices, bytes + KeepMask::bytes), call);
}

}  // namespace

/// out and lse of Attention: by few_queries_attention() for few queries, on the tensor cores where f32
/// products may be rounded, else with unrounded products.
void Attention::cuda(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionParams& params,
                     const Tensor& out, const Tensor& lse) {
  visit_float("attention", q.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const DeviceForwardCall<T> call(q, k, v, params, out, lse);
    Count::add(attention_flops(call, Direction::forward));
    if (has_few_queries(call, params)) return few_queries_attention(call);
    if (std::is_same_v<T, float> && takes_tensor_cores(call, params.rounding))
      return attention_rounded(q, k, v, params, out, lse);
    visit_tile_width<T>(std::max(call.d, call.dv),
                        [&](auto width) { launch<T, decltype(width)::value>(call); });
  });
}

}  // namespace heed::kernel

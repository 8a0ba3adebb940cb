// Tiled attention backward on a device without rounding: one kernel computes dq per tile of queries, another
// dk and dv per tile of keys, with keys as rows of tiles. No two blocks add to one number, so sums have a
// fixed order.
#include "heed/core/ceil_div.h"
#include "heed/core/kernels/attention/attention_backward_device.h"
#include "heed/core/kernels/attention/attention_tensor_core_device.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

using cuda::rows_per_thread;
using cuda::tile_rows;

/// Inputs and outputs of the backward kernels of dense attention without tensor cores.
template <class T>
struct BackCall : AttentionScores<T> {
  HeadView<const T> qs, ks, vs, douts;
  HeadView<T> dqs, dks, dvs;
  DeviceDraw dropout;
  const RowStats<T>* stats = nullptr;  ///< [B, H, Tq]
  /// Gradients of scores summed over i - j, [B, H, tiles of queries, Tk + 63]; null: drelative is not wanted.
  T* diagonals = nullptr;

  BackCall(const AttentionBackTensors& t, const AttentionParams& params)
      : AttentionScores<T>(t.q, t.k, t.v, params),
        qs(t.q, this->query_starts),
        ks(t.k, this->key_starts),
        vs(t.v, this->key_starts),
        douts(t.dout, this->query_starts),
        dqs(t.dq, this->query_starts),
        dks(t.dk, this->key_starts),
        dvs(t.dv, this->key_starts),
        dropout(params.dropout, params.draw) {}
};

/// dq_i = scale sum_j ds_ij k_j for 64 queries of a head and D columns, by one block that loops over tiles of
/// 64 keys. ds_ij is the gradient of the scaled product; with `diagonals` also its sums by i - j. Each thread
/// has eight rows of dq [64, D] and of the scores [64, 64].
template <class T, int D>
__global__ void __launch_bounds__(cuda::tile_threads) back_queries(BackCall<T> x) {
  constexpr int ld = cuda::tile_ld(D), ld_pairs = cuda::tile_ld(tile_rows), C = D / 16;
  T* q_tile = cuda::shared<T>();
  T* dout_tile = q_tile + cuda::tile_size(D);
  T* k_tile = dout_tile + cuda::tile_size(D);
  T* v_tile = k_tile + cuda::tile_size(D);
  T* pair_tile = v_tile + cuda::tile_size(D);
  const KeepMask keep_mask{reinterpret_cast<uint8_t*>(pair_tile + cuda::tile_size(tile_rows))};

  const cuda::TileThread thread;
  const int64_t num_tiles = cuda::tiles_of(x.Tq), head = blockIdx.x / num_tiles;
  const int64_t b = head / x.H, h = head % x.H, kv_head = h / x.group;
  const int64_t query_begin = (num_tiles - 1 - blockIdx.x % num_tiles) * tile_rows;
  const int64_t num_queries = min(x.num_queries(b) - query_begin, int64_t{tile_rows}),
                column_begin = int64_t{blockIdx.y} * D;
  if (num_queries <= 0) return;  // past the end of a packed sequence
  const int64_t key_end = x.num_keys_before(b, query_begin + num_queries);
  const bool fits_tile = x.d <= D && x.dv <= D;
  const T scale_log2 = x.scale_log2();

  const auto fetch_q = [&](int64_t c) {
    cuda::fetch_tile<T, D>(q_tile, x.qs.at(b, h, query_begin) + c, x.qs.ld, num_queries, x.d - c);
  };
  const auto fetch_dout = [&](int64_t c) {
    cuda::fetch_tile<T, D>(dout_tile, x.douts.at(b, h, query_begin) + c, x.douts.ld, num_queries, x.dv - c);
  };
  const auto fetch_k = [&](int64_t j, int64_t c) {
    cuda::fetch_tile<T, D>(k_tile, x.ks.at(b, kv_head, j) + c, x.ks.ld, key_end - j, x.d - c);
  };
  const auto fetch_v = [&](int64_t j, int64_t c) {
    cuda::fetch_tile<T, D>(v_tile, x.vs.at(b, kv_head, j) + c, x.vs.ld, key_end - j, x.dv - c);
  };

  RowStats<T> stats[rows_per_thread];
#pragma unroll
  for (int r = 0; r < rows_per_thread; ++r) {
    const int64_t i = query_begin + thread.row(r);
    stats[r] = thread.row(r) < num_queries ? x.stats[head * x.Tq + i] : RowStats<T>{infinity<T>, T(0)};
  }
  T* diagonals = x.diagonals == nullptr || column_begin > 0
                     ? nullptr
                     : x.diagonals + (head * num_tiles + query_begin / tile_rows) * (x.Tk + tile_rows - 1);
  T dq[rows_per_thread][C];
  cuda::clear(dq);
  if (fits_tile && key_end > 0) {
    fetch_q(0);
    fetch_dout(0);
    fetch_k(0, 0);
    fetch_v(0, 0);
    cuda::commit_copies();
  }
  for (int64_t j = 0; j < key_end; j += tile_rows) {
    T scores[rows_per_thread][4], grad_scores[rows_per_thread][4];
    cuda::clear(scores);
    cuda::clear(grad_scores);
    // The dropout mask of the tile, and its products [64 queries, 64 keys]: scores = q . k, grad_scores =
    // dout . v.
    if (x.has_dropout) {
      keep_mask.draw(x.dropout, static_cast<int>(num_queries),
                     static_cast<int>(min(key_end - j, int64_t{tile_rows})),
                     [&](int i) { return x.dropout_index(b, h, query_begin + i, j); });
    }
    if (fits_tile) {
      cuda::wait_for_copies<0>();
      __syncthreads();
      cuda::dots<T, ld, ld>(thread, q_tile, k_tile, static_cast<int>((x.d + 3) / 4 * 4), scores);
      cuda::dots<T, ld, ld>(thread, dout_tile, v_tile, static_cast<int>((x.dv + 3) / 4 * 4), grad_scores);
    } else {
      cuda::dots_of_slices<T, D>(
          thread, q_tile, k_tile, x.d, fetch_q, [&](int64_t c) { fetch_k(j, c); }, scores);
      cuda::dots_of_slices<T, D>(
          thread, dout_tile, v_tile, x.dv, fetch_dout, [&](int64_t c) { fetch_v(j, c); }, grad_scores);
      fetch_k(j, column_begin);
      cuda::commit_copies();
      cuda::wait_for_copies<0>();
    }
    // scores [64 queries, 64 keys] are replaced in place by the gradients of the scaled products.
#pragma unroll
    for (int r = 0; r < rows_per_thread; ++r) {
      const int64_t i = query_begin + thread.row(r);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const int64_t key = j + thread.key(n);
        const bool is_pair = thread.row(r) < num_queries && key < key_end && x.sees(i, key);
        T softcap_grad = T(0), grad_score = T(0);
        if (is_pair) {
          const T score = score_of(x, scale_log2, b, h, i, key, scores[r][n], softcap_grad);
          const T keep = keep_mask.factor(x, thread.row(r), thread.key(n));
          grad_score = score_gradient(score, grad_scores[r][n], keep, stats[r]).grad_score;
        }
        scores[r][n] = grad_score * softcap_grad;
      }
    }
    cuda::put_map(thread, scores, pair_tile);
    __syncthreads();
    if (fits_tile && j + tile_rows < key_end) fetch_v(j + tile_rows, 0);
    // One thread per diagonal i - j of the tile sums the gradients along it.
    if (diagonals != nullptr && threadIdx.x < 2 * tile_rows - 1) {
      const int diagonal = static_cast<int>(threadIdx.x) - (tile_rows - 1);  // i - j within the tile
      T sum = T(0);
      for (int i = max(diagonal, 0); i < min(diagonal, 0) + tile_rows; ++i)
        sum += pair_tile[i * ld_pairs + i - diagonal];
      const int64_t n = diagonal - j + x.Tk - 1;  // negative: past the last key, zero gradients
      if (n >= 0) diagonals[n] += sum;
    }
    // dq [64 queries, D] += scores k.
    cuda::gather<T, ld_pairs, ld>(thread, pair_tile, k_tile, tile_rows, dq);
    __syncthreads();
    if (fits_tile && j + tile_rows < key_end) {
      fetch_k(j + tile_rows, 0);
      cuda::commit_copies();
    }
  }
#pragma unroll
  for (int r = 0; r < rows_per_thread; ++r) {
#pragma unroll
    for (int n = 0; n < C; ++n) dq[r][n] *= x.scale;
    if (thread.row(r) < num_queries)
      cuda::put_columns(thread, dq[r], x.d - column_begin,
                        x.dqs.at(b, h, query_begin + thread.row(r)) + column_begin);
  }
}

/// dk_j = scale sum_i ds_ij q_i and dv_j = sum_i w_ij dout_i for 64 keys and D columns: w_ij are weights
/// after dropout, ds_ij the gradients of scaled products. One block per 64 keys of a key head (b, h / group)
/// loops over tiles of 64 queries of all heads that share it. Each thread has eight rows of dk, dv [64, D]
/// and of the scores [64 keys, 64 queries].
template <class T, int D>
__global__ void __launch_bounds__(cuda::tile_threads) back_keys(BackCall<T> x) {
  constexpr int ld = cuda::tile_ld(D), ld_pairs = cuda::tile_ld(tile_rows), C = D / 16;
  T* k_tile = cuda::shared<T>();
  T* v_tile = k_tile + cuda::tile_size(D);
  T* q_tile = v_tile + cuda::tile_size(D);
  T* dout_tile = q_tile + cuda::tile_size(D);
  T* pair_tile = dout_tile + cuda::tile_size(D);
  const KeepMask keep_mask{reinterpret_cast<uint8_t*>(pair_tile + cuda::tile_size(tile_rows))};

  const cuda::TileThread thread;
  const int64_t num_tiles = cuda::tiles_of(x.Tk), key_head = blockIdx.x / num_tiles, kv_heads = x.H / x.group;
  const int64_t b = key_head / kv_heads, kv_head = key_head % kv_heads;
  const int64_t key_begin = blockIdx.x % num_tiles * tile_rows;  // early keys have the most queries
  const int64_t num_rows = min(x.key_rows(b) - key_begin, int64_t{tile_rows}),
                column_begin = int64_t{blockIdx.y} * D;
  if (num_rows <= 0) return;  // past the end of a packed sequence
  const int64_t num_keys = within(x.num_keys(b) - key_begin, 0, num_rows);
  const int64_t query_begin = x.first_query_of(key_begin) / tile_rows * tile_rows,
                query_end = x.num_queries(b);
  const int64_t steps_per_head =
      num_keys == 0 || query_begin >= query_end ? 0 : cuda::tiles_of(query_end - query_begin);
  const bool fits_tile = x.d <= D && x.dv <= D;
  const T scale_log2 = x.scale_log2();

  const auto fetch_k = [&](int64_t c) {
    cuda::fetch_tile<T, D>(k_tile, x.ks.at(b, kv_head, key_begin) + c, x.ks.ld, num_keys, x.d - c);
  };
  const auto fetch_v = [&](int64_t c) {
    cuda::fetch_tile<T, D>(v_tile, x.vs.at(b, kv_head, key_begin) + c, x.vs.ld, num_keys, x.dv - c);
  };
  const auto head_of_step = [&](int64_t step) { return kv_head * x.group + step / steps_per_head; };
  const auto first_query_of_step = [&](int64_t step) {
    return query_begin + step % steps_per_head * tile_rows;
  };
  const auto fetch_q = [&](int64_t step, int64_t c) {
    const int64_t i = first_query_of_step(step);
    cuda::fetch_tile<T, D>(q_tile, x.qs.at(b, head_of_step(step), i) + c, x.qs.ld, query_end - i, x.d - c);
  };
  const auto fetch_dout = [&](int64_t step, int64_t c) {
    const int64_t i = first_query_of_step(step);
    cuda::fetch_tile<T, D>(dout_tile, x.douts.at(b, head_of_step(step), i) + c, x.douts.ld, query_end - i,
                           x.dv - c);
  };

  T dk[rows_per_thread][C], dv[rows_per_thread][C];
  cuda::clear(dk);
  cuda::clear(dv);
  const int64_t num_steps = steps_per_head * x.group;
  if (fits_tile && num_steps > 0) {
    fetch_k(0);
    fetch_v(0);
    fetch_q(0, 0);
    fetch_dout(0, 0);
    cuda::commit_copies();
  }
  for (int64_t step = 0; step < num_steps; ++step) {
    const int64_t h = head_of_step(step), i = first_query_of_step(step),
                  num_queries = min(query_end - i, int64_t{tile_rows});
    T scores[rows_per_thread][4], grad_scores[rows_per_thread][4];
    cuda::clear(scores);
    cuda::clear(grad_scores);
    RowStats<T> stats[4];
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int64_t query = i + thread.key(n);
      stats[n] = query < query_end ? x.stats[(b * x.H + h) * x.Tq + query] : RowStats<T>{infinity<T>, T(0)};
    }
    // The dropout mask of the tile, and its products [64 keys, 64 queries]: scores = k . q, grad_scores = v .
    // dout.
    if (x.has_dropout) {
      keep_mask.draw(x.dropout, static_cast<int>(num_queries), static_cast<int>(num_keys),
                     [&](int query) { return x.dropout_index(b, h, i + query, key_begin); });
    }
    if (fits_tile) {
      cuda::wait_for_copies<0>();
      __syncthreads();
      cuda::dots<T, ld, ld>(thread, k_tile, q_tile, static_cast<int>((x.d + 3) / 4 * 4), scores);
      cuda::dots<T, ld, ld>(thread, v_tile, dout_tile, static_cast<int>((x.dv + 3) / 4 * 4), grad_scores);
    } else {
      cuda::dots_of_slices<T, D>(
          thread, k_tile, q_tile, x.d, fetch_k, [&](int64_t c) { fetch_q(step, c); }, scores);
      cuda::dots_of_slices<T, D>(
          thread, v_tile, dout_tile, x.dv, fetch_v, [&](int64_t c) { fetch_dout(step, c); }, grad_scores);
      fetch_q(step, column_begin);
      fetch_dout(step, column_begin);
      cuda::commit_copies();
      cuda::wait_for_copies<0>();
    }
    // In place, scores are replaced by the weights after dropout and grad_scores by the gradients of the
    // scaled products.
#pragma unroll
    for (int r = 0; r < rows_per_thread; ++r) {
      const int64_t key = thread.row(r);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const int64_t query = i + thread.key(n);
        const bool is_pair = key < num_keys && query < query_end && x.sees(query, key_begin + key);
        T softcap_grad = T(0);
        PairGradient<T> gradients{T(0), T(0)};
        if (is_pair) {
          const T score = score_of(x, scale_log2, b, h, query, key_begin + key, scores[r][n], softcap_grad);
          const T keep = keep_mask.factor(x, thread.key(n), thread.row(r));
          gradients = score_gradient(score, grad_scores[r][n], keep, stats[n]);
        }
        scores[r][n] = gradients.weight;
        grad_scores[r][n] = gradients.grad_score * softcap_grad;
      }
    }
    // dv [64, D] += weights dout and dk [64, D] += grad_scores q; the next queries are copied meanwhile.
    const bool prefetches = fits_tile && step + 1 < num_steps;
    cuda::put_map(thread, scores, pair_tile);
    __syncthreads();
    cuda::gather<T, ld_pairs, ld>(thread, pair_tile, dout_tile, tile_rows, dv);
    __syncthreads();
    if (prefetches) fetch_dout(step + 1, 0);
    cuda::put_map(thread, grad_scores, pair_tile);
    __syncthreads();
    cuda::gather<T, ld_pairs, ld>(thread, pair_tile, q_tile, tile_rows, dk);
    __syncthreads();
    if (prefetches) {
      fetch_q(step + 1, 0);
      cuda::commit_copies();
    }
  }
#pragma unroll
  for (int r = 0; r < rows_per_thread; ++r) {
    const int64_t key = thread.row(r);
    if (key >= num_rows) continue;
#pragma unroll
    for (int n = 0; n < C; ++n) dk[r][n] *= x.scale;
    cuda::put_columns(thread, dk[r], x.d - column_begin,
                      x.dks.at(b, kv_head, key_begin + key) + column_begin);
    cuda::put_columns(thread, dv[r], x.dv - column_begin,
                      x.dvs.at(b, kv_head, key_begin + key) + column_begin);
  }
}

/// drelative [H, Tq + Tk - 1] = sums of `diagonals` over batch rows and tiles of queries, in order. One
/// thread per entry.
template <class T>
__global__ void sum_diagonals(AttentionShape x, const T* diagonals, T* drelative) {
  const int64_t num_diagonals = x.Tq + x.Tk - 1, num_tiles = cuda::tiles_of(x.Tq),
                tile_diagonals = x.Tk + tile_rows - 1, entry = cuda::global_thread();
  if (entry >= x.H * num_diagonals) return;
  const int64_t h = entry / num_diagonals, diagonal = entry % num_diagonals;
  T sum = T(0);
  for (int64_t b = 0; b < x.B; ++b) {
    for (int64_t tile = 0; tile < num_tiles; ++tile) {
      const int64_t n = diagonal - tile * tile_rows;
      if (n >= 0 && n < tile_diagonals)
        sum += diagonals[((b * x.H + h) * num_tiles + tile) * tile_diagonals + n];
    }
  }
  drelative[entry] = sum;
}

/// Launches `back_queries` with one block per 64 queries of a head and D columns, then `back_keys` with one
/// per 64 keys of a key head and D columns.
template <class T, int D>
void launch(const BackCall<T>& call) {
  const int elements = 4 * cuda::tile_size(D) + cuda::tile_size(tile_rows),
            bytes = elements * static_cast<int>(sizeof(T)) + KeepMask::bytes;
  const int64_t query_tiles = call.B * call.H * cuda::tiles_of(call.Tq),
                key_tiles = call.B * (call.H / call.group) * cuda::tiles_of(call.Tk);
  const auto slices = [](int64_t width) { return std::max<int64_t>(1, ceil_div(width, D)); };
  cuda::run(back_queries<T, D>, tile_grid(query_tiles, slices(call.d), bytes), call);
  cuda::run(back_keys<T, D>, tile_grid(key_tiles, slices(std::max(call.d, call.dv)), bytes), call);
}

/// dq, dk and dv with unrounded products: dq by one block per 64 queries of a head, then dk and dv by one
/// block per 64 keys of a key head. drelative is the sum of the diagonals that the first kernel writes.
template <class T>
void backward(const AttentionBackTensors& t, const AttentionParams& params) {
  BackCall<T> call(t, params);
  const Tensor stats = row_stats<T>(call, t.out, t.lse, t.dout);
  call.stats = reinterpret_cast<const RowStats<T>*>(stats.data<T>());
  Tensor diagonals;
  if (t.drelative) {
    const int64_t num_tiles = call.B * call.H * cuda::tiles_of(call.Tq);
    diagonals = Tensor::zeros(Shape{num_tiles, call.Tk + tile_rows - 1}, t.q.dtype(), t.q.device());
    call.diagonals = diagonals.data<T>();
  }
  visit_tile_width<T>(std::max(call.d, call.dv),
                      [&](auto width) { launch<T, decltype(width)::value>(call); });
  if (!t.drelative) return;
  const int64_t entries = call.H * (call.Tq + call.Tk - 1);
  cuda::run(sum_diagonals<T>, cuda::block_per_row(ceil_div(entries, cuda::block)),
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
    Count::add(attention_flops(call, Direction::backward));
    if (std::is_same_v<T, float> && !t.drelative && takes_tensor_cores(call, params.rounding)) {
      attention_rounded_back(t, params);
      return;
    }
    backward<T>(t, params);
  });
}

}  // namespace heed::kernel

// Pattern attention backward on a device: dq by the groups of the plan, dk and dv by the groups of the
// transposed pattern's plan, so no two blocks add to one number.
#include "heed/core/ceil_div.h"
#include "heed/core/kernels/attention/attention_backward_device.h"
#include "heed/core/kernels/attention/pattern_attention_tensor_core_device.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

using cuda::rows_per_thread;
using cuda::tile_rows;

/// Inputs and outputs of the backward kernel.
template <class T>
struct BackCall : DevicePatternAttentionCall<T> {
  using DevicePatternAttentionCall<T>::DevicePatternAttentionCall;
  HeadView<const T> douts;
  HeadView<T> dqs, dks, dvs;
  const RowStats<T>* stats = nullptr;  ///< [B, H, Tq]
};

/// gradient [width] = scale sum for this thread's columns of a row, or += scale sum in a later pass.
template <class T, int C>
__device__ void put_sums(const cuda::TileThread& thread, T (&sum)[C], T scale, bool is_later_pass,
                         int64_t width, T* gradient) {
#pragma unroll
  for (int n = 0; n < C; ++n) {
    const int c = thread.column<C>(n);
    sum[n] *= scale;
    if (is_later_pass && c < width) sum[n] += gradient[c];
  }
  cuda::put_columns(thread, sum, width, gradient);
}

/// Gradients of one group of a head: with rows as queries and columns as keys (`keys_are_rows` false) dq,
/// with rows as keys and columns as queries dk and dv. One block holds the group, up to 64 rows, and loops
/// over its steps of up to 64 columns, for D columns of the gradients. Each thread has eight rows.
template <class T, int D, bool keys_are_rows>
__global__ void __launch_bounds__(cuda::tile_threads) backward(BackCall<T> x) {
  constexpr int ld = cuda::tile_ld(D), ld_pairs = cuda::tile_ld(tile_rows), C = D / 16;
  T* row_qk = cuda::shared<T>();                     // q, or k
  T* row_vdout = row_qk + cuda::tile_size(D);        // dout, or v
  T* column_qk = row_vdout + cuda::tile_size(D);     // k, or q
  T* column_vdout = column_qk + cuda::tile_size(D);  // v, or dout
  T* pair_tile = column_vdout + cuda::tile_size(D);
  const KeepMask keep_mask{reinterpret_cast<uint8_t*>(pair_tile + cuda::tile_size(tile_rows))};
  PlanTile tile(keep_mask.byte + KeepMask::bytes);

  const cuda::TileThread thread;
  const int64_t head = blockIdx.x / x.plan.max_groups, b = head / x.H, h = head % x.H;
  const BlockPlan::Group* group = x.plan.group(h, x.pass, blockIdx.x % x.plan.max_groups);
  if (group == nullptr) return;
  const int64_t column_begin = int64_t{blockIdx.y} * D, key_end = x.num_keys(b);
  const bool fits_tile = x.d <= D && x.dv <= D;
  const T scale_log2 = x.scale_log2();
  tile.load_rows(x.plan.queries + group->queries, group->count);
  __syncthreads();

  const HeadView<const T>&row_qk_heads = keys_are_rows ? x.ks : x.qs,
                       &row_vdout_heads = keys_are_rows ? x.vs : x.douts,
                       &column_qk_heads = keys_are_rows ? x.qs : x.ks,
                       &column_vdout_heads = keys_are_rows ? x.douts : x.vs;
  const RowStats<T>* stats = x.stats + head * x.Tq;
  // Copies the listed rows of a head, from column c on; keys past the key length become zeros.
  const auto fetch_listed = [&](T* to_tile, const HeadView<const T>& heads, const int32_t* index, int count,
                                bool are_keys, int64_t width, int64_t c) {
    const T* head_rows = heads.at(b, h, 0);
    cuda::fetch_tile<T, D>(to_tile, static_cast<int>(min(width - c, int64_t{D})), head_rows, [=](int n) {
      const bool is_valid = n < count && (!are_keys || index[n] < key_end);
      return is_valid ? head_rows + index[n] * heads.ld + c : nullptr;
    });
  };
  const auto fetch_rows = [&](T* to_tile, const HeadView<const T>& heads, int64_t width, int64_t c) {
    fetch_listed(to_tile, heads, tile.row, tile.rows, keys_are_rows, width, c);
  };
  const auto fetch_columns = [&](T* to_tile, const HeadView<const T>& heads, int64_t width, int64_t c) {
    fetch_listed(to_tile, heads, tile.column, tile.columns, !keys_are_rows, width, c);
  };
  T dq_or_dk[rows_per_thread][C], dv[rows_per_thread][C];  // dv where rows are keys
  cuda::clear(dq_or_dk);
  if constexpr (keys_are_rows) cuda::clear(dv);
  if (fits_tile && group->first_step < group->last_step) {
    fetch_rows(row_qk, row_qk_heads, x.d, 0);
    fetch_rows(row_vdout, row_vdout_heads, x.dv, 0);
  }
  for (int64_t s = group->first_step; s < group->last_step; ++s) {
    const BlockPlan::Step step = x.plan.steps[s];
    if (!keys_are_rows && x.plan.keys[step.keys] >= key_end) break;
    tile.load_columns(x.plan.keys + step.keys, step.count);
    __syncthreads();
    // Products of the tile [rows, columns]: scores = q . k and grad_scores = dout . v.
    T scores[rows_per_thread][4], grad_scores[rows_per_thread][4];
    cuda::clear(scores);
    cuda::clear(grad_scores);
    if (x.has_dropout) {
      // The mask is [query, key], whichever of them are rows.
      keep_mask.draw(x.dropout, keys_are_rows ? tile.columns : tile.rows,
                     keys_are_rows ? tile.rows : tile.columns, [&](int i, int j) {
                       return keys_are_rows ? x.dropout_index(b, h, tile.column[i], tile.row[j])
                                            : x.dropout_index(b, h, tile.row[i], tile.column[j]);
                     });
    }
    uint64_t pair_bits[rows_per_thread];
    load_pairs(thread, x.plan, step, tile.rows, pair_bits);
    if (fits_tile) {
      fetch_columns(column_qk, column_qk_heads, x.d, 0);
      fetch_columns(column_vdout, column_vdout_heads, x.dv, 0);
      cuda::commit_copies();
      cuda::wait_for_copies<0>();
      __syncthreads();
      cuda::dots<T, ld, ld>(thread, row_qk, column_qk, static_cast<int>((x.d + 3) / 4 * 4), scores);
      cuda::dots<T, ld, ld>(thread, row_vdout, column_vdout, static_cast<int>((x.dv + 3) / 4 * 4),
                            grad_scores);
    } else {
      cuda::dots_of_slices<T, D>(
          thread, row_qk, column_qk, x.d, [&](int64_t c) { fetch_rows(row_qk, row_qk_heads, x.d, c); },
          [&](int64_t c) { fetch_columns(column_qk, column_qk_heads, x.d, c); }, scores);
      cuda::dots_of_slices<T, D>(
          thread, row_vdout, column_vdout, x.dv,
          [&](int64_t c) { fetch_rows(row_vdout, row_vdout_heads, x.dv, c); },
          [&](int64_t c) { fetch_columns(column_vdout, column_vdout_heads, x.dv, c); }, grad_scores);
      fetch_columns(column_qk, column_qk_heads, x.d, column_begin);
      if (keys_are_rows) fetch_columns(column_vdout, column_vdout_heads, x.dv, column_begin);
      cuda::commit_copies();
      cuda::wait_for_copies<0>();
    }
    // In place, scores are replaced by the weights after dropout and grad_scores by the gradients of the
    // scaled products.
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int j = thread.key(n);
      const bool is_valid = j < tile.columns && (keys_are_rows || tile.column[j] < key_end);
#pragma unroll
      for (int r = 0; r < rows_per_thread; ++r) {
        const int i = thread.row(r);
        const bool is_pair = is_valid && i < tile.rows && ((pair_bits[r] >> j) & 1) != 0 &&
                             (!keys_are_rows || tile.row[i] < key_end);
        PairGradient<T> gradients{T(0), T(0)};
        if (is_pair) {
          const T keep = keep_mask.factor(x, keys_are_rows ? j : i, keys_are_rows ? i : j);
          gradients = score_gradient(rounded_product(scores[r][n], scale_log2), grad_scores[r][n], keep,
                                     stats[keys_are_rows ? tile.column[j] : tile.row[i]]);
        }
        scores[r][n] = gradients.weight;
        grad_scores[r][n] = gradients.grad_score;
      }
    }
    // dv += weights dout and dk += grad_scores q; or dq += grad_scores k.
    if constexpr (keys_are_rows) {
      cuda::put_map(thread, scores, pair_tile);
      __syncthreads();
      cuda::gather<T, ld_pairs, ld>(thread, pair_tile, column_vdout, tile_rows, dv);
      __syncthreads();
    }
    cuda::put_map(thread, grad_scores, pair_tile);
    __syncthreads();
    cuda::gather<T, ld_pairs, ld>(thread, pair_tile, column_qk, tile_rows, dq_or_dk);
    __syncthreads();
  }
  cuda::commit_copies();
  cuda::wait_for_copies<0>();
  const HeadView<T>& grad_heads = keys_are_rows ? x.dks : x.dqs;
#pragma unroll
  for (int r = 0; r < rows_per_thread; ++r) {
    if (thread.row(r) >= tile.rows) continue;
    const int64_t i = tile.row[thread.row(r)];
    put_sums(thread, dq_or_dk[r], x.scale, x.pass > 0, x.d - column_begin,
             grad_heads.at(b, h, i) + column_begin);
    if constexpr (keys_are_rows)
      put_sums(thread, dv[r], T(1), x.pass > 0, x.dv - column_begin, x.dvs.at(b, h, i) + column_begin);
  }
}

/// Launches `backward` for each pass of the plan in turn: one block per group of a head and D columns. Later
/// passes add to the gradients of the earlier ones.
template <bool keys_are_rows, class T, int D>
void launch_passes(BackCall<T> call) {
  const int elements = 4 * cuda::tile_size(D) + cuda::tile_size(tile_rows),
            bytes = elements * static_cast<int>(sizeof(T)) + KeepMask::bytes + PlanTile::bytes;
  const int64_t width = keys_are_rows ? std::max(call.d, call.dv) : call.d,
                slices = std::max<int64_t>(1, ceil_div(width, D));
  for (call.pass = 0; call.pass < call.plan.passes; ++call.pass) {
    cuda::run(backward<T, D, keys_are_rows>, tile_grid(call.B * call.H * call.plan.max_groups, slices, bytes),
              call);
  }
}

template <bool keys_are_rows, class T>
void launch(const BackCall<T>& call) {
  visit_tile_width<T>(std::max(call.d, call.dv),
                      [&](auto width) { launch_passes<keys_are_rows, T, decltype(width)::value>(call); });
}

}  // namespace

/// Gradients of PatternAttention: on the tensor cores where f32 products may be rounded; else dq by the
/// groups of the plan, then dk and dv by the groups of the transposed pattern's plan.
void PatternAttentionBack::cuda(const AttentionBackTensors& t, const PatternParams& params) {
  visit_float("pattern_attention", t.q.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const PlanOnDevice& plan = plan_on_device(*params.pattern);
    BackCall<T> call(t.q, t.k, t.v, params, plan.straight);
    Count::add(pattern_attention_flops(call, *params.pattern, Direction::backward));
    if (std::is_same_v<T, float> && takes_tensor_cores(call, params.rounding))
      return pattern_attention_rounded_back(t, params);
    const Tensor stats = row_stats<T>(call, t.out, t.lse, t.dout);
    call.stats = reinterpret_cast<const RowStats<T>*>(stats.data<T>());
    call.douts = HeadView<const T>(t.dout);
    call.dqs = HeadView<T>(t.dq);
    call.dks = HeadView<T>(t.dk);
    call.dvs = HeadView<T>(t.dv);
    launch</*keys_are_rows=*/false>(call);
    call.plan = plan.transposed;
    launch</*keys_are_rows=*/true>(call);
  });
}

}  // namespace heed::kernel

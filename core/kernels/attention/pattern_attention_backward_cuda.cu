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

template <class T>
struct BackCall : DevicePatternAttentionCall<T> {
  using DevicePatternAttentionCall<T>::DevicePatternAttentionCall;
  HeadView<const T> douts;
  HeadView<T> dqs, dks, dvs;
  const RowStats<T>* stats = nullptr;  ///< [B, H, Tq]
};

/// Adds this thread's part of a row to memory, or overwrites it in the first pass.
template <class T, int C>
__device__ void put_sums(const cuda::Share& me, T (&sum)[C], T scale, bool adds, int64_t width, T* to) {
#pragma unroll
  for (int n = 0; n < C; ++n) {
    const int c = me.column<C>(n);
    sum[n] *= scale;
    if (adds && c < width) sum[n] += to[c];
  }
  cuda::put_columns(me, sum, width, to);
}

/// Gradients of one group of a head: with rows as queries and columns as keys (`keys_are_rows` false) dq,
/// with rows as keys and columns as queries dk and dv. One block holds the group, up to 64 rows, and loops
/// over its steps of up to 64 columns, for D columns of the gradients.
template <class T, int D, bool keys_are_rows>
__global__ void __launch_bounds__(cuda::tile_threads) backward(BackCall<T> x) {
  constexpr int ld = cuda::tile_ld(D), ld_map = cuda::tile_ld(tile_rows), C = D / 16;
  T* row_qk = cuda::shared<T>();                     // q, or k
  T* row_vdout = row_qk + cuda::tile_size(D);        // dout, or v
  T* column_qk = row_vdout + cuda::tile_size(D);     // k, or q
  T* column_vdout = column_qk + cuda::tile_size(D);  // v, or dout
  T* map_tile = column_vdout + cuda::tile_size(D);
  const KeepMask keep_mask{reinterpret_cast<uint8_t*>(map_tile + cuda::tile_size(tile_rows))};
  PlanTile at(keep_mask.byte + KeepMask::bytes);

  const cuda::Share me;
  const int64_t head = blockIdx.x / x.plan.max_groups, b = head / x.H, h = head % x.H;
  const BlockPlan::Group* group = x.plan.group(h, x.pass, blockIdx.x % x.plan.max_groups);
  if (group == nullptr) return;
  const int64_t column = int64_t{blockIdx.y} * D, keys = x.keys_of(b);
  const bool whole = x.d <= D && x.dv <= D;
  const T scale_log2 = x.scale_log2();
  at.load_rows(x.plan.queries + group->queries, group->count);
  __syncthreads();

  const HeadView<const T>&row_qk_heads = keys_are_rows ? x.ks : x.qs,
                       &row_vdout_heads = keys_are_rows ? x.vs : x.douts,
                       &column_qk_heads = keys_are_rows ? x.qs : x.ks,
                       &column_vdout_heads = keys_are_rows ? x.douts : x.vs;
  const RowStats<T>* stats = x.stats + head * x.Tq;
  const auto fetch_rows = [&](T* tile, const HeadView<const T>& from, int64_t width, int64_t c) {
    const T* rows = from.at(b, h, 0);
    cuda::fetch_tile<T, D>(tile, static_cast<int>(min(width - c, int64_t{D})), rows, [&](int r) {
      const bool is_valid = r < at.rows && (!keys_are_rows || at.row[r] < keys);
      return is_valid ? rows + at.row[r] * from.ld + c : nullptr;
    });
  };
  const auto fetch_columns = [&](T* tile, const HeadView<const T>& from, int64_t width, int64_t c) {
    const T* rows = from.at(b, h, 0);
    cuda::fetch_tile<T, D>(tile, static_cast<int>(min(width - c, int64_t{D})), rows, [&](int r) {
      const bool is_valid = r < at.columns && (keys_are_rows || at.column[r] < keys);
      return is_valid ? rows + at.column[r] * from.ld + c : nullptr;
    });
  };
  T first_sum[rows_per_thread][C], second_sum[rows_per_thread][C];  // dq, or dk and dv
  cuda::clear(first_sum);
  if constexpr (keys_are_rows) cuda::clear(second_sum);
  if (whole && group->first_step < group->last_step) {
    fetch_rows(row_qk, row_qk_heads, x.d, 0);
    fetch_rows(row_vdout, row_vdout_heads, x.dv, 0);
  }
  for (int64_t s = group->first_step; s < group->last_step; ++s) {
    const BlockPlan::Step step = x.plan.steps[s];
    if (!keys_are_rows && x.plan.keys[step.keys] >= keys) break;
    at.load_columns(x.plan.keys + step.keys, step.count);
    __syncthreads();
    // Products of the tile [rows, columns]: map = q . k and dmap = dout . v.
    T map[rows_per_thread][4], dmap[rows_per_thread][4];
    cuda::clear(map);
    cuda::clear(dmap);
    if (x.dropped) {
      // Bits lie as [query, key], whichever of them are rows here.
      keep_mask.draw(x.drawn, keys_are_rows ? at.columns : at.rows, keys_are_rows ? at.rows : at.columns,
                     [&](int i, int j) {
                       return keys_are_rows ? x.element(b, h, at.column[i], at.row[j])
                                            : x.element(b, h, at.row[i], at.column[j]);
                     });
    }
    uint64_t word[rows_per_thread];
    load_pairs(me, x.plan, step, at.rows, word);
    if (whole) {
      fetch_columns(column_qk, column_qk_heads, x.d, 0);
      fetch_columns(column_vdout, column_vdout_heads, x.dv, 0);
      cuda::commit_copies();
      cuda::wait_for_copies<0>();
      __syncthreads();
      cuda::dots<T, ld, ld>(me, row_qk, column_qk, static_cast<int>((x.d + 3) / 4 * 4), map);
      cuda::dots<T, ld, ld>(me, row_vdout, column_vdout, static_cast<int>((x.dv + 3) / 4 * 4), dmap);
    } else {
      cuda::dots_of_slices<T, D>(
          me, row_qk, column_qk, x.d, [&](int64_t c) { fetch_rows(row_qk, row_qk_heads, x.d, c); },
          [&](int64_t c) { fetch_columns(column_qk, column_qk_heads, x.d, c); }, map);
      cuda::dots_of_slices<T, D>(
          me, row_vdout, column_vdout, x.dv,
          [&](int64_t c) { fetch_rows(row_vdout, row_vdout_heads, x.dv, c); },
          [&](int64_t c) { fetch_columns(column_vdout, column_vdout_heads, x.dv, c); }, dmap);
      fetch_columns(column_qk, column_qk_heads, x.d, column);
      if (keys_are_rows) fetch_columns(column_vdout, column_vdout_heads, x.dv, column);
      cuda::commit_copies();
      cuda::wait_for_copies<0>();
    }
    // In place: map becomes the weights after dropout, dmap the gradients of the scaled products.
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int j = me.key(n);
      const bool is_valid = j < at.columns && (keys_are_rows || at.column[j] < keys);
#pragma unroll
      for (int r = 0; r < rows_per_thread; ++r) {
        const int i = me.row(r);
        const bool pair =
            is_valid && i < at.rows && ((word[r] >> j) & 1) != 0 && (!keys_are_rows || at.row[i] < keys);
        PairGradient<T> back{T(0), T(0)};
        if (pair) {
          const T keep = !x.dropped ? T(1)
                         : keep_mask.has(keys_are_rows ? j : i, keys_are_rows ? i : j) ? x.keep_scale
                                                                                       : T(0);
          back = score_gradient(rounded_product(map[r][n], scale_log2), dmap[r][n], keep,
                                stats[keys_are_rows ? at.column[j] : at.row[i]]);
        }
        map[r][n] = back.weight;
        dmap[r][n] = back.score_grad;
      }
    }
    // dv += map dout and dk += dmap q; or dq += dmap k.
    if constexpr (keys_are_rows) {
      cuda::put_map(me, map, map_tile);
      __syncthreads();
      cuda::gather<T, ld_map, ld>(me, map_tile, column_vdout, tile_rows, second_sum);
      __syncthreads();
    }
    cuda::put_map(me, dmap, map_tile);
    __syncthreads();
    cuda::gather<T, ld_map, ld>(me, map_tile, column_qk, tile_rows, first_sum);
    __syncthreads();
  }
  cuda::commit_copies();
  cuda::wait_for_copies<0>();
  const HeadView<T>& to = keys_are_rows ? x.dks : x.dqs;
#pragma unroll
  for (int r = 0; r < rows_per_thread; ++r) {
    if (me.row(r) >= at.rows) continue;
    const int64_t i = at.row[me.row(r)];
    put_sums(me, first_sum[r], x.scale, x.pass > 0, x.d - column, to.at(b, h, i) + column);
    if constexpr (keys_are_rows)
      put_sums(me, second_sum[r], T(1), x.pass > 0, x.dv - column, x.dvs.at(b, h, i) + column);
  }
}

/// Starts `backward` for each pass of the plan in turn: one block per group of a head and D columns. Later
/// passes add to what earlier ones wrote.
template <bool keys_are_rows, class T, int D>
void start(BackCall<T> call) {
  const int numbers = 4 * cuda::tile_size(D) + cuda::tile_size(tile_rows);
  const int64_t width = keys_are_rows ? std::max(call.d, call.dv) : call.d;
  for (call.pass = 0; call.pass < call.plan.passes; ++call.pass) {
    cuda::run(backward<T, D, keys_are_rows>,
              {.blocks = dim3(static_cast<unsigned>(call.B * call.H * call.plan.max_groups),
                              static_cast<unsigned>(std::max<int64_t>(1, ceil_div(width, D)))),
               .threads = dim3(cuda::tile_threads),
               .shared_bytes = numbers * static_cast<int>(sizeof(T)) + KeepMask::bytes + PlanTile::bytes},
              call);
  }
}

template <bool keys_are_rows, class T>
void start(const BackCall<T>& call) {
  visit_tiles<T>(std::max(call.d, call.dv),
                 [&](auto wide) { start<keys_are_rows, T, decltype(wide)::value>(call); });
}

}  // namespace

/// Gradients of PatternAttention: on the tensor cores where f32 products may be rounded; else dq by the
/// groups of the plan, then dk and dv by the groups of the transposed pattern's plan.
void PatternAttentionBack::cuda(const AttentionBackTensors& t, const PatternParams& params) {
  visit_float("block_attention", t.q.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const PlanOnDevice& plan = plan_on_device(*params.pattern);
    BackCall<T> call(t.q, t.k, t.v, params, plan.straight);
    Count::add(block_flops(call, *params.pattern, true));
    if (std::is_same_v<T, float> && takes_tensor_cores(call, params.rounding))
      return pattern_attention_rounded_back(t, params);
    const Tensor stats = row_stats<T>(t.out, t.lse, t.dout);
    call.stats = reinterpret_cast<const RowStats<T>*>(stats.data<T>());
    call.douts = HeadView<const T>(t.dout);
    call.dqs = HeadView<T>(t.dq);
    call.dks = HeadView<T>(t.dk);
    call.dvs = HeadView<T>(t.dv);
    start<false>(call);
    call.plan = plan.turned;
    start<true>(call);
  });
}

}  // namespace heed::kernel

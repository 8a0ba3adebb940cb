// Pattern attention forward on a device: a block handles a group of queries of the plan and loops over its
// steps, gathering scattered rows as it copies them.
#include <mutex>

#include "heed/core/ceil_div.h"
#include "heed/core/constant_table.h"
#include "heed/core/cuda/runtime/context.h"
#include "heed/core/kernels/attention/pattern_attention_tensor_core_device.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

using cuda::rows_per_thread;
using cuda::tile_rows;

/// Inputs and outputs of the forward kernel.
template <class T>
struct ForwardCall : DevicePatternAttentionCall<T> {
  using DevicePatternAttentionCall<T>::DevicePatternAttentionCall;
  HeadView<T> outs;
  LseView<T> lse, earlier_lse;  ///< earlier_lse: merged over earlier passes; null for one pass
};

/// out[b, h, i, :] = sum_j softmax_j(scale q_i . k_j) v_j and lse over the pairs of one group, up to 64
/// queries, and D columns of the values, by one block: an online softmax over steps of up to 64 keys. Each
/// thread has eight rows of the output_sum [64, D] and of the scores [64, 64]. A later pass merges its result
/// with that of all earlier ones.
template <class T, int D>
__global__ void __launch_bounds__(cuda::tile_threads) forward(ForwardCall<T> x) {
  constexpr int ld = cuda::tile_ld(D), ld_weights = cuda::tile_ld(tile_rows), C = D / 16;
  T* q_tile = cuda::shared<T>();
  T* k_tile = q_tile + cuda::tile_size(D);
  T* v_tile = k_tile + cuda::tile_size(D);
  T* weights_tile = v_tile + cuda::tile_size(D);
  const KeepMask keep_mask{reinterpret_cast<uint8_t*>(weights_tile + cuda::tile_size(tile_rows))};
  PlanTile tile(keep_mask.byte + KeepMask::bytes);

  const cuda::TileThread thread;
  const int64_t head = blockIdx.x / x.plan.max_groups, b = head / x.H, h = head % x.H;
  const BlockPlan::Group* group = x.plan.group(h, x.pass, blockIdx.x % x.plan.max_groups);
  if (group == nullptr) return;
  const int64_t column_begin = int64_t{blockIdx.y} * D, key_end = x.num_keys(b);
  const bool fits_tile = x.d <= D;
  const T scale_log2 = x.scale_log2();
  tile.load_rows(x.plan.queries + group->queries, group->count);
  __syncthreads();

  const T *q_head = x.qs.at(b, h, 0), *k_head = x.ks.at(b, h, 0), *v_head = x.vs.at(b, h, 0);
  const auto fetch_q = [&](int64_t c) {
    cuda::fetch_tile<T, D>(q_tile, static_cast<int>(min(x.d - c, int64_t{D})), q_head, [&](int r) {
      return r < tile.rows ? q_head + tile.row[r] * x.qs.ld + c : nullptr;
    });
  };
  const auto fetch_keys = [&](T* to_tile, const T* from, int64_t ld_from, int64_t width, int64_t c) {
    cuda::fetch_tile<T, D>(to_tile, static_cast<int>(min(width - c, int64_t{D})), from, [&](int r) {
      return r < tile.columns && tile.column[r] < key_end ? from + tile.column[r] * ld_from + c : nullptr;
    });
  };
  OnlineSoftmax<T> rows;
  rows.start(thread, minus_infinity<T>);
  T output_sum[rows_per_thread][C];
  cuda::clear(output_sum);
  if (fits_tile && group->first_step < group->last_step) fetch_q(0);
  for (int64_t s = group->first_step; s < group->last_step; ++s) {
    const BlockPlan::Step step = x.plan.steps[s];
    if (x.plan.keys[step.keys] >= key_end) break;
    tile.load_columns(x.plan.keys + step.keys, step.count);
    __syncthreads();
    // scores [64 queries, 64 keys] = q . k; the values are copied meanwhile.
    T scores[rows_per_thread][4];
    cuda::clear(scores);
    if (fits_tile) fetch_keys(k_tile, k_head, x.ks.ld, x.d, 0);
    cuda::commit_copies();
    fetch_keys(v_tile, v_head, x.vs.ld, x.dv, column_begin);
    cuda::commit_copies();
    if (x.has_dropout) {
      keep_mask.draw(x.dropout, tile.rows, tile.columns,
                     [&](int i, int j) { return x.dropout_index(b, h, tile.row[i], tile.column[j]); });
    }
    uint64_t pair_bits[rows_per_thread];
    load_pairs(thread, x.plan, step, tile.rows, pair_bits);
    if (fits_tile) {
      cuda::wait_for_copies<1>();
      __syncthreads();
      cuda::dots<T, ld, ld>(thread, q_tile, k_tile, static_cast<int>((x.d + 3) / 4 * 4), scores);
    } else {
      cuda::dots_of_slices<T, D>(
          thread, q_tile, k_tile, x.d, fetch_q,
          [&](int64_t c) { fetch_keys(k_tile, k_head, x.ks.ld, x.d, c); }, scores);
    }
    // Scaled scores; -infinity for masked pairs. Then output_sum [64, D] += weights v.
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int j = thread.key(n);
      const bool is_key = j < tile.columns && tile.column[j] < key_end;
#pragma unroll
      for (int r = 0; r < rows_per_thread; ++r)
        scores[r][n] = is_key && ((pair_bits[r] >> j) & 1) != 0 ? rounded_product(scores[r][n], scale_log2)
                                                                : minus_infinity<T>;
    }
    softmax_tile(thread, x, keep_mask, rows, scores, output_sum, weights_tile);
    cuda::wait_for_copies<0>();
    __syncthreads();
    cuda::gather<T, ld_weights, ld>(thread, weights_tile, v_tile, tile_rows, output_sum);
    __syncthreads();
  }
  // out = output_sum / row_sum and lse of each row, merged with those of the earlier passes.
  cuda::commit_copies();
  cuda::wait_for_copies<0>();
#pragma unroll
  for (int r = 0; r < rows_per_thread; ++r) {
    RowLse<T> lse;
    const T inverse = rows.finish(r, lse);
    if (thread.row(r) >= tile.rows) continue;
    const int64_t i = tile.row[thread.row(r)], row = head * x.Tq + i;
    T* out = x.outs.at(b, h, i) + column_begin;
    T new_factor = inverse;
    if (x.pass > 0) {
      if (lse.log == minus_infinity<T>) continue;  // nothing to add
      const MergedRows<T> merged(x.earlier_lse.at(row), lse);
      const T old_factor = merged.factor_a / merged.total;
      new_factor = inverse * merged.factor_b / merged.total;
      lse = merged.lse;
#pragma unroll
      for (int n = 0; n < C; ++n) {
        const int c = thread.column<C>(n);
        output_sum[r][n] =
            output_sum[r][n] * new_factor + (column_begin + c < x.dv ? out[c] * old_factor : T(0));
      }
    } else {
#pragma unroll
      for (int n = 0; n < C; ++n) output_sum[r][n] *= new_factor;
    }
    cuda::put_columns(thread, output_sum[r], x.dv - column_begin, out);
    if (thread.x == 0 && column_begin == 0) x.lse.put(row, lse);
  }
}

/// Launches one pass of `forward`: one block per group of a head and D columns of the values.
template <class T, int D>
void launch(const ForwardCall<T>& call) {
  const int elements = 3 * cuda::tile_size(D) + cuda::tile_size(tile_rows),
            bytes = elements * static_cast<int>(sizeof(T)) + KeepMask::bytes + PlanTile::bytes;
  const int64_t slices = std::max<int64_t>(1, ceil_div(call.dv, D));
  cuda::run(forward<T, D>, tile_grid(call.B * call.H * call.plan.max_groups, slices, bytes), call);
}

/// Copies a list of a plan to the device, in memory that `plan` owns; null for an empty list.
template <class X>
const X* upload_list(const std::vector<X>& list, PlanOnDevice& plan) {
  if (list.empty()) return nullptr;
  plan.lists.push_back(constant_bytes(list, Device::cuda));
  return static_cast<const X*>(plan.lists.back().raw());
}

/// Copies all lists of a plan to the device.
PlanView upload(const BlockPlan& plan, PlanOnDevice& owner) {
  return {.pass_list = upload_list(plan.pass_list(), owner),
          .groups = upload_list(plan.group_list(), owner),
          .steps = upload_list(plan.step_list(), owner),
          .queries = upload_list(plan.query_list(), owner),
          .keys = upload_list(plan.key_list(), owner),
          .pairs = upload_list(plan.pair_list(), owner),
          .heads = plan.heads(),
          .passes = plan.passes(),
          .max_groups = plan.max_groups()};
}

}  // namespace

/// The plans of a pattern and of its transpose on the device: made on the first call, under a lock, and kept
/// in the pattern.
const PlanOnDevice& plan_on_device(const Pattern& pattern) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (!pattern.on_device) {
    auto uploaded_plans = std::make_shared<PlanOnDevice>();
    uploaded_plans->straight = upload(BlockPlan(pattern, device_costs), *uploaded_plans);
    uploaded_plans->transposed = upload(BlockPlan(pattern.transposed(), device_costs), *uploaded_plans);
    pattern.on_device = std::move(uploaded_plans);
  }
  for (const Tensor& list : pattern.on_device->lists) keep_for_replays(list);
  return *pattern.on_device;
}

/// out and lse of PatternAttention, one kernel per pass of the plan: on the tensor cores where f32 products
/// may be rounded, else with one block per group of a head and D columns of the values.
void PatternAttention::cuda(const Tensor& q, const Tensor& k, const Tensor& v, const PatternParams& params,
                            const Tensor& out, const Tensor& lse) {
  visit_float("pattern_attention", q.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    ForwardCall<T> call(q, k, v, params, plan_on_device(*params.pattern).straight);
    Count::add(pattern_attention_flops(call, *params.pattern, Direction::forward));
    if (std::is_same_v<T, float> && takes_tensor_cores(call, params.rounding))
      return pattern_attention_rounded(q, k, v, params, out, lse);
    call.outs = HeadView<T>(out);
    const int64_t rows = q.extent(0) * q.extent(1) * q.extent(2);
    call.lse = LseView<T>(lse, rows);
    // earlier_lse is a copy: the blocks of all slices of columns read it, and that of the first replaces lse.
    const Tensor earlier = call.plan.passes > 1 ? empty_like(lse) : Tensor();
    if (earlier) call.earlier_lse = LseView<T>(earlier, rows);
    for (; call.pass < call.plan.passes; ++call.pass) {
      if (call.pass > 0) Copy::cuda(lse, earlier);
      visit_tile_width<T>(std::max(call.d, call.dv),
                          [&](auto width) { launch<T, decltype(width)::value>(call); });
    }
  });
}

}  // namespace heed::kernel

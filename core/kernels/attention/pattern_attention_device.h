// The plan of a pattern on a device, and the calls of the kernels over it.
#pragma once

#include "heed/core/block_plan.h"
#include "heed/core/kernels/attention/attention_device.h"
#include "heed/core/kernels/attention/pattern_attention.h"

namespace heed::kernel {

/// Pointers to a plan's lists on the device.
struct PlanView {
  const BlockPlan::Pass* pass_list;
  const BlockPlan::Group* groups;
  const BlockPlan::Step* steps;
  const int32_t *queries, *keys;
  const uint64_t* pairs;
  int64_t heads, passes, max_groups;

  /// Group n of a pass of a head; null where the pass has fewer groups.
  __device__ const BlockPlan::Group* group(int64_t head, int64_t pass, int64_t n) const {
    const BlockPlan::Pass& of_head = pass_list[(heads == 1 ? 0 : head) * passes + pass];
    return n < of_head.end - of_head.begin ? groups + of_head.begin + n : nullptr;
  }
};

/// The plans of a pattern and of its transpose (queries and keys exchanged), with the memory of their lists.
struct PlanOnDevice {
  PlanView straight, transposed;
  std::vector<Tensor> lists;
};

/// Built on first use. A CUDA graph that is being captured keeps the lists alive for its replays.
const PlanOnDevice& plan_on_device(const Pattern& pattern);

/// Extents, inputs and settings of a call, for one pass of the plan.
template <class T>
struct DevicePatternAttentionCall : AttentionShape {
  HeadView<const T> qs, ks, vs;
  T scale, keep_scale;
  bool has_dropout;
  DeviceDraw dropout;
  PlanView plan;
  int64_t pass = 0;

  DevicePatternAttentionCall(const Tensor& q, const Tensor& k, const Tensor& v, const PatternParams& params,
                             const PlanView& view)
      : AttentionShape(q, k, v),
        qs(q),
        ks(k),
        vs(v),
        scale(static_cast<T>(params.scale)),
        keep_scale(static_cast<T>(dropout_scale(params.dropout))),
        has_dropout(dropout_threshold(params.dropout) > 0),
        dropout(params.dropout, params.draw),
        plan(view) {
    key_lengths = data_or_null<int32_t>(params.key_lengths);
  }
  HEED_BOTH T scale_log2() const { return static_cast<T>(static_cast<double>(scale) * log2_e); }
};

/// The row and column numbers of a tile of pairs, in shared memory: queries and keys, or keys and queries.
struct PlanTile {
  static constexpr int bytes = 2 * cuda::tile_rows * 4;
  int32_t *row, *column;
  int rows = 0, columns = 0;

  __device__ explicit PlanTile(void* memory)
      : row(static_cast<int32_t*>(memory)), column(row + cuda::tile_rows) {}
  __device__ void load_rows(const int32_t* from, int count) {
    rows = count;
    if (static_cast<int>(threadIdx.x) < count) row[threadIdx.x] = from[threadIdx.x];
  }
  __device__ void load_columns(const int32_t* from, int count) {
    columns = count;
    if (static_cast<int>(threadIdx.x) < count) column[threadIdx.x] = from[threadIdx.x];
  }
};

/// Loads the visibility bits of a thread's eight rows: one bit per column of the step.
__device__ inline void load_pairs(const cuda::TileThread& thread, const PlanView& plan,
                                  const BlockPlan::Step& step, int rows,
                                  uint64_t (&bits)[cuda::rows_per_thread]) {
#pragma unroll
  for (int r = 0; r < cuda::rows_per_thread; ++r) {
    bits[r] = 0;
    if (thread.row(r) < rows)
      bits[r] = step.pairs < 0 ? ~uint64_t{0} : plan.pairs[step.pairs + thread.row(r)];
  }
}

/// Floating-point operations of a pattern attention call, forward or backward.
inline int64_t block_flops(const AttentionShape& x, const Pattern& pattern, bool back) {
  const int64_t kept = pattern.kept() / std::max<int64_t>(1, pattern.heads) * x.H;
  return 2 * x.B * kept * (back ? 3 * x.d + 2 * x.dv : x.d + x.dv);
}

}  // namespace heed::kernel

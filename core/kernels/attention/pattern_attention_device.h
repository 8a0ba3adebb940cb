// The plan of a pattern on a device, and the calls of the kernels over it.
#pragma once

#include "heed/core/block_plan.h"
#include "heed/core/kernels/attention/attention_device.h"
#include "heed/core/kernels/attention/pattern_attention.h"

namespace heed::kernel {

/// Pointers to the lists of a BlockPlan on the device.
struct PlanView {
  const BlockPlan::Pass* pass_list;
  const BlockPlan::Group* groups;
  const BlockPlan::Step* steps;
  const int32_t *queries, *keys;
  const uint64_t* pairs;
  int64_t heads, passes, max_groups;

  /// Group n of a pass of a head; null where the pass has fewer groups. A plan with one head serves all
  /// heads.
  __device__ const BlockPlan::Group* group(int64_t head, int64_t pass, int64_t n) const {
    const BlockPlan::Pass& group_range = pass_list[(heads == 1 ? 0 : head) * passes + pass];
    return n < group_range.end - group_range.begin ? groups + group_range.begin + n : nullptr;
  }
};

/// The plans of a pattern and of its transpose (queries and keys exchanged), with the memory of their lists.
struct PlanOnDevice {
  PlanView straight, transposed;  ///< plans of the pattern and of its transpose
  std::vector<Tensor> lists;
};

/// The plans of a pattern on the device, built on first use. A CUDA graph that is being captured keeps their
/// lists alive for its replays.
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

/// Indices of the rows and columns of a tile of pairs, in shared memory. Rows are queries and columns keys,
/// or the reverse.
struct PlanTile {
  static constexpr int bytes = 2 * cuda::tile_rows * 4;
  int32_t *row, *column;
  int rows = 0, columns = 0;

  __device__ explicit PlanTile(void* memory)
      : row(static_cast<int32_t*>(memory)), column(row + cuda::tile_rows) {}
  __device__ void load_rows(const int32_t* index, int count) {
    rows = count;
    if (static_cast<int>(threadIdx.x) < count) row[threadIdx.x] = index[threadIdx.x];
  }
  __device__ void load_columns(const int32_t* index, int count) {
    columns = count;
    if (static_cast<int>(threadIdx.x) < count) column[threadIdx.x] = index[threadIdx.x];
  }
};

/// Loads the bits of a thread's eight rows, one for each column of the step: set where the pattern has the
/// pair. A step with negative `pairs` has all of them; rows past the tile have none.
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

/// Floating-point operations of a pattern attention call.
inline int64_t pattern_attention_flops(const AttentionShape& call, const Pattern& pattern,
                                       Direction direction) {
  const int64_t pairs_of_head = pattern.kept() / std::max<int64_t>(1, pattern.heads);
  return flops_of_pairs(call.B * call.H * pairs_of_head, call, direction);
}

}  // namespace heed::kernel

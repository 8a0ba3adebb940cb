// The plan of a pattern on a device, and what the kernels over it read of a call.
#pragma once

#include "core/kernels/attention_device.h"
#include "core/kernels/block_attention.h"
#include "core/pattern.h"

namespace heed::kernel {

/// A plan's lists where kernels find them.
struct PlanView {
  const BlockPlan::Pass* pass_list;
  const BlockPlan::Group* groups;
  const BlockPlan::Step* steps;
  const int32_t *queries, *keys;
  const uint64_t* pairs;
  int64_t heads, passes, most_groups;

  /// Group n of a pass of a head; null where there are fewer.
  __device__ const BlockPlan::Group* group(int64_t head, int64_t pass, int64_t n) const {
    const BlockPlan::Pass& all = pass_list[(heads == 1 ? 0 : head) * passes + pass];
    return n < all.end - all.begin ? groups + all.begin + n : nullptr;
  }
};

/// The tiles of a pattern, and of its pairs with queries and keys changed. The lists stay while this lives.
struct PlanOnDevice {
  PlanView straight, turned;
  std::vector<Tensor> lists;
};

/// Made when first asked for. A step that is being recorded keeps it for its replays.
const PlanOnDevice& plan_on_device(const Pattern& pattern);

template <class T>
struct DeviceBlockAttentionCall : AttentionShape {
  Heads<const T> qs, ks, vs;
  T scale, keep_scale;
  bool dropped;
  DeviceDraw drawn;
  PlanView plan;
  int64_t pass = 0;

  DeviceBlockAttentionCall(const Tensor& q, const Tensor& k, const Tensor& v, const BlockTerms& terms,
                           const PlanView& view)
      : AttentionShape(q, k, v),
        qs(q),
        ks(k),
        vs(v),
        scale(static_cast<T>(terms.scale)),
        keep_scale(static_cast<T>(dropout_scale(terms.dropout))),
        dropped(dropout_threshold(terms.dropout) > 0),
        drawn(terms.dropout, terms.draw),
        plan(view) {
    key_lengths = terms.key_lengths ? terms.key_lengths.template data<int32_t>() : nullptr;
    first_key = terms.first_key;
  }
  HEED_BOTH T factor() const { return static_cast<T>(static_cast<double>(scale) * log2_e); }
};

/// The rows and columns of a tile of pairs, in shared memory.
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

/// The pairs of a thread's eight rows with the columns of one step.
__device__ inline void load_pairs(const cuda::Share& me, const PlanView& plan, const BlockPlan::Step& step,
                                  int rows, uint64_t (&word)[cuda::mine]) {
#pragma unroll
  for (int r = 0; r < cuda::mine; ++r) {
    word[r] = 0;
    if (me.row(r) < rows) word[r] = step.pairs < 0 ? ~uint64_t{0} : plan.pairs[step.pairs + me.row(r)];
  }
}

/// Operations of a call over a pattern, forward or back.
inline int64_t block_flops(const AttentionShape& x, const Pattern& pattern, bool back) {
  const int64_t kept = pattern.kept() / std::max<int64_t>(1, pattern.heads) * x.H;
  return 2 * x.B * kept * (back ? 3 * x.d + 2 * x.dv : x.d + x.dv);
}

}  // namespace heed::kernel

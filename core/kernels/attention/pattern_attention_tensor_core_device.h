// Pattern attention on the tensor cores: what its forward and backward kernels share.
#pragma once

#include "heed/core/kernels/attention/attention_tensor_core_device.h"
#include "heed/core/kernels/attention/pattern_attention_device.h"

namespace heed::kernel {

/// The group of the plan that this block handles.
struct PlanPlace {
  int64_t head, b, h;  ///< of all, of the batch, of its heads
  const BlockPlan::Group* group;

  __device__ PlanPlace(const AttentionShape& x, const PlanView& plan, int64_t pass)
      : head(blockIdx.x / plan.max_groups),
        b(head / x.H),
        h(head % x.H),
        group(plan.group(h, pass, blockIdx.x % plan.max_groups)) {}
};

/// Begins to copy the rows of a packed head that a list names into a tile of 64; those at `end` and past it
/// become zeros.
template <class E, int D>
__device__ inline void fetch_listed(E* tile, const PackedRows<E>& from, int64_t b, int64_t h,
                                    const int32_t* index, int count, int64_t end) {
  const E* rows = from.template at<D>(b, h, 0);
  fetch_packed<E, D, key_tile>(tile, rows, [=](int r) {
    return r < count && index[r] < end ? rows + int64_t{index[r]} * D : nullptr;
  });
}

/// Number of the ascending numbers at(0) to at(count - 1) that are below `end`; mostly all are.
template <class At>
__device__ inline int64_t count_below(int64_t count, int64_t end, At at) {
  if (count == 0 || at(count - 1) < end) return count;
  int64_t low = 0, high = count - 1;  // at(high) is not below, what is before `low` is
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (at(middle) < end) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
__device__ inline int count_below(const int32_t* index, int count, int64_t end) {
  return static_cast<int>(count_below(count, end, [index](int64_t n) { return index[n]; }));
}

/// The first step of a group whose keys all lie at `end` or past it; steps ascend by their first keys.
__device__ inline int64_t end_of_steps(const PlanView& plan, const BlockPlan::Group& group, int64_t end) {
  const auto first_key = [&](int64_t s) { return plan.keys[plan.steps[group.first_step + s].keys]; };
  return group.first_step + count_below(group.last_step - group.first_step, end, first_key);
}

/// PatternAttention and PatternAttentionBack with inputs of products rounded; sums and weights are f32.
void pattern_attention_rounded(const Tensor& q, const Tensor& k, const Tensor& v, const PatternParams& params,
                               const Tensor& out, const Tensor& lse);
void pattern_attention_rounded_back(const AttentionBackTensors& t, const PatternParams& params);

}  // namespace heed::kernel

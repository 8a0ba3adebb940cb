// Pattern attention on the tensor cores: helpers of its forward and backward kernels.
#pragma once

#include "heed/core/kernels/attention/attention_tensor_core_device.h"
#include "heed/core/kernels/attention/pattern_attention_device.h"

namespace heed::kernel {

/// The group of the plan that this block handles.
struct PlanBlock {
  int64_t head, b, h;  ///< head = b H + h
  const BlockPlan::Group* group;

  __device__ PlanBlock(const AttentionShape& x, const PlanView& plan, int64_t pass)
      : head(blockIdx.x / plan.max_groups),
        b(head / x.H),
        h(head % x.H),
        group(plan.group(h, pass, blockIdx.x % plan.max_groups)) {}
};

/// Starts to copy rows index[0], ..., index[count - 1] of a rounded head into a tile of 64 rows; the rest of
/// the tile, and rows whose index is not below `end`, become zeros.
template <class E, int D>
__device__ inline void fetch_rows(E* tile, const RoundedRows<E>& heads, int64_t b, int64_t h,
                                  const int32_t* index, int count, int64_t end) {
  const E* rows = heads.template at<D>(b, h, 0);
  fetch_rounded<E, D, key_tile>(tile, rows, [=](int r) {
    return r < count && index[r] < end ? rows + int64_t{index[r]} * D : nullptr;
  });
}

/// Number of the ascending numbers value_at(0) to value_at(count - 1) that are below `end`; usually all are.
template <class ValueAt>
__device__ inline int64_t count_below(int64_t count, int64_t end, ValueAt value_at) {
  if (count == 0 || value_at(count - 1) < end) return count;
  int64_t low = 0, high = count - 1;  // all before `low` are below, value_at(high) is not
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (value_at(middle) < end) {
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

/// One past the last step of a group that has a key below `end`; steps ascend by their first keys.
__device__ inline int64_t end_of_steps(const PlanView& plan, const BlockPlan::Group& group, int64_t end) {
  const auto first_key = [&](int64_t s) { return plan.keys[plan.steps[group.first_step + s].keys]; };
  return group.first_step + count_below(group.last_step - group.first_step, end, first_key);
}

/// PatternAttention and PatternAttentionBack with operands of matrix products rounded; sums are f32.
void pattern_attention_rounded(const Tensor& q, const Tensor& k, const Tensor& v, const PatternParams& params,
                               const Tensor& out, const Tensor& lse);
void pattern_attention_rounded_back(const AttentionBackTensors& t, const PatternParams& params);

}  // namespace heed::kernel

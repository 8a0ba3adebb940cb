// Optimizer steps on the CPU.
#include "heed/core/kernels/elementwise/optimizer_update.h"

#include "heed/core/kernels/elementwise/optimizer_update_rules.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {

/// Writes three of the four numbers.
template <>
void BeginOptimizerStep::cpu<target_isa>(const Tensor& state, double rate, int64_t steps_done,
                                         double momentum) {
  OptimizerState::of(state)->begin(rate, steps_done, momentum);
}

/// Applies AdamWUpdate to every element. One task is a run of elements.
template <>
void AdamW::cpu<target_isa>(const Tensor& values, const Tensor& gradient, const Tensor& first,
                            const Tensor& second, const Tensor& state, const AdamWConstants& constants) {
  const OptimizerState& optimizer = *OptimizerState::of(state);
  if (!optimizer.gradient_norm.is_finite()) return;
  visit_float("adamw", values.dtype(), [&]<class T>(Type<T>) {
    const AdamWUpdate<T> update(optimizer, constants);
    T *value = values.data<T>(), *m = first.data<T>(), *v = second.data<T>();
    const T* grad = gradient.data<T>();
    parallel_rows(values.size(), light_grain, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) update(value[i], grad[i], m[i], v[i]);
    });
  });
  Count::add(values.size());
}

/// Applies SgdUpdate to every element. One task is a run of elements.
template <>
void Sgd::cpu<target_isa>(const Tensor& values, const Tensor& gradient, const Tensor& velocity,
                          const Tensor& state, double decay, double clip_value, double clip) {
  const OptimizerState& optimizer = *OptimizerState::of(state);
  if (!optimizer.gradient_norm.is_finite()) return;
  visit_float("sgd", values.dtype(), [&]<class T>(Type<T>) {
    const SgdUpdate<T> update(optimizer, decay, clip_value, clip);
    T *value = values.data<T>(), *v = velocity.data<T>();
    const T* grad = gradient.data<T>();
    parallel_rows(values.size(), light_grain, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) update(value[i], grad[i], v[i]);
    });
  });
  Count::add(values.size());
}

}  // namespace heed::kernel

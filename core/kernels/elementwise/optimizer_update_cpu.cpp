// Optimizer steps on the CPU.
#include "heed/core/kernels/elementwise/optimizer_update.h"

#include "heed/core/kernels/elementwise/optimizer_update_rules.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {

/// Writes four of the five numbers.
template <>
void BeginOptimizerStep::cpu<target_isa>(const Tensor& state, double rate, int64_t steps_done,
                                         double momentum, double share) {
  OptimizerState::of(state)->begin(rate, steps_done, momentum, share);
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

/// Applies LionUpdate to every element. One task is a run of elements.
template <>
void Lion::cpu<target_isa>(const Tensor& values, const Tensor& gradient, const Tensor& mean,
                           const Tensor& state, const AdamWConstants& constants) {
  const OptimizerState& optimizer = *OptimizerState::of(state);
  if (!optimizer.gradient_norm.is_finite()) return;
  visit_float("lion", values.dtype(), [&]<class T>(Type<T>) {
    const LionUpdate<T> update(optimizer, constants);
    T *value = values.data<T>(), *m = mean.data<T>();
    const T* grad = gradient.data<T>();
    parallel_rows(values.size(), light_grain, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) update(value[i], grad[i], m[i]);
    });
  });
  Count::add(values.size());
}

/// Applies ScheduleFreeUpdate to every element. One task is a run of elements.
template <>
void ScheduleFree::cpu<target_isa>(const ScheduleFreeTensors& sequences, const Tensor& gradient,
                                   const Tensor& state, const AdamWConstants& constants) {
  const OptimizerState& optimizer = *OptimizerState::of(state);
  if (!optimizer.gradient_norm.is_finite()) return;
  visit_float("schedule_free", gradient.dtype(), [&]<class T>(Type<T>) {
    const ScheduleFreeUpdate<T> update(optimizer, constants);
    T *y = sequences.values.data<T>(), *z = sequences.base.data<T>(), *x = sequences.average.data<T>(),
      *v = sequences.second.data<T>();
    const T* grad = gradient.data<T>();
    parallel_rows(gradient.size(), light_grain, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) update(y[i], grad[i], z[i], x[i], v[i]);
    });
  });
  Count::add(gradient.size());
}

}  // namespace heed::kernel

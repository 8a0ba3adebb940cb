// Optimizer steps on the CPU.
#include "heed/core/kernels/elementwise/optimizer_update.h"

#include <tuple>

#include "heed/core/kernels/elementwise/optimizer_update_rules.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {

namespace {

/// Applies an Update<T>, made from the state and the constants, to every element of values, gradient and
/// moments. One task is a run of elements.
template <template <class> class Update, class Moments, class... Constants>
void update_elements(const char* op, const Tensor& state, const Tensor& values, const Tensor& gradient,
                     const Moments& moments, const Constants&... constants) {
  const OptimizerState& optimizer = *OptimizerState::of(state);
  if (!optimizer.gradient_norm.is_finite()) return;
  visit_float(op, values.dtype(), [&]<class T>(Type<T>) {
    const Update<T> update(optimizer, constants...);
    T* value = values.data<T>();
    const T* grad = gradient.data<T>();
    const auto run = [&](auto*... moment) {
      parallel_rows(values.size(), light_grain, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) update(value[i], grad[i], moment[i]...);
      });
    };
    std::apply([&](const auto&... moment) { run(moment.template data<T>()...); }, moments);
  });
  Count::add(values.size());
}

}  // namespace

/// Writes four of the five numbers.
template <>
void BeginOptimizerStep::cpu<target_isa>(const Tensor& state, double rate, int64_t steps_done,
                                         double momentum, double share) {
  OptimizerState::of(state)->begin(rate, steps_done, momentum, share);
}

/// Applies AdamWUpdate to every element.
template <>
void AdamW::cpu<target_isa>(const Tensor& values, const Tensor& gradient, const Tensor& first,
                            const Tensor& second, const Tensor& state, const AdamWConstants& constants) {
  update_elements<AdamWUpdate>("adamw", state, values, gradient, std::tie(first, second), constants);
}

/// Applies SgdUpdate to every element.
template <>
void Sgd::cpu<target_isa>(const Tensor& values, const Tensor& gradient, const Tensor& velocity,
                          const Tensor& state, double decay, double clip_value, double clip) {
  update_elements<SgdUpdate>("sgd", state, values, gradient, std::tie(velocity), decay, clip_value, clip);
}

/// Applies LionUpdate to every element.
template <>
void Lion::cpu<target_isa>(const Tensor& values, const Tensor& gradient, const Tensor& mean,
                           const Tensor& state, const AdamWConstants& constants) {
  update_elements<LionUpdate>("lion", state, values, gradient, std::tie(mean), constants);
}

/// Applies ScheduleFreeUpdate to every element.
template <>
void ScheduleFree::cpu<target_isa>(const ScheduleFreeTensors& sequences, const Tensor& gradient,
                                   const Tensor& state, const AdamWConstants& constants) {
  update_elements<ScheduleFreeUpdate>("schedule_free", state, sequences.values, gradient,
                                      std::tie(sequences.base, sequences.average, sequences.second),
                                      constants);
}

}  // namespace heed::kernel

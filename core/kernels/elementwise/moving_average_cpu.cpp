// The exponential moving average of weights on the CPU.
#include "heed/core/kernels/elementwise/moving_average.h"

#include "heed/core/kernels/elementwise/optimizer_update_rules.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {

/// average[i] = kept average[i] + (1 - kept) values[i]; kept is 0 at the first step. One task is a run of
/// elements.
template <>
void MovingAverage::cpu<target_isa>(const Tensor& values, const Tensor& state, double decay,
                                    const Tensor& average) {
  const OptimizerState& optimizer = *reinterpret_cast<const OptimizerState*>(state.data<double>());
  if (!optimizer.gradient_norm.is_finite()) return;
  visit_float("moving_average", values.dtype(), [&]<class T>(Type<T>) {
    const auto kept = static_cast<T>(optimizer.steps_done == 0 ? 0 : decay), added = T(1) - kept;
    const T* value = values.data<T>();
    T* mean = average.data<T>();
    parallel_rows(values.size(), light_grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) mean[i] = kept * mean[i] + added * value[i];
    });
  });
  Count::add(values.size());
}

}  // namespace heed::kernel

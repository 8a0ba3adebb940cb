// The exponential moving average of weights on the GPU.
#include "heed/core/kernels/elementwise/moving_average.h"

#include "heed/core/cuda/device/grid.h"
#include "heed/core/kernels/elementwise/optimizer_update_rules.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// mean[i] = kept mean[i] + (1 - kept) value[i], by threads in steps of the grid; kept is 0 at the first
/// step.
template <class T>
__global__ void moving_average(int64_t size, const T* value, const OptimizerState* state, double decay,
                               T* mean) {
  if (!state->gradient_norm.is_finite()) return;
  const auto kept = static_cast<T>(state->steps_done == 0 ? 0 : decay), added = T(1) - kept;
  for (int64_t i = cuda::global_thread(); i < size; i += cuda::grid_size())
    mean[i] = kept * mean[i] + added * value[i];
}

}  // namespace

/// Starts moving_average() with one thread per element.
void MovingAverage::cuda(const Tensor& values, const Tensor& state, double decay, const Tensor& average) {
  visit_float("moving_average", values.dtype(), [&]<class T>(Type<T>) {
    cuda::run(moving_average<T>, cuda::grid_over(values.size()), values.size(), values.data<T>(),
              reinterpret_cast<const OptimizerState*>(state.data<double>()), decay, average.data<T>());
  });
  Count::add(values.size());
}

}  // namespace heed::kernel

// The elementwise parts of Muon on the GPU. The kernels read learning rate and gradient norm from device
// memory, so that a CUDA graph can replay them.
#include "heed/core/kernels/elementwise/muon_update.h"

#include "heed/core/cuda/device/grid.h"
#include "heed/core/kernels/elementwise/muon_update_rules.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// Applies MuonDirectionRule to `size` elements, by threads in steps of the grid.
template <class T>
__global__ void muon_direction(int64_t size, const T* gradient, T* mean, const OptimizerState* state,
                               double clip_value, double clip, T* direction) {
  if (!state->gradient_norm.is_finite()) return;
  const MuonDirectionRule<T> rule(*state, clip_value, clip);
  for (int64_t i = cuda::global_thread(); i < size; i += cuda::grid_size())
    direction[i] = rule(gradient[i], mean[i]);
}

/// Multiplies each row of x [size / columns, columns] by its inverse_norm(), by threads in steps of the grid.
template <class T>
__global__ void divide_by_norms(int64_t size, int64_t columns, const double* squares, double smallest, T* x) {
  for (int64_t i = cuda::global_thread(); i < size; i += cuda::grid_size())
    x[i] *= static_cast<T>(inverse_norm(squares[i / columns], smallest));
}

/// Applies MuonStepRule to `size` elements, by threads in steps of the grid.
template <class T>
__global__ void muon_step(int64_t size, T* value, const T* direction, const OptimizerState* state,
                          double decay, double scale) {
  if (!state->gradient_norm.is_finite()) return;
  const MuonStepRule<T> rule(*state, decay, scale);
  for (int64_t i = cuda::global_thread(); i < size; i += cuda::grid_size()) rule(value[i], direction[i]);
}

}  // namespace

/// Starts muon_direction() with one thread per element.
void MuonDirection::cuda(const Tensor& gradient, const Tensor& mean, const Tensor& state, double clip_value,
                         double clip, const Tensor& direction) {
  visit_float("muon_direction", gradient.dtype(), [&]<class T>(Type<T>) {
    cuda::run(muon_direction<T>, cuda::grid_over(gradient.size()), gradient.size(), gradient.data<T>(),
              mean.data<T>(), OptimizerState::of(state), clip_value, clip, direction.data<T>());
  });
  Count::add(gradient.size());
}

/// Starts divide_by_norms() with one thread per element.
void DivideByNorms::cuda(const Tensor& x, const Tensor& squares, double smallest) {
  visit_float("divide_by_norms", x.dtype(), [&]<class T>(Type<T>) {
    cuda::run(divide_by_norms<T>, cuda::grid_over(x.size()), x.size(), x.extent(1), squares.data<double>(),
              smallest, x.data<T>());
  });
  Count::add(x.size());
}

/// Starts muon_step() with one thread per element.
void MuonStep::cuda(const Tensor& values, const Tensor& direction, const Tensor& state, double decay,
                    double scale) {
  visit_float("muon_step", values.dtype(), [&]<class T>(Type<T>) {
    cuda::run(muon_step<T>, cuda::grid_over(values.size()), values.size(), values.data<T>(),
              direction.data<T>(), OptimizerState::of(state), decay, scale);
  });
  Count::add(values.size());
}

}  // namespace heed::kernel

// Optimizer steps on a GPU, four elements per thread. The kernels read learning rate, step and gradient norm
// from device memory, so that a CUDA graph can replay them.
#include "heed/core/kernels/elementwise/optimizer_update.h"

#include <algorithm>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/pack.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/kernels/elementwise/optimizer_update_rules.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

constexpr int pack_size = 4;  ///< elements that a thread updates at once

/// Calls update(value[i], gradient[i], moments[i]...) for the elements i < count of this thread: in packs of
/// four where all arrays are `aligned` to packs; else, and after the last whole pack, one by one.
template <class T, class Update, class... Arrays>
__device__ void update_elements(int64_t count, bool aligned, const Update& update, T* value,
                                const T* gradient, Arrays*... moments) {
  using Pack = cuda::Pack<T, pack_size>;
  for (int64_t pack = cuda::global_thread(); pack * pack_size < count; pack += cuda::grid_size()) {
    const int64_t first = pack * pack_size;
    if (!aligned || first + pack_size > count) {
      for (int64_t i = first; i < std::min(first + pack_size, count); ++i)
        update(value[i], gradient[i], moments[i]...);
      continue;
    }
    // Loads whole packs, updates the copies and stores them.
    const auto update_pack = [&](Pack& value_pack, const Pack& gradient_pack, auto&... moment_packs) {
      Pack new_values = value_pack;
      [&](auto... new_moments) {
        for (int j = 0; j < pack_size; ++j) update(new_values.x[j], gradient_pack.x[j], new_moments.x[j]...);
        ((moment_packs = new_moments), ...);
      }(moment_packs...);
      value_pack = new_values;
    };
    update_pack(*reinterpret_cast<Pack*>(value + first), *reinterpret_cast<const Pack*>(gradient + first),
                *reinterpret_cast<Pack*>(moments + first)...);
  }
}

/// Applies AdamWUpdate to all `count` elements. One thread per four elements.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    adamw_step(T* value, const T* gradient, T* m, T* v, int64_t count, const OptimizerState* state,
               AdamWConstants constants, bool aligned) {
  __shared__ AdamWUpdate<T> shared_update;
  if (!state->gradient_norm.is_finite()) return;
  if (threadIdx.x == 0)
    shared_update = AdamWUpdate<T>(*state, constants);  // has two powers in f64: once per block
  __syncthreads();
  const AdamWUpdate<T> update = shared_update;
  update_elements(count, aligned, update, value, gradient, m, v);
}

/// Applies SgdUpdate to all `count` elements. One thread per four elements.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    sgd_step(T* value, const T* gradient, T* velocity, int64_t count, const OptimizerState* state,
             double decay, double clip_value, double clip, bool aligned) {
  if (!state->gradient_norm.is_finite()) return;
  update_elements(count, aligned, SgdUpdate<T>(*state, decay, clip_value, clip), value, gradient, velocity);
}

/// OptimizerState::begin(), by one thread.
__global__ void begin_optimizer_step(OptimizerState* state, double rate, int64_t steps_done, double momentum,
                                     double share) {
  state->begin(rate, steps_done, momentum, share);
}

/// Applies LionUpdate to all `count` elements. One thread per four elements.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    lion_step(T* value, const T* gradient, T* mean, int64_t count, const OptimizerState* state,
              AdamWConstants constants, bool aligned) {
  if (!state->gradient_norm.is_finite()) return;
  update_elements(count, aligned, LionUpdate<T>(*state, constants), value, gradient, mean);
}

/// Applies ScheduleFreeUpdate to all `count` elements. One thread per four elements.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    schedule_free_step(T* y, const T* gradient, T* z, T* x, T* v, int64_t count, const OptimizerState* state,
                       AdamWConstants constants, bool aligned) {
  __shared__ ScheduleFreeUpdate<T> shared_update;
  if (!state->gradient_norm.is_finite()) return;
  if (threadIdx.x == 0) shared_update = ScheduleFreeUpdate<T>(*state, constants);  // has a power in f64
  __syncthreads();
  const ScheduleFreeUpdate<T> update = shared_update;
  update_elements(count, aligned, update, y, gradient, z, x, v);
}

}  // namespace

/// Writes four of the five numbers.
void BeginOptimizerStep::cuda(const Tensor& state, double rate, int64_t steps_done, double momentum,
                              double share) {
  cuda::run(begin_optimizer_step, {dim3(1), dim3(1)}, OptimizerState::of(state), rate, steps_done, momentum,
            share);
}

/// Applies AdamWUpdate to every element.
void AdamW::cuda(const Tensor& values, const Tensor& gradient, const Tensor& first, const Tensor& second,
                 const Tensor& state, const AdamWConstants& constants) {
  visit_float("adamw", values.dtype(), [&]<class T>(Type<T>) {
    T *value = values.data<T>(), *m = first.data<T>(), *v = second.data<T>();
    const T* grad = gradient.data<T>();
    const bool aligned = cuda::packs<pack_size>(value) && cuda::packs<pack_size>(grad) &&
                         cuda::packs<pack_size>(m) && cuda::packs<pack_size>(v);
    cuda::run(adamw_step<T>, cuda::grid_over(ceil_div(values.size(), pack_size)), value, grad, m, v,
              values.size(), OptimizerState::of(state), constants, aligned);
  });
  Count::add(values.size());
}

/// Applies SgdUpdate to every element.
void Sgd::cuda(const Tensor& values, const Tensor& gradient, const Tensor& velocity, const Tensor& state,
               double decay, double clip_value, double clip) {
  visit_float("sgd", values.dtype(), [&]<class T>(Type<T>) {
    T *value = values.data<T>(), *v = velocity.data<T>();
    const T* grad = gradient.data<T>();
    const bool aligned =
        cuda::packs<pack_size>(value) && cuda::packs<pack_size>(grad) && cuda::packs<pack_size>(v);
    cuda::run(sgd_step<T>, cuda::grid_over(ceil_div(values.size(), pack_size)), value, grad, v, values.size(),
              OptimizerState::of(state), decay, clip_value, clip, aligned);
  });
  Count::add(values.size());
}

/// Applies LionUpdate to every element.
void Lion::cuda(const Tensor& values, const Tensor& gradient, const Tensor& mean, const Tensor& state,
                const AdamWConstants& constants) {
  visit_float("lion", values.dtype(), [&]<class T>(Type<T>) {
    T *value = values.data<T>(), *m = mean.data<T>();
    const T* grad = gradient.data<T>();
    const bool aligned =
        cuda::packs<pack_size>(value) && cuda::packs<pack_size>(grad) && cuda::packs<pack_size>(m);
    cuda::run(lion_step<T>, cuda::grid_over(ceil_div(values.size(), pack_size)), value, grad, m,
              values.size(), OptimizerState::of(state), constants, aligned);
  });
  Count::add(values.size());
}

/// Applies ScheduleFreeUpdate to every element.
void ScheduleFree::cuda(const ScheduleFreeTensors& sequences, const Tensor& gradient, const Tensor& state,
                        const AdamWConstants& constants) {
  visit_float("schedule_free", gradient.dtype(), [&]<class T>(Type<T>) {
    T *y = sequences.values.data<T>(), *z = sequences.base.data<T>(), *x = sequences.average.data<T>(),
      *v = sequences.second.data<T>();
    const T* grad = gradient.data<T>();
    const bool aligned = cuda::packs<pack_size>(y) && cuda::packs<pack_size>(grad) &&
                         cuda::packs<pack_size>(z) && cuda::packs<pack_size>(x) && cuda::packs<pack_size>(v);
    cuda::run(schedule_free_step<T>, cuda::grid_over(ceil_div(gradient.size(), pack_size)), y, grad, z, x, v,
              gradient.size(), OptimizerState::of(state), constants, aligned);
  });
  Count::add(gradient.size());
}

}  // namespace heed::kernel

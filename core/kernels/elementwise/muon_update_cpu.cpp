// The elementwise parts of Muon on the CPU.
#include "heed/core/kernels/elementwise/muon_update.h"

#include "heed/core/kernels/elementwise/muon_update_rules.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {

/// Applies MuonDirectionRule to every element. One task is a run of elements.
template <>
void MuonDirection::cpu<target_isa>(const Tensor& gradient, const Tensor& mean, const Tensor& state,
                                    double clip_value, double clip, const Tensor& direction) {
  const OptimizerState& optimizer = *OptimizerState::of(state);
  if (!optimizer.gradient_norm.is_finite()) return;
  visit_float("muon_direction", gradient.dtype(), [&]<class T>(Type<T>) {
    const MuonDirectionRule<T> rule(optimizer, clip_value, clip);
    const T* grad = gradient.data<T>();
    T *m = mean.data<T>(), *out = direction.data<T>();
    parallel_rows(gradient.size(), light_grain, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) out[i] = rule(grad[i], m[i]);
    });
  });
  Count::add(gradient.size());
}

/// Multiplies each row by its inverse_norm(). One task is a run of elements of one row.
template <>
void DivideByNorms::cpu<target_isa>(const Tensor& x, const Tensor& squares, double smallest) {
  const int64_t count = x.extent(0), size = x.extent(1);
  visit_float("divide_by_norms", x.dtype(), [&]<class T>(Type<T>) {
    for (int64_t row = 0; row < count; ++row) {
      const auto factor = static_cast<T>(inverse_norm(squares.data<double>()[row], smallest));
      T* out = x.data<T>() + row * size;
      parallel_rows(size, light_grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) out[i] *= factor;
      });
    }
  });
  Count::add(x.size());
}

/// Applies MuonStepRule to every element. One task is a run of elements.
template <>
void MuonStep::cpu<target_isa>(const Tensor& values, const Tensor& direction, const Tensor& state,
                               double decay, double scale) {
  const OptimizerState& optimizer = *OptimizerState::of(state);
  if (!optimizer.gradient_norm.is_finite()) return;
  visit_float("muon_step", values.dtype(), [&]<class T>(Type<T>) {
    const MuonStepRule<T> rule(optimizer, decay, scale);
    T* value = values.data<T>();
    const T* step = direction.data<T>();
    parallel_rows(values.size(), light_grain, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) rule(value[i], step[i]);
    });
  });
  Count::add(values.size());
}

}  // namespace heed::kernel

// Optimizer steps on a GPU, four elements a thread; rate, step and norm are read from device memory.
#include "heed/core/kernels/elementwise/adamw.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

constexpr int together = 4;

template <class T>
struct alignas(16) Four {
  T of[together];
};

/// What the gradient is multiplied by so that its norm is at most `clip`.
__device__ double clip_scale(double square_sum, double clip) {
  const double norm = std::sqrt(square_sum);
  return clip > 0 && norm > clip ? clip / norm : 1;
}

__device__ bool finite(double x) { return x - x == 0; }

template <class T>
struct AdamFactors {
  T scale, beta1, beta2, rest1, rest2, step, root, epsilon, shrink, pull;

  __device__ void make(const double* state, const AdamWConstants& constants) {
    const double rate = state[0], steps = state[1] + 1, keep = state[3];
    scale = static_cast<T>(clip_scale(state[2], constants.clip));
    beta1 = static_cast<T>(keep);
    beta2 = static_cast<T>(constants.beta2);
    rest1 = static_cast<T>(1 - keep);
    rest2 = static_cast<T>(1 - constants.beta2);
    step = static_cast<T>(rate / (1 - std::pow(keep, steps)));
    root = static_cast<T>(1 / std::sqrt(1 - std::pow(constants.beta2, steps)));
    epsilon = static_cast<T>(constants.epsilon);
    shrink = static_cast<T>(constants.decoupled ? rate * constants.decay : 0);
    pull = static_cast<T>(constants.decoupled ? 0 : constants.decay);
  }
  __device__ void update(T& value, T grad, T& m, T& v) const {
    const T g = scale * grad + pull * value;
    m = beta1 * m + rest1 * g;
    v = beta2 * v + rest2 * g * g;
    value = value - shrink * value - step * m / (std::sqrt(v) * root + epsilon);
  }
};

template <class T>
struct SgdFactors {
  T rate, scale, keep, pull;

  __device__ void update(T& value, T grad, T& speed) const {
    speed = keep * speed + scale * grad + pull * value;
    value -= rate * speed;
  }
};

/// Calls f(i) for elements one by one where they cannot be moved in fours, and g(i) for the first of four.
template <class Each, class Fours>
__device__ void walk(int64_t count, bool aligned, const Each& each, const Fours& fours) {
  for (int64_t at = cuda::global_thread(); at * together < count; at += cuda::grid_size()) {
    const int64_t first = at * together;
    if (aligned && first + together <= count) {
      fours(first);
    } else {
      for (int64_t i = first; i < std::min(first + together, count); ++i) each(i);
    }
  }
}

/// A step of Adam or AdamW on all `count` elements: a thread takes four at once where all arrays are aligned.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    adam(T* value, const T* grad, T* m, T* v, int64_t count, const double* state, AdamWConstants constants,
         bool aligned) {
  __shared__ AdamFactors<T> made;
  if (!finite(state[2])) return;
  if (threadIdx.x == 0) made.make(state, constants);  // two powers in double: once a block
  __syncthreads();
  const AdamFactors<T> factors = made;
  walk(
      count, aligned, [&](int64_t i) { factors.update(value[i], grad[i], m[i], v[i]); },
      [&](int64_t i) {
        auto &values = *reinterpret_cast<Four<T>*>(value + i), &ms = *reinterpret_cast<Four<T>*>(m + i),
             &vs = *reinterpret_cast<Four<T>*>(v + i);
        const Four<T> grads = *reinterpret_cast<const Four<T>*>(grad + i);
        Four<T> x = values, first = ms, second = vs;
        for (int j = 0; j < together; ++j) factors.update(x.of[j], grads.of[j], first.of[j], second.of[j]);
        values = x;
        ms = first;
        vs = second;
      });
}

/// A step of SGD with momentum on all `count` elements: a thread takes four at once where all arrays are
/// aligned.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    descend(T* value, const T* grad, T* speed, int64_t count, const double* state, double decay, double clip,
            bool aligned) {
  if (!finite(state[2])) return;
  const SgdFactors<T> factors{static_cast<T>(state[0]), static_cast<T>(clip_scale(state[2], clip)),
                              static_cast<T>(state[3]), static_cast<T>(decay)};
  walk(
      count, aligned, [&](int64_t i) { factors.update(value[i], grad[i], speed[i]); },
      [&](int64_t i) {
        auto &values = *reinterpret_cast<Four<T>*>(value + i),
             &speeds = *reinterpret_cast<Four<T>*>(speed + i);
        const Four<T> grads = *reinterpret_cast<const Four<T>*>(grad + i);
        Four<T> x = values, moved = speeds;
        for (int j = 0; j < together; ++j) factors.update(x.of[j], grads.of[j], moved.of[j]);
        values = x;
        speeds = moved;
      });
}

template <class... Pointers>
bool all_aligned(Pointers... pointers) {
  return ((reinterpret_cast<uintptr_t>(pointers) | ...) % 16) == 0;
}

}  // namespace

void AdamW::cuda(const Tensor& values, const Tensor& gradient, const Tensor& first, const Tensor& second,
                 const Tensor& state, const AdamWConstants& constants) {
  visit_float("adamw", values.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    T *value = values.data<T>(), *m = first.data<T>(), *v = second.data<T>();
    const T* grad = gradient.data<T>();
    cuda::run(adam<T>, cuda::line(ceil_div(values.size(), together)), value, grad, m, v, values.size(),
              state.data<double>(), constants, all_aligned(value, grad, m, v));
  });
  Count::add(values.size());
}

void Sgd::cuda(const Tensor& values, const Tensor& gradient, const Tensor& velocity, const Tensor& state,
               double decay, double clip) {
  visit_float("sgd", values.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    T *value = values.data<T>(), *speed = velocity.data<T>();
    const T* grad = gradient.data<T>();
    cuda::run(descend<T>, cuda::line(ceil_div(values.size(), together)), value, grad, speed, values.size(),
              state.data<double>(), decay, clip, all_aligned(value, grad, speed));
  });
  Count::add(values.size());
}

}  // namespace heed::kernel

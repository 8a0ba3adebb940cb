// Layer normalisation on the CPU.
#include "heed/core/kernels/norm/layer_norm.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/elementwise/activation_types.h"
#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/kernels/elementwise/dropped_elements.h"
#include "heed/core/kernels/norm/layer_norm_scaling.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/kernels/simd/strided_loops.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

template <class T>
struct RowStatistics {
  T mean, rstd;
};

/// Mean and rstd of a row.
template <class T>
RowStatistics<T> row_statistics(const T* x, const LayerNormScaling& scaling) {
  const int64_t width = scaling.width;
  const T mean = scaling.centre(static_cast<T>(lanes::long_sum(x, width) / static_cast<double>(width)));
  const T squares = lanes::sum_of<T>(width, [&](auto at) {
    const auto centred = at(x) - mean;
    return centred * centred;
  });
  return {mean, scaling.rstd(squares)};
}

/// y[n, :] = gain (x[n, :] - mean_n) rstd_n + bias for the rows n from `begin` to `end` - 1 of T.
template <class T>
void normalise_rows(const LayerNormTensors& t, const LayerNormScaling& scaling, int64_t begin, int64_t end) {
  using A = Computed<T>;
  const int64_t width = scaling.width;
  const A *gain = t.gain.data<A>(), *bias = t.bias ? t.bias.data<A>() : nullptr;
  A *means = t.mean.data<A>(), *rstds = t.rstd.data<A>();
  std::vector<A> buffers(static_cast<size_t>(2 * buffer_size<T>(width)));
  for (int64_t row = begin; row < end; ++row) {
    const A* in = computed(t.x.data<T>() + row * width, width, buffers.data());
    const auto [mean, rstd] = row_statistics(in, scaling);
    means[row] = mean;
    rstds[row] = rstd;
    const auto write = [&, mean = mean, rstd = rstd](A* out) {
      if (bias != nullptr) {
#pragma GCC ivdep
        for (int64_t i = 0; i < width; ++i) out[i] = gain[i] * ((in[i] - mean) * rstd) + bias[i];
      } else {
#pragma GCC ivdep
        for (int64_t i = 0; i < width; ++i) out[i] = gain[i] * ((in[i] - mean) * rstd);
      }
    };
    store_rounded(t.y.data<T>() + row * width, width, buffers.data() + buffer_size<T>(width), write);
  }
}

}  // namespace

/// y, mean and rstd. One task is some rows.
template <>
void LayerNorm::cpu<target_isa>(const LayerNormTensors& t, double epsilon, NormScale scale) {
  const int64_t width = t.x.extent(-1);
  const LayerNormScaling scaling{.epsilon = epsilon, .scale = scale, .width = width};
  if (t.x.size() == 0) return;
  visit_activation("layer_norm", t.x.dtype(), [&]<class T>(Type<T>) {
    parallel_rows(t.x.size() / width, light_grain / width,
                  [&](int64_t begin, int64_t end) { normalise_rows<T>(t, scaling, begin, end); });
  });
  Count::add(t.x.size());
}

/// The sum, then y, mean and rstd, for a few rows at a time that are in the cache until both are done.
template <>
void AddDropoutNorm::cpu<target_isa>(const Tensor& x, const Tensor& branch, const DropoutMask& mask,
                                     const LayerNormTensors& t, double epsilon, NormScale scale) {
  const int64_t width = t.x.extent(-1);
  const LayerNormScaling scaling{.epsilon = epsilon, .scale = scale, .width = width};
  if (t.x.size() == 0) return;
  const int64_t few = std::max<int64_t>(1, 2048 / width);
  visit_activation("add_dropout_norm", t.x.dtype(), [&]<class T>(Type<T>) {
    using A = Computed<T>;
    std::optional<DroppedElements<A>> drop;
    if (mask.p > 0) drop.emplace(t.x.shape(), mask);
    parallel_rows(t.x.size() / width, light_grain / width, [&](int64_t begin, int64_t end) {
      const int64_t size = buffer_size<T>(few * width);
      std::vector<A> buffers(static_cast<size_t>(3 * size));
      for (int64_t row = begin; row < end; row += few) {
        const int64_t end_row = std::min(end, row + few), first = row * width,
                      count = end_row * width - first;
        const A* added = computed(branch.data<T>() + first, count, buffers.data());
        const A* given = computed(x.data<T>() + first, count, buffers.data() + size);
        store_rounded(t.x.data<T>() + first, count, buffers.data() + 2 * size, [&](A* sum) {
          if (drop) (*drop)(first, count, added, sum);
          apply_contiguous(elementwise::Value<Add>{}, count, sum, given, drop ? sum : added);
        });
        normalise_rows<T>(t, scaling, row, end_row);
      }
    });
  });
  Count::add(2 * t.x.size());
}

/// dx = rstd (g - mean(g) - h k) with g = gain dy, h = (x - mean) rstd and k = gradient_factor(sum(g h));
/// dgain = sum_n dy h, dbias = sum_n dy. One task is some rows, with sums [2, d] of its own.
template <>
void LayerNormBack::cpu<target_isa>(const LayerNormBackTensors& t, double epsilon, NormScale scale) {
  const int64_t width = t.x.extent(-1);
  const int64_t rows = width > 0 ? t.x.size() / width : 0;
  const LayerNormScaling scaling{.epsilon = epsilon, .scale = scale, .width = width};
  visit_activation("layer_norm", t.x.dtype(), [&]<class S>(Type<S>) {
    using T = Computed<S>;
    const T *gain = t.gain.data<T>(), *means = t.mean.data<T>(), *rstds = t.rstd.data<T>();
    // Each task sums dgain and dbias of its own rows: task_sums [tasks, 2, d].
    const int64_t grain = std::max<int64_t>(32, light_grain / std::max<int64_t>(width, 1));
    const int64_t tasks = ceil_div(rows, grain);
    const Tensor task_sums(Shape{tasks, 2, width}, t.gain.dtype());
    T* sums = task_sums.data<T>();
    std::optional<DroppedElements<T>> drop;
    if (t.dbranch) drop.emplace(t.x.shape(), t.mask);
    parallel_rows(rows, grain, [&](int64_t begin, int64_t end) {
      T *dgain = sums + begin / grain * 2 * width, *dbias = dgain + width;
      std::fill_n(dgain, 2 * width, T(0));
      const int64_t size = buffer_size<S>(width);
      std::vector<T> buffers(static_cast<size_t>(3 * size));
      for (int64_t row = begin; row < end; ++row) {
        const T* in = computed(t.x.data<S>() + row * width, width, buffers.data());
        const T* dy = computed(t.dy.data<S>() + row * width, width, buffers.data() + size);
        const T mean = means[row], rstd = rstds[row];
        // sum(g) and sum(g h) of the row.
        const T sum_g = lanes::dot(dy, gain, width);
        const T sum_gh =
            lanes::sum_of<T>(width, [&](auto at) { return (at(in) - mean) * rstd * at(dy) * at(gain); });
        const T mean_g = scaling.centre(sum_g / static_cast<T>(width));
        const T k = scaling.gradient_factor(sum_gh, rstd);
        store_rounded(t.dx.data<S>() + row * width, width, buffers.data() + 2 * size, [&](T* dx) {
#pragma GCC ivdep
          for (int64_t i = 0; i < width; ++i) {
            const T h = (in[i] - mean) * rstd;
            dgain[i] += dy[i] * h;
            dbias[i] += dy[i];
            dx[i] = rstd * (dy[i] * gain[i] - mean_g - h * k);
          }
          if (!t.so_far) return;
          const S* so_far = t.so_far.data<S>() + row * width;
#pragma GCC ivdep
          for (int64_t i = 0; i < width; ++i) dx[i] = static_cast<T>(so_far[i]) + dx[i];
        });
        if (!drop) continue;
        const T* dx = computed(t.dx.data<S>() + row * width, width, buffers.data() + 2 * size);
        store_rounded(t.dbranch.data<S>() + row * width, width, buffers.data(),
                      [&](T* dbranch) { (*drop)(row * width, width, dx, dbranch); });
      }
    });
    // dgain and dbias [d]: the sums of all tasks, in order.
    T *dgain = t.dgain.data<T>(), *dbias = t.dbias ? t.dbias.data<T>() : nullptr;
    for (int64_t i = 0; i < width; ++i) {
      double dgain_sum = 0, dbias_sum = 0;
      for (int64_t task = 0; task < tasks; ++task) {
        dgain_sum += static_cast<double>(sums[task * 2 * width + i]);
        dbias_sum += static_cast<double>(sums[task * 2 * width + width + i]);
      }
      dgain[i] = static_cast<T>(dgain_sum);
      if (dbias != nullptr) dbias[i] = static_cast<T>(dbias_sum);
    }
  });
  Count::add(t.x.size());
}

}  // namespace heed::kernel

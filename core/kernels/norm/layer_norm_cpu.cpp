// Layer normalisation on the CPU.
#include "heed/core/kernels/norm/layer_norm.h"

#include <algorithm>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/norm/layer_norm_scaling.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

template <class T>
struct RowStatistics {
  T mean, rstd;
};

/// Mean and rstd of a row. The two functions give one term (x - mean)^2, and a vector of terms.
template <class T>
RowStatistics<T> row_statistics(const T* x, const LayerNormScaling& scaling) {
  const int64_t width = scaling.width;
  const T mean = scaling.centre(static_cast<T>(lanes::long_sum(x, width) / static_cast<double>(width)));
  const T squares = lanes::sum_of<T>(
      width, [&](int64_t i) { return (x[i] - mean) * (x[i] - mean); },
      [&](int64_t i, lanes::vector<T>& to) {
        lanes::load<T>(to, x + i);
        to -= mean;
        to *= to;
      });
  return {mean, scaling.rstd(squares)};
}

}  // namespace

/// y[n, :] = gain (x[n, :] - mean_n) rstd_n + bias. One task is some rows n.
template <>
void LayerNorm::cpu<target_isa>(const LayerNormTensors& t, double epsilon, NormScale scale) {
  const int64_t width = t.x.extent(-1);
  const LayerNormScaling scaling{.epsilon = epsilon, .scale = scale, .width = width};
  if (t.x.size() == 0) return;
  visit_float("layer_norm", t.x.dtype(), [&]<class T>(Type<T>) {
    const T *x = t.x.data<T>(), *gain = t.gain.data<T>(), *bias = t.bias ? t.bias.data<T>() : nullptr;
    T *y = t.y.data<T>(), *means = t.mean.data<T>(), *rstds = t.rstd.data<T>();
    parallel_rows(t.x.size() / width, light_grain / width, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* in = x + row * width;
        T* out = y + row * width;
        const auto [mean, rstd] = row_statistics(in, scaling);
        means[row] = mean;
        rstds[row] = rstd;
        if (bias != nullptr) {
#pragma GCC ivdep
          for (int64_t i = 0; i < width; ++i) out[i] = gain[i] * ((in[i] - mean) * rstd) + bias[i];
        } else {
#pragma GCC ivdep
          for (int64_t i = 0; i < width; ++i) out[i] = gain[i] * ((in[i] - mean) * rstd);
        }
      }
    });
  });
  Count::add(t.x.size());
}

/// dx = rstd (g - mean(g) - h k) with g = gain dy, h = (x - mean) rstd and k = gradient_factor(sum(g h));
/// dgain = sum_n dy h, dbias = sum_n dy. One task is some rows, with sums [2, d] of its own.
template <>
void LayerNormBack::cpu<target_isa>(const LayerNormBackTensors& t, double epsilon, NormScale scale) {
  const int64_t width = t.x.extent(-1);
  const int64_t rows = width > 0 ? t.x.size() / width : 0;
  const LayerNormScaling scaling{.epsilon = epsilon, .scale = scale, .width = width};
  visit_float("layer_norm", t.x.dtype(), [&]<class T>(Type<T>) {
    const T *x = t.x.data<T>(), *gain = t.gain.data<T>(), *means = t.mean.data<T>(),
            *rstds = t.rstd.data<T>(), *dys = t.dy.data<T>();
    T* dxs = t.dx.data<T>();
    // Each task sums dgain and dbias of its own rows: task_sums [tasks, 2, d].
    const int64_t grain = std::max<int64_t>(32, light_grain / std::max<int64_t>(width, 1));
    const int64_t tasks = ceil_div(rows, grain);
    const Tensor task_sums(Shape{tasks, 2, width}, t.x.dtype());
    T* sums = task_sums.data<T>();
    parallel_rows(rows, grain, [&](int64_t begin, int64_t end) {
      T *dgain = sums + begin / grain * 2 * width, *dbias = dgain + width;
      std::fill_n(dgain, 2 * width, T(0));
      for (int64_t row = begin; row < end; ++row) {
        const T* in = x + row * width;
        const T* dy = dys + row * width;
        T* dx = dxs + row * width;
        const T mean = means[row], rstd = rstds[row];
        // sum(g) and sum(g h) of the row. The two functions give one term g h, and a vector of terms.
        const T sum_g = lanes::dot(dy, gain, width);
        const T sum_gh = lanes::sum_of<T>(
            width, [&](int64_t i) { return dy[i] * gain[i] * ((in[i] - mean) * rstd); },
            [&](int64_t i, lanes::vector<T>& to) {
              lanes::vector<T> factor;
              lanes::load<T>(to, in + i);
              to = (to - mean) * rstd;
              lanes::load<T>(factor, dy + i);
              to *= factor;
              lanes::load<T>(factor, gain + i);
              to *= factor;
            });
        const T mean_g = scaling.centre(sum_g / static_cast<T>(width));
        const T k = scaling.gradient_factor(sum_gh, rstd);
#pragma GCC ivdep
        for (int64_t i = 0; i < width; ++i) {
          const T h = (in[i] - mean) * rstd;
          dgain[i] += dy[i] * h;
          dbias[i] += dy[i];
          dx[i] = rstd * (dy[i] * gain[i] - mean_g - h * k);
        }
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

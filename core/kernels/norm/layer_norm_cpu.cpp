// Layer normalisation on the CPU.
#include "heed/core/kernels/norm/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

template <class T>
struct Moments {
  T mean, rstd;
};

/// Mean of a row, and rstd = 1 / sqrt(sum (x - mean)^2 / width + epsilon), or with NormScale::deviation 1 /
/// (sqrt(sum (x - mean)^2 / (width - 1)) + epsilon).
template <class T>
Moments<T> moments(const T* x, int64_t width, double epsilon, NormScale scale) {
  const T mean = static_cast<T>(lanes::long_sum(x, width) / static_cast<double>(width));
  const T squares = lanes::sum_of<T>(
      width, [&](int64_t i) { return (x[i] - mean) * (x[i] - mean); },
      [&](int64_t i, lanes::vector<T>& to) {
        lanes::load<T>(to, x + i);
        to -= mean;
        to *= to;
      });
  const auto total = static_cast<double>(squares);
  if (scale == NormScale::variance)
    return {mean, static_cast<T>(1 / std::sqrt(total / static_cast<double>(width) + epsilon))};
  const double deviation = width > 1 ? std::sqrt(total / static_cast<double>(width - 1)) : 0;
  return {mean, static_cast<T>(1 / (deviation + epsilon))};
}

/// With g = gain dy and h = (x - mean) rstd: dx = rstd (g - mean(g) - h k). The scale's own slope makes
/// k = mean(g h) for the variance, and sum(g h) / ((n - 1) deviation rstd) for the deviation.
template <class T>
T mean_product(T sum_gh, int64_t width, T rstd, double epsilon, NormScale scale) {
  const auto total = static_cast<double>(sum_gh);
  if (scale == NormScale::variance) return static_cast<T>(total / static_cast<double>(width));
  const double share = 1 - epsilon * static_cast<double>(rstd);  // deviation rstd
  return width > 1 && share > 0 ? static_cast<T>(total / (static_cast<double>(width - 1) * share)) : T(0);
}

}  // namespace

/// y[n, :] = gain (x[n, :] - mean_n) rstd_n + bias. One task is some rows n.
template <>
void LayerNorm::cpu<here>(const LayerNormTensors& t, double epsilon, NormScale scale) {
  const int64_t width = t.x.extent(-1);
  if (t.x.size() == 0) return;
  visit_float("layer_norm", t.x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T* from = t.x.data<T>();
    const T* g = t.gain.data<T>();
    const T* b = t.bias ? t.bias.data<T>() : nullptr;
    T* to = t.y.data<T>();
    T* means = t.mean.data<T>();
    T* rstds = t.rstd.data<T>();
    parallel_rows(t.x.size() / width, light_grain / width, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* in = from + row * width;
        T* out = to + row * width;
        const Moments<T> m = moments(in, width, epsilon, scale);
        means[row] = m.mean;
        rstds[row] = m.rstd;
        if (b != nullptr) {
#pragma GCC ivdep
          for (int64_t i = 0; i < width; ++i) out[i] = g[i] * ((in[i] - m.mean) * m.rstd) + b[i];
        } else {
#pragma GCC ivdep
          for (int64_t i = 0; i < width; ++i) out[i] = g[i] * ((in[i] - m.mean) * m.rstd);
        }
      }
    });
  });
  Count::add(t.x.size());
}

/// dx = rstd (g - mean(g) - h k) with g = gain dy, h = (x - mean) rstd and k of mean_product(); dgain = sum_n
/// dy h, dbias = sum_n dy. One task is some rows, with sums [2, d] of its own.
template <>
void LayerNormBack::cpu<here>(const LayerNormBackTensors& t, double epsilon, NormScale scale) {
  const int64_t width = t.x.extent(-1);
  const int64_t rows = width > 0 ? t.x.size() / width : 0;
  visit_float("layer_norm", t.x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T* px = t.x.data<T>();
    const T* g = t.gain.data<T>();
    const T* means = t.mean.data<T>();
    const T* rstds = t.rstd.data<T>();
    const T* pdy = t.dy.data<T>();
    T* pdx = t.dx.data<T>();
    // Each piece sums its own rows for the gain and the bias; the pieces are added in order afterwards.
    const int64_t grain = std::max<int64_t>(32, light_grain / std::max<int64_t>(width, 1));
    const int64_t pieces = ceil_div(rows, grain);
    const Tensor partial(Shape{pieces, 2, width}, t.x.dtype());
    T* sums = partial.data<T>();
    parallel_rows(rows, grain, [&](int64_t begin, int64_t end) {
      T* gains = sums + begin / grain * 2 * width;
      T* biases = gains + width;
      std::fill_n(gains, 2 * width, T(0));
      for (int64_t row = begin; row < end; ++row) {
        const T* in = px + row * width;
        const T* up = pdy + row * width;
        T* out = pdx + row * width;
        const T m = means[row], r = rstds[row];
        // sum(g) and sum(g h) of the row.
        const T sum_g = lanes::dot(up, g, width);
        const T sum_gh = lanes::sum_of<T>(
            width, [&](int64_t i) { return up[i] * g[i] * ((in[i] - m) * r); },
            [&](int64_t i, lanes::vector<T>& to) {
              lanes::vector<T> other;
              lanes::load<T>(to, in + i);
              to = (to - m) * r;
              lanes::load<T>(other, up + i);
              to *= other;
              lanes::load<T>(other, g + i);
              to *= other;
            });
        const T shift = sum_g / static_cast<T>(width);
        const T k = mean_product(sum_gh, width, r, epsilon, scale);
#pragma GCC ivdep
        for (int64_t i = 0; i < width; ++i) {
          const T h = (in[i] - m) * r;
          gains[i] += up[i] * h;
          biases[i] += up[i];
          out[i] = r * (up[i] * g[i] - shift - h * k);
        }
      }
    });
    // dgain and dbias [d]: the sums of all tasks, in order.
    T* to_gain = t.dgain.data<T>();
    T* to_bias = t.dbias ? t.dbias.data<T>() : nullptr;
    for (int64_t i = 0; i < width; ++i) {
      double total_gain = 0, total_bias = 0;
      for (int64_t piece = 0; piece < pieces; ++piece) {
        total_gain += static_cast<double>(sums[piece * 2 * width + i]);
        total_bias += static_cast<double>(sums[piece * 2 * width + width + i]);
      }
      to_gain[i] = static_cast<T>(total_gain);
      if (to_bias != nullptr) to_bias[i] = static_cast<T>(total_bias);
    }
  });
  Count::add(t.x.size());
}

}  // namespace heed::kernel

// Depthwise convolution on the CPU, row by row: the rows of all taps lie in the first-level cache.
#include "heed/core/kernels/elementwise/depthwise_convolution.h"

#include <algorithm>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

/// Calls f(j, row of x that tap j reads) for each tap whose place lies in the sequence of row b T + t.
template <class F>
void each_tap(int64_t row, int64_t length, int64_t num_taps, TapPlaces places, F&& f) {
  const int64_t t = row % length;
  for (int64_t j = 0; j < num_taps; ++j) {
    const int64_t place = t + places.first + places.step * j;
    if (place >= 0 && place < length) f(j, row - t + place);
  }
}

}  // namespace

/// y[b, t, :] = sum_j taps[j, :] x[b, t + first + step j, :], j ascending. One task is some rows (b, t).
template <>
void DepthwiseConvolution::cpu<target_isa>(const Tensor& x, const Tensor& taps, TapPlaces places,
                                           const Tensor& y) {
  if (x.size() == 0) return;
  const int64_t length = x.extent(1), channels = x.extent(2), num_taps = taps.extent(0);
  visit_float("depthwise_convolution", x.dtype(), [&]<class T>(Type<T>) {
    const T *xs = x.data<T>(), *all_taps = taps.data<T>();
    T* ys = y.data<T>();
    parallel_rows(x.size() / channels, light_grain / (channels * num_taps), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        T* out = ys + row * channels;
        std::fill_n(out, channels, T(0));
        each_tap(row, length, num_taps, places, [&](int64_t j, int64_t from) {
          const T *in = xs + from * channels, *tap = all_taps + j * channels;
#pragma GCC ivdep
          for (int64_t c = 0; c < channels; ++c) out[c] += tap[c] * in[c];
        });
      }
    });
  });
  Count::add(num_taps * x.size());
}

/// dtaps[j, :] = sum over rows of dy[b, t, :] x[b, t + first + step j, :]. One task is some rows, with sums
/// [k, C] of its own; these are added in order.
template <>
void DepthwiseConvolutionTaps::cpu<target_isa>(const Tensor& x, const Tensor& dy, TapPlaces places,
                                               const Tensor& dtaps) {
  const int64_t length = x.extent(1), channels = x.extent(2), num_taps = dtaps.extent(0), size = dtaps.size(),
                rows = channels > 0 ? x.size() / channels : 0;
  visit_float("depthwise_convolution", x.dtype(), [&]<class T>(Type<T>) {
    const T *xs = x.data<T>(), *dys = dy.data<T>();
    const int64_t grain = std::max<int64_t>(32, light_grain / std::max<int64_t>(size, 1));
    const int64_t tasks = ceil_div(rows, grain);
    const Tensor task_sums(Shape{tasks, num_taps, channels}, x.dtype());
    T* sums = task_sums.data<T>();
    parallel_rows(rows, grain, [&](int64_t begin, int64_t end) {
      T* own = sums + begin / grain * size;
      std::fill_n(own, size, T(0));
      for (int64_t row = begin; row < end; ++row) {
        const T* slope = dys + row * channels;
        each_tap(row, length, num_taps, places, [&](int64_t j, int64_t from) {
          const T* in = xs + from * channels;
          T* sum = own + j * channels;
#pragma GCC ivdep
          for (int64_t c = 0; c < channels; ++c) sum[c] += slope[c] * in[c];
        });
      }
    });
    T* out = dtaps.data<T>();
    for (int64_t i = 0; i < size; ++i) {
      double total = 0;
      for (int64_t task = 0; task < tasks; ++task) total += static_cast<double>(sums[task * size + i]);
      out[i] = static_cast<T>(total);
    }
  });
  Count::add(num_taps * x.size());
}

}  // namespace heed::kernel

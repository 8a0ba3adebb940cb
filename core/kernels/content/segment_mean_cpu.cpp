// Averages of segments on the CPU.
#include "heed/core/kernels/content/segment_mean.h"

#include <algorithm>

#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

/// Calls f(b, h, s, first, last) for the run s of every row; first = last where there is none.
template <class F>
void each_run(const Tensor& whole, int64_t m, const Tensor& lengths, const Tensor& most, F&& f) {
  const int64_t H = whole.extent(1), T = whole.extent(2), d = whole.extent(3);
  const int32_t* length = lengths ? lengths.data<int32_t>() : nullptr;
  const int32_t* fewer = most ? most.data<int32_t>() : nullptr;
  const int64_t run_size = (T / std::max<int64_t>(m, 1) + 1) * (d + 1);
  parallel_rows(whole.extent(0) * H * m, light_grain / run_size + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t s = row % m, b = row / m / H;
      const int64_t n = length != nullptr ? std::clamp<int64_t>(length[b], 0, T) : T;
      int64_t runs = std::min(m, n);
      if (fewer != nullptr) runs = std::min<int64_t>(runs, fewer[b]);
      f(b, row / m % H, s, s < runs ? s * n / runs : n, s < runs ? (s + 1) * n / runs : n);
    }
  });
  Count::add(whole.size());
}

template <class T>
T* row_of(T* data, const Tensor& x, int64_t b, int64_t h, int64_t t) {
  return data + b * x.strides()[0] + h * x.strides()[1] + t * x.strides()[2];
}

}  // namespace

/// y[b, h, s, :] = mean of x[b, h, t, :] over the positions t of run s, zeros where there is no run s. One
/// task is some runs (b, h, s).
template <>
void SegmentMean::cpu<here>(const Tensor& x, const Tensor& lengths, const Tensor& most, const Tensor& y) {
  const int64_t d = x.extent(3);
  visit_float("segment_mean", x.dtype(), [&](auto type) {
    using N = typename decltype(type)::type;
    const N* from = x.data<N>();
    N* out = y.data<N>();
    each_run(x, y.extent(2), lengths, most,
             [&](int64_t b, int64_t h, int64_t s, int64_t first, int64_t last) {
               N* to = row_of(out, y, b, h, s);
               std::fill_n(to, d, N(0));
               for (int64_t t = first; t < last; ++t) {
                 const N* row = row_of(from, x, b, h, t);
                 for (int64_t c = 0; c < d; ++c) to[c] += row[c];
               }
               for (int64_t c = 0; c < d && first < last; ++c) to[c] /= static_cast<N>(last - first);
             });
  });
}

/// dx[b, h, t, :] = dy[b, h, s, :] / (size of run s) for the positions t of each run s, else 0. One task is
/// some runs (b, h, s).
template <>
void SegmentMeanBack::cpu<here>(const Tensor& dy, const Tensor& lengths, const Tensor& most,
                                const Tensor& dx) {
  const int64_t d = dx.extent(3);
  visit_float("segment_mean", dx.dtype(), [&](auto type) {
    using N = typename decltype(type)::type;
    const N* from = dy.data<N>();
    N* out = dx.data<N>();
    std::fill_n(out, dx.size(), N(0));
    each_run(dx, dy.extent(2), lengths, most,
             [&](int64_t b, int64_t h, int64_t s, int64_t first, int64_t last) {
               const N* row = row_of(from, dy, b, h, s);
               for (int64_t t = first; t < last; ++t) {
                 N* to = row_of(out, dx, b, h, t);
                 for (int64_t c = 0; c < d; ++c) to[c] = row[c] / static_cast<N>(last - first);
               }
             });
  });
}

}  // namespace heed::kernel

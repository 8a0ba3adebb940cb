// Means of segments on the CPU.
#include "heed/core/kernels/content/segment_mean.h"

#include <algorithm>

#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

/// Calls f(b, h, s, range) for each of the m segments s of each head. Only the shape of x [B, H, T, d]
/// matters. Threads divide the segments (b, h, s) among them.
template <class F>
void each_segment(const Tensor& x, int64_t m, const Tensor& lengths, const Tensor& max_segments, F&& f) {
  const SegmentBounds bounds(x, m, lengths, max_segments);
  const int64_t H = x.extent(1), T = x.extent(2), d = x.extent(3);
  const int64_t flops_per_segment = (T / std::max<int64_t>(m, 1) + 1) * (d + 1);
  parallel_rows(x.extent(0) * H * m, light_grain / flops_per_segment + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t s = row % m, h = row / m % H, b = row / m / H;
      f(b, h, s, bounds.range(b, s));
    }
  });
  Count::add(x.size());
}

}  // namespace

/// y[b, h, s, :] = mean of x[b, h, t, :] over the positions t of segment s; zeros where there is no such
/// segment.
template <>
void SegmentMean::cpu<target_isa>(const Tensor& x, const Tensor& lengths, const Tensor& max_segments,
                                  const Tensor& y) {
  const int64_t d = x.extent(3);
  visit_float("segment_mean", x.dtype(), [&]<class T>(Type<T>) {
    const HeadView<const T> inputs(x);
    const HeadView<T> means(y);
    each_segment(x, y.extent(2), lengths, max_segments,
                 [&](int64_t b, int64_t h, int64_t s, const SegmentBounds::Range& range) {
                   T* mean = means.at(b, h, s);
                   std::fill_n(mean, d, T(0));
                   for (int64_t t = range.begin; t < range.end; ++t) {
                     const T* input = inputs.at(b, h, t);
                     for (int64_t c = 0; c < d; ++c) mean[c] += input[c];
                   }
                   const int64_t size = range.end - range.begin;
                   for (int64_t c = 0; c < d && size > 0; ++c) mean[c] /= static_cast<T>(size);
                 });
  });
}

/// dx[b, h, t, :] = dy[b, h, s, :] / (size of segment s) for the positions t of each segment s, else 0.
template <>
void SegmentMeanBack::cpu<target_isa>(const Tensor& dy, const Tensor& lengths, const Tensor& max_segments,
                                      const Tensor& dx) {
  const int64_t d = dx.extent(3);
  visit_float("segment_mean", dx.dtype(), [&]<class T>(Type<T>) {
    const HeadView<const T> grad_means(dy);
    const HeadView<T> grad_inputs(dx);
    std::fill_n(dx.data<T>(), dx.size(), T(0));
    each_segment(dx, dy.extent(2), lengths, max_segments,
                 [&](int64_t b, int64_t h, int64_t s, const SegmentBounds::Range& range) {
                   const T* grad_mean = grad_means.at(b, h, s);
                   for (int64_t t = range.begin; t < range.end; ++t) {
                     T* grad_input = grad_inputs.at(b, h, t);
                     for (int64_t c = 0; c < d; ++c)
                       grad_input[c] = grad_mean[c] / static_cast<T>(range.end - range.begin);
                   }
                 });
  });
}

}  // namespace heed::kernel

// Means of segments on a GPU: one warp per segment, or per position of the gradient.
#include "heed/core/kernels/content/segment_mean.h"

#include <algorithm>

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// y[b, h, s, :] = mean of x[b, h, t, :] over the positions t of segment s; zeros where there is no such
/// segment. One warp per segment (b, h, s); lanes are columns.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    segment_means(SegmentBounds bounds, HeadView<const T> x, int64_t num_rows, int64_t width, T* y) {
  const int64_t row = cuda::grid_warp();
  if (row >= num_rows) return;
  const int64_t s = row % bounds.segments, h = row / bounds.segments % bounds.heads,
                b = row / bounds.segments / bounds.heads;
  const auto [begin, end] = bounds.range(b, s);
  for (int64_t c = cuda::lane(); c < width; c += cuda::lanes) {
    T sum = 0;
    for (int64_t t = begin; t < end; ++t) sum += x.at(b, h, t)[c];
    y[row * width + c] = begin < end ? sum / static_cast<T>(end - begin) : T(0);
  }
}

/// dx[b, h, t, :] = dy[b, h, s, :] / (size of segment s) for the segment s that holds t; zeros where there is
/// none. One warp per position (b, h, t); lanes are columns.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    spread_gradients(SegmentBounds bounds, HeadView<const T> dy, int64_t num_rows, int64_t width, T* dx) {
  const int64_t row = cuda::grid_warp();
  if (row >= num_rows) return;
  const int64_t t = row % bounds.positions, h = row / bounds.positions % bounds.heads,
                b = row / bounds.positions / bounds.heads;
  const int64_t n = bounds.num_positions(b), r = bounds.num_segments(b);
  const bool has_segment = t < n && r > 0;
  const int64_t s = has_segment ? ((t + 1) * r - 1) / n : 0;  // the last segment that begins at or before t
  const int64_t size = has_segment ? (s + 1) * n / r - s * n / r : 1;
  const T* grad_mean = dy.at(b, h, s);
  for (int64_t c = cuda::lane(); c < width; c += cuda::lanes)
    dx[row * width + c] = has_segment ? grad_mean[c] / static_cast<T>(size) : T(0);
}

}  // namespace

/// Computes y with one warp per segment.
void SegmentMean::cuda(const Tensor& x, const Tensor& lengths, const Tensor& max_segments, const Tensor& y) {
  const SegmentBounds bounds(x, y.extent(2), lengths, max_segments);
  const int64_t num_rows = y.extent(0) * y.extent(1) * y.extent(2);
  visit_float("segment_mean", x.dtype(), [&]<class T>(Type<T>) {
    cuda::run(segment_means<T>, cuda::warp_per_row(num_rows), bounds, HeadView<const T>(x), num_rows,
              x.extent(3), y.data<T>());
  });
  Count::add(x.size());
}

/// Computes dx with one warp per position.
void SegmentMeanBack::cuda(const Tensor& dy, const Tensor& lengths, const Tensor& max_segments,
                           const Tensor& dx) {
  const SegmentBounds bounds(dx, dy.extent(2), lengths, max_segments);
  const int64_t num_rows = dx.extent(0) * dx.extent(1) * dx.extent(2);
  visit_float("segment_mean", dx.dtype(), [&]<class T>(Type<T>) {
    cuda::run(spread_gradients<T>, cuda::warp_per_row(num_rows), bounds, HeadView<const T>(dy), num_rows,
              dx.extent(3), dx.data<T>());
  });
  Count::add(dx.size());
}

}  // namespace heed::kernel

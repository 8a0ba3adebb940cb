// Averages of segments on a GPU: one warp per run, or per position of the gradient.
#include "heed/core/kernels/content/segment_mean.h"

#include <algorithm>

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// How sequences are cut.
struct Cuts {
  int64_t heads, length, runs;
  const int32_t *lengths, *most;

  Cuts(const Tensor& whole, int64_t m, const Tensor& ends, const Tensor& fewer)
      : heads(whole.extent(1)),
        length(whole.extent(2)),
        runs(m),
        lengths(cuda::pointer<int32_t>(ends)),
        most(cuda::pointer<int32_t>(fewer)) {}
  __device__ int64_t positions(int64_t b) const {
    return lengths != nullptr ? std::clamp<int64_t>(lengths[b], 0, length) : length;
  }
  __device__ int64_t count(int64_t b, int64_t n) const {
    const int64_t all = std::min(runs, n);
    return most != nullptr ? std::min<int64_t>(all, most[b]) : all;
  }
};

/// y[b, h, s, :] = mean of x[b, h, t, :] over the positions t of run s, zeros where there is no run s. One
/// warp per run (b, h, s); lanes are columns.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    means(Cuts cuts, HeadView<const T> x, int64_t rows, int64_t width, T* y) {
  const int64_t row = cuda::grid_warp();
  if (row >= rows) return;
  const int64_t s = row % cuts.runs, h = row / cuts.runs % cuts.heads, b = row / cuts.runs / cuts.heads;
  const int64_t n = cuts.positions(b), r = cuts.count(b, n);
  const int64_t first = s < r ? s * n / r : n, last = s < r ? (s + 1) * n / r : n;
  for (int64_t c = cuda::lane(); c < width; c += cuda::lanes) {
    T sum = 0;
    for (int64_t t = first; t < last; ++t) sum += x.at(b, h, t)[c];
    y[row * width + c] = first < last ? sum / static_cast<T>(last - first) : T(0);
  }
}

/// dx[b, h, t, :] = dy[b, h, s, :] / (size of run s) for the run s that holds t; zeros where there is none.
/// One warp per position (b, h, t); lanes are columns.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    spread(Cuts cuts, HeadView<const T> dy, int64_t rows, int64_t width, T* dx) {
  const int64_t row = cuda::grid_warp();
  if (row >= rows) return;
  const int64_t t = row % cuts.length, h = row / cuts.length % cuts.heads, b = row / cuts.length / cuts.heads;
  const int64_t n = cuts.positions(b), r = cuts.count(b, n);
  const bool some = t < n && r > 0;
  const int64_t s = some ? ((t + 1) * r - 1) / n : 0;  // the last run that begins at or before t
  const int64_t size = some ? (s + 1) * n / r - s * n / r : 1;
  const T* from = dy.at(b, h, s);
  for (int64_t c = cuda::lane(); c < width; c += cuda::lanes)
    dx[row * width + c] = some ? from[c] / static_cast<T>(size) : T(0);
}

}  // namespace

void SegmentMean::cuda(const Tensor& x, const Tensor& lengths, const Tensor& most, const Tensor& y) {
  const Cuts cuts(x, y.extent(2), lengths, most);
  const int64_t rows = y.extent(0) * y.extent(1) * y.extent(2);
  visit_float("segment_mean", x.dtype(), [&]<class T>(Type<T>) {
    cuda::run(means<T>, cuda::warps(rows), cuts, HeadView<const T>(x), rows, x.extent(3), y.data<T>());
  });
  Count::add(x.size());
}

void SegmentMeanBack::cuda(const Tensor& dy, const Tensor& lengths, const Tensor& most, const Tensor& dx) {
  const Cuts cuts(dx, dy.extent(2), lengths, most);
  const int64_t rows = dx.extent(0) * dx.extent(1) * dx.extent(2);
  visit_float("segment_mean", dx.dtype(), [&]<class T>(Type<T>) {
    cuda::run(spread<T>, cuda::warps(rows), cuts, HeadView<const T>(dy), rows, dx.extent(3), dx.data<T>());
  });
  Count::add(dx.size());
}

}  // namespace heed::kernel

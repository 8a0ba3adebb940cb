// Depthwise convolution on a GPU: one thread per number. The rows that the taps of neighbours share come from
// the cache.
#include "heed/core/kernels/elementwise/depthwise_convolution.h"

#include <algorithm>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

constexpr int64_t max_parts = 256;     ///< runs of rows whose gradients of the taps are summed apart
constexpr int64_t min_part_rows = 32;  ///< rows of such a run at least

/// The extents of a convolution.
struct Extents3 {
  int64_t rows;      ///< B T
  int64_t length;    ///< T
  int64_t channels;  ///< C
  int64_t num_taps;  ///< k
};

/// y[row, c] = sum_j taps[j, c] x[row + first + step j, c] within the sequence of the row: one thread for
/// each number of y.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    convolve(const T* x, const T* taps, Extents3 shape, TapPlaces places, T* y) {
  const int64_t size = shape.rows * shape.channels;
  for (int64_t i = cuda::global_thread(); i < size; i += cuda::grid_size()) {
    const int64_t c = i % shape.channels, t = i / shape.channels % shape.length;
    T total = 0;
    for (int64_t j = 0; j < shape.num_taps; ++j) {
      const int64_t distance = places.first + places.step * j, place = t + distance;
      if (place >= 0 && place < shape.length)
        total += taps[j * shape.channels + c] * x[i + distance * shape.channels];
    }
    y[i] = total;
  }
}

/// partial_sums [part, k, C] = the gradient of the taps by `part_rows` rows: one thread for each column, part
/// (grid y) and tap (grid z).
template <class T>
__global__ void __launch_bounds__(cuda::block)
    sum_parts(const T* x, const T* dy, Extents3 shape, TapPlaces places, int64_t part_rows, T* partial_sums) {
  const int64_t c = int64_t{blockIdx.x} * cuda::block + threadIdx.x, part = blockIdx.y, j = blockIdx.z;
  if (c >= shape.channels) return;
  const int64_t distance = places.first + places.step * j, end = std::min(shape.rows, (part + 1) * part_rows);
  T total = 0;
  for (int64_t row = part * part_rows; row < end; ++row) {
    const int64_t place = row % shape.length + distance;
    if (place >= 0 && place < shape.length)
      total += dy[row * shape.channels + c] * x[(row + distance) * shape.channels + c];
  }
  partial_sums[(part * shape.num_taps + j) * shape.channels + c] = total;
}

/// dtaps[i] = the sum of partial_sums [count, size] over the parts, in order: one thread for each number.
template <class T>
__global__ void add_parts(const T* partial_sums, int64_t count, int64_t size, T* dtaps) {
  for (int64_t i = cuda::global_thread(); i < size; i += cuda::grid_size()) {
    double total = 0;
    for (int64_t part = 0; part < count; ++part) total += static_cast<double>(partial_sums[part * size + i]);
    dtaps[i] = static_cast<T>(total);
  }
}

Extents3 extents_of(const Tensor& x, int64_t num_taps) {
  const int64_t channels = x.extent(2);
  return {.rows = channels > 0 ? x.size() / channels : 0,
          .length = x.extent(1),
          .channels = channels,
          .num_taps = num_taps};
}

}  // namespace

/// Starts convolve() with one thread per number.
void DepthwiseConvolution::cuda(const Tensor& x, const Tensor& taps, TapPlaces places, const Tensor& y) {
  visit_float("depthwise_convolution", x.dtype(), [&]<class T>(Type<T>) {
    cuda::run(convolve<T>, cuda::grid_over(x.size(), cuda::block), static_cast<const T*>(x.data<T>()),
              static_cast<const T*>(taps.data<T>()), extents_of(x, taps.extent(0)), places, y.data<T>());
  });
  Count::add(taps.extent(0) * x.size());
}

/// Sums parts of the rows, then adds their sums in order.
void DepthwiseConvolutionTaps::cuda(const Tensor& x, const Tensor& dy, TapPlaces places,
                                    const Tensor& dtaps) {
  const Extents3 shape = extents_of(x, dtaps.extent(0));
  const int64_t part_rows = std::max(min_part_rows, ceil_div(shape.rows, max_parts)),
                count = ceil_div(shape.rows, part_rows);
  visit_float("depthwise_convolution", x.dtype(), [&]<class T>(Type<T>) {
    const Tensor parts = empty_like(x, Shape{std::max<int64_t>(count, 1), shape.num_taps, shape.channels});
    const cuda::Grid grid{.blocks = dim3(static_cast<unsigned>(ceil_div(shape.channels, cuda::block)),
                                         static_cast<unsigned>(count), static_cast<unsigned>(shape.num_taps)),
                          .threads = dim3(cuda::block)};
    cuda::run(sum_parts<T>, grid, static_cast<const T*>(x.data<T>()), static_cast<const T*>(dy.data<T>()),
              shape, places, part_rows, parts.data<T>());
    cuda::run(add_parts<T>, cuda::grid_over(dtaps.size()), static_cast<const T*>(parts.data<T>()), count,
              dtaps.size(), dtaps.data<T>());
  });
  Count::add(dtaps.extent(0) * x.size());
}

}  // namespace heed::kernel

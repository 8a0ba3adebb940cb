// Softmax of rows on a GPU: a warp keeps a short row in its registers, a block reads a long one twice.
#include "heed/core/kernels/norm/softmax.h"

#include <algorithm>
#include <cmath>

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/kernels/simd/math.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

using cuda::lane;
using cuda::lanes;

constexpr int64_t short_width = 1024;

/// The number subtracted before exp: the row's maximum, or 0 in a row of -inf, whose exponentials are then 0.
template <class T>
__device__ T finite_max(T row_max) {
  return row_max == minus_infinity<T> ? T(0) : row_max;
}

/// softmax(x) = exp(x - shift) / total, or log softmax(x) = x - shift - log(total), for total = sum exp(x -
/// shift).
template <class T, bool logs>
struct Normalizer {
  T shift, log_total_or_inverse;

  __device__ Normalizer(T row_max, T total) : shift(finite_max(row_max)) {
    if constexpr (logs)
      log_total_or_inverse = total == T(0) ? T(0) : std::log(total);
    else
      log_total_or_inverse = total == T(0) ? T(0) : T(1) / total;
  }
  __device__ T operator()(T x) const {
    if constexpr (logs) return x - shift - log_total_or_inverse;
    return math::exp(x - shift) * log_total_or_inverse;
  }
};

/// y[row, :] = softmax or log softmax of x[row, :], for rows of up to 32 per_lane numbers: one warp per
/// row, which keeps it in registers.
template <class T, int per_lane, bool logs>
__global__ void __launch_bounds__(cuda::block) short_rows(const T* x, int64_t rows, int64_t width, T* y) {
  const int64_t row = cuda::grid_warp();
  if (row >= rows) return;
  x += row * width;
  y += row * width;
  T value[per_lane], row_max = minus_infinity<T>, total = 0;
  for (int j = 0; j < per_lane; ++j) {
    const int64_t i = lane() + j * lanes;
    value[j] = i < width ? x[i] : minus_infinity<T>;
    row_max = std::max(row_max, value[j]);
  }
  row_max = cuda::warp_max(row_max);
  for (int j = 0; j < per_lane; ++j) total += math::exp(value[j] - finite_max(row_max));
  const Normalizer<T, logs> normalize(row_max, cuda::warp_sum(total));
  for (int j = 0; j < per_lane; ++j) {
    const int64_t i = lane() + j * lanes;
    if (i < width) y[i] = normalize(value[j]);
  }
}

/// y[row, :] = softmax or log softmax of x[row, :] for rows of any width: one block per row. Each thread
/// first finds its maximum and its sum of exponentials in one pass (online softmax); a second pass writes y.
template <class T, bool logs>
__global__ void __launch_bounds__(cuda::block) long_rows(const T* x, int64_t width, T* y) {
  __shared__ T scratch[lanes];
  x += int64_t{blockIdx.x} * width;
  y += int64_t{blockIdx.x} * width;
  T thread_max = minus_infinity<T>, total = 0;
  for (int64_t i = threadIdx.x; i < width; i += cuda::block) {
    const T value = x[i];
    if (value > thread_max) {
      total *= math::exp(thread_max - value);
      thread_max = value;
    }
    total += math::exp(value - finite_max(thread_max));
  }
  const T row_max = cuda::block_max(thread_max, minus_infinity<T>, scratch);
  if (thread_max != minus_infinity<T>) total *= math::exp(thread_max - row_max);
  total = cuda::block_sum(total, scratch);
  const Normalizer<T, logs> normalize(row_max, total);
  for (int64_t i = threadIdx.x; i < width; i += cuda::block) y[i] = normalize(x[i]);
}

/// dx = y (dy - sum(y dy)) for softmax, or dy - exp(y) sum(dy) for log softmax: the terms of the sum, then
/// dx.
template <class T, bool logs>
struct RowGradient {
  __device__ static T term(T y, T dy) { return logs ? dy : y * dy; }
  __device__ static T dx(T y, T dy, T total) {
    if constexpr (logs) return dy - math::exp(y) * total;
    return y * (dy - total);
  }
};

/// dx[row, :] of softmax or log softmax, for rows of up to 32 per_lane numbers: one warp per row, which keeps
/// it in registers.
template <class T, int per_lane, bool logs>
__global__ void __launch_bounds__(cuda::block)
    short_gradients(const T* y, const T* dy, int64_t rows, int64_t width, T* dx) {
  const int64_t row = cuda::grid_warp();
  if (row >= rows) return;
  y += row * width;
  dy += row * width;
  dx += row * width;
  T value[per_lane], dy_value[per_lane], total = 0;
  for (int j = 0; j < per_lane; ++j) {
    const int64_t i = lane() + j * lanes;
    value[j] = i < width ? y[i] : T(0);
    dy_value[j] = i < width ? dy[i] : T(0);
    total += RowGradient<T, logs>::term(value[j], dy_value[j]);
  }
  total = cuda::warp_sum(total);
  for (int j = 0; j < per_lane; ++j) {
    const int64_t i = lane() + j * lanes;
    if (i < width) dx[i] = RowGradient<T, logs>::dx(value[j], dy_value[j], total);
  }
}

/// dx[row, :] of softmax or log softmax for rows of any width: one block per row, which reads it twice.
template <class T, bool logs>
__global__ void __launch_bounds__(cuda::block) long_gradients(const T* y, const T* dy, int64_t width, T* dx) {
  __shared__ T scratch[lanes];
  const int64_t first = int64_t{blockIdx.x} * width;
  T total = 0;
  for (int64_t i = first + threadIdx.x; i < first + width; i += cuda::block)
    total += RowGradient<T, logs>::term(y[i], dy[i]);
  total = cuda::block_sum(total, scratch);
  for (int64_t i = first + threadIdx.x; i < first + width; i += cuda::block)
    dx[i] = RowGradient<T, logs>::dx(y[i], dy[i], total);
}

/// Calls f(std::integral_constant<int, per_lane>), per_lane being the numbers of a short row that each lane
/// keeps.
template <class F>
void with_per_lane(int64_t width, F&& f) {
  if (width <= 2 * lanes) return f(std::integral_constant<int, 2>{});
  if (width <= 8 * lanes) return f(std::integral_constant<int, 8>{});
  f(std::integral_constant<int, short_width / lanes>{});
}

/// y = softmax, or with `logs` log softmax, of each row: one warp per row of up to 1024 numbers, else one
/// block per row.
template <bool logs>
void forward(const char* op, const Tensor& x, const Tensor& y) {
  const int64_t width = x.rank() > 0 ? x.extent(-1) : 1;
  if (x.size() == 0) return;
  const int64_t rows = x.size() / width;
  visit_float(op, x.dtype(), [&]<class T>(Type<T>) {
    const T* from = x.data<T>();
    T* to = y.data<T>();
    if (width > short_width) return cuda::run(long_rows<T, logs>, cuda::blocks(rows), from, width, to);
    with_per_lane(width, [&](auto per_lane) {
      cuda::run(short_rows<T, decltype(per_lane)::value, logs>, cuda::warps(rows), from, rows, width, to);
    });
  });
  Count::add(x.size());
}

/// dx of softmax, or with `logs` of log softmax, from y and dy: one warp per row of up to 1024 numbers, else
/// one block per row.
template <bool logs>
void backward(const char* op, const Tensor& y, const Tensor& dy, const Tensor& dx) {
  const int64_t width = y.rank() > 0 ? y.extent(-1) : 1;
  if (y.size() == 0) return;
  const int64_t rows = y.size() / width;
  visit_float(op, y.dtype(), [&]<class T>(Type<T>) {
    const T *ys = y.data<T>(), *dys = dy.data<T>();
    T* to = dx.data<T>();
    if (width > short_width)
      return cuda::run(long_gradients<T, logs>, cuda::blocks(rows), ys, dys, width, to);
    with_per_lane(width, [&](auto per_lane) {
      cuda::run(short_gradients<T, decltype(per_lane)::value, logs>, cuda::warps(rows), ys, dys, rows, width,
                to);
    });
  });
  Count::add(y.size());
}

}  // namespace

void Softmax::cuda(const Tensor& x, const Tensor& y) { forward<false>("softmax", x, y); }
void SoftmaxBack::cuda(const Tensor& y, const Tensor& dy, const Tensor& dx) {
  backward<false>("softmax", y, dy, dx);
}
void LogSoftmax::cuda(const Tensor& x, const Tensor& y) { forward<true>("log_softmax", x, y); }
void LogSoftmaxBack::cuda(const Tensor& y, const Tensor& dy, const Tensor& dx) {
  backward<true>("log_softmax", y, dy, dx);
}

}  // namespace heed::kernel

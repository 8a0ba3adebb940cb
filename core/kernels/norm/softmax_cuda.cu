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

constexpr int64_t short_width = 1024;  ///< up to here a warp takes a row

/// The number subtracted before exp: the row's maximum, or 0 in a row of -inf, whose exponentials are then 0.
template <class T>
__device__ T finite_max(T row_max) {
  return row_max == minus_infinity<T> ? T(0) : row_max;
}

/// softmax(x) = exp(x - shift) / total, or log softmax(x) = x - shift - log(total), for total = sum exp(x -
/// shift).
template <class T, bool is_log>
struct Normalizer {
  T shift, log_or_inverse;  ///< log(total), or 1 / total; 0 in a row of -inf

  __device__ Normalizer(T row_max, T total)
      : shift(finite_max(row_max)),
        log_or_inverse(total == T(0) ? T(0)
                       : is_log      ? std::log(total)
                                     : T(1) / total) {}
  __device__ T operator()(T x) const {
    if constexpr (is_log) return x - shift - log_or_inverse;
    return math::exp(x - shift) * log_or_inverse;
  }
};

/// y[row, :] = softmax or log softmax of x[row, :], for rows of up to 32 per_lane numbers: one warp per
/// row, which keeps it in registers.
template <class T, int per_lane, bool is_log>
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
  const Normalizer<T, is_log> normalize(row_max, cuda::warp_sum(total));
  for (int j = 0; j < per_lane; ++j) {
    const int64_t i = lane() + j * lanes;
    if (i < width) y[i] = normalize(value[j]);
  }
}

/// y[row, :] = softmax or log softmax of x[row, :] for rows of any width: one block per row. Each thread
/// first finds its maximum and its sum of exponentials in one pass (online softmax); a second pass writes y.
template <class T, bool is_log>
__global__ void __launch_bounds__(cuda::block) long_rows(const T* x, int64_t width, T* y) {
  __shared__ T scratch[lanes];
  x += int64_t{blockIdx.x} * width;
  y += int64_t{blockIdx.x} * width;
  T thread_max = minus_infinity<T>, thread_total = 0;
  for (int64_t i = threadIdx.x; i < width; i += cuda::block) {
    const T value = x[i];
    if (value > thread_max) {
      thread_total *= math::exp(thread_max - value);
      thread_max = value;
    }
    thread_total += math::exp(value - finite_max(thread_max));
  }
  const T row_max = cuda::block_max(thread_max, minus_infinity<T>, scratch);
  thread_total *= math::exp(thread_max - finite_max(row_max));
  const Normalizer<T, is_log> normalize(row_max, cuda::block_sum(thread_total, scratch));
  for (int64_t i = threadIdx.x; i < width; i += cuda::block) y[i] = normalize(x[i]);
}

/// The gradient dx = y (dy - sum(y dy)) of softmax, or dy - exp(y) sum(dy) of log softmax.
template <class T, bool is_log>
struct RowGradient {
  __device__ static T term(T y, T dy) { return is_log ? dy : y * dy; }  ///< term of the sum
  __device__ static T dx(T y, T dy, T sum) {
    if constexpr (is_log) return dy - math::exp(y) * sum;
    return y * (dy - sum);
  }
};

/// dx[row, :] of softmax or log softmax, for rows of up to 32 per_lane numbers: one warp per row, which keeps
/// it in registers.
template <class T, int per_lane, bool is_log>
__global__ void __launch_bounds__(cuda::block)
    short_gradients(const T* y, const T* dy, int64_t rows, int64_t width, T* dx) {
  const int64_t row = cuda::grid_warp();
  if (row >= rows) return;
  y += row * width;
  dy += row * width;
  dx += row * width;
  T y_values[per_lane], dy_values[per_lane], sum = 0;
  for (int j = 0; j < per_lane; ++j) {
    const int64_t i = lane() + j * lanes;
    y_values[j] = i < width ? y[i] : T(0);
    dy_values[j] = i < width ? dy[i] : T(0);
    sum += RowGradient<T, is_log>::term(y_values[j], dy_values[j]);
  }
  sum = cuda::warp_sum(sum);
  for (int j = 0; j < per_lane; ++j) {
    const int64_t i = lane() + j * lanes;
    if (i < width) dx[i] = RowGradient<T, is_log>::dx(y_values[j], dy_values[j], sum);
  }
}

/// dx[row, :] of softmax or log softmax for rows of any width: one block per row, which reads it twice.
template <class T, bool is_log>
__global__ void __launch_bounds__(cuda::block) long_gradients(const T* y, const T* dy, int64_t width, T* dx) {
  __shared__ T scratch[lanes];
  const int64_t first = int64_t{blockIdx.x} * width;
  T sum = 0;
  for (int64_t i = first + threadIdx.x; i < first + width; i += cuda::block)
    sum += RowGradient<T, is_log>::term(y[i], dy[i]);
  sum = cuda::block_sum(sum, scratch);
  for (int64_t i = first + threadIdx.x; i < first + width; i += cuda::block)
    dx[i] = RowGradient<T, is_log>::dx(y[i], dy[i], sum);
}

/// Calls f(std::integral_constant<int, per_lane>), per_lane being the numbers of a short row that each lane
/// keeps.
template <class F>
void with_per_lane(int64_t width, F&& f) {
  if (width <= 2 * lanes) return f(std::integral_constant<int, 2>{});
  if (width <= 8 * lanes) return f(std::integral_constant<int, 8>{});
  f(std::integral_constant<int, short_width / lanes>{});
}

/// y = softmax, or with `is_log` log softmax, of each row: one warp per row of up to 1024 numbers, else one
/// block per row.
template <bool is_log>
void forward(const char* op, const Tensor& x, const Tensor& y) {
  const int64_t width = x.rank() > 0 ? x.extent(-1) : 1;
  if (x.size() == 0) return;
  const int64_t rows = x.size() / width;
  visit_float(op, x.dtype(), [&]<class T>(Type<T>) {
    const T* xs = x.data<T>();
    T* ys = y.data<T>();
    if (width > short_width) return cuda::run(long_rows<T, is_log>, cuda::block_per_row(rows), xs, width, ys);
    with_per_lane(width, [&](auto per_lane) {
      cuda::run(short_rows<T, decltype(per_lane)::value, is_log>, cuda::warp_per_row(rows), xs, rows, width,
                ys);
    });
  });
  Count::add(x.size());
}

/// dx of softmax, or with `is_log` of log softmax, from y and dy: one warp per row of up to 1024 numbers,
/// else one block per row.
template <bool is_log>
void backward(const char* op, const Tensor& y, const Tensor& dy, const Tensor& dx) {
  const int64_t width = y.rank() > 0 ? y.extent(-1) : 1;
  if (y.size() == 0) return;
  const int64_t rows = y.size() / width;
  visit_float(op, y.dtype(), [&]<class T>(Type<T>) {
    const T *ys = y.data<T>(), *dys = dy.data<T>();
    T* dxs = dx.data<T>();
    if (width > short_width)
      return cuda::run(long_gradients<T, is_log>, cuda::block_per_row(rows), ys, dys, width, dxs);
    with_per_lane(width, [&](auto per_lane) {
      cuda::run(short_gradients<T, decltype(per_lane)::value, is_log>, cuda::warp_per_row(rows), ys, dys,
                rows, width, dxs);
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

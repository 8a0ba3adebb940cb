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

/// What is subtracted before exp: the largest x, or 0 in a row of -inf, whose exponentials are then all 0.
template <class T>
__device__ T shift_of(T most) {
  return most == cuda::lowest<T>() ? T(0) : most;
}

/// y = exp(x - shift) / total, or x - shift - log(total).
template <class T, bool logs>
struct Finish {
  T shift, factor;

  __device__ Finish(T most, T total) : shift(shift_of(most)) {
    if constexpr (logs)
      factor = total == T(0) ? T(0) : std::log(total);
    else
      factor = total == T(0) ? T(0) : T(1) / total;
  }
  __device__ T operator()(T x) const {
    if constexpr (logs) return x - shift - factor;
    return math::exp(x - shift) * factor;
  }
};

/// y[row, :] = softmax or log softmax of x[row, :], for rows of up to 32 `each`: one warp per row, which
/// keeps it in registers.
template <class T, int each, bool logs>
__global__ void __launch_bounds__(cuda::block) short_rows(const T* x, int64_t rows, int64_t width, T* y) {
  const int64_t row = cuda::grid_warp();
  if (row >= rows) return;
  x += row * width;
  y += row * width;
  T value[each], most = cuda::lowest<T>(), total = 0;
  for (int j = 0; j < each; ++j) {
    const int64_t i = lane() + j * lanes;
    value[j] = i < width ? x[i] : cuda::lowest<T>();
    most = std::max(most, value[j]);
  }
  most = cuda::warp_max(most);
  for (int j = 0; j < each; ++j) total += math::exp(value[j] - shift_of(most));
  const Finish<T, logs> finish(most, cuda::warp_sum(total));
  for (int j = 0; j < each; ++j) {
    const int64_t i = lane() + j * lanes;
    if (i < width) y[i] = finish(value[j]);
  }
}

/// The same for rows of any width: one block per row. The first sweep finds the largest x and the sum of
/// exponentials, the second writes y.
template <class T, bool logs>
__global__ void __launch_bounds__(cuda::block) long_rows(const T* x, int64_t width, T* y) {
  __shared__ T scratch[lanes];
  x += int64_t{blockIdx.x} * width;
  y += int64_t{blockIdx.x} * width;
  T own = cuda::lowest<T>(), total = 0;
  for (int64_t i = threadIdx.x; i < width; i += cuda::block) {
    const T value = x[i];
    if (value > own) {
      total *= math::exp(own - value);
      own = value;
    }
    total += math::exp(value - shift_of(own));
  }
  const T most = cuda::block_max(own, cuda::lowest<T>(), scratch);
  if (own != cuda::lowest<T>()) total *= math::exp(own - most);
  total = cuda::block_sum(total, scratch);
  const Finish<T, logs> finish(most, total);
  for (int64_t i = threadIdx.x; i < width; i += cuda::block) y[i] = finish(x[i]);
}

/// dx = y (dy - sum(y dy)), or dy - exp(y) sum(dy).
template <class T, bool logs>
struct RowGradient {
  __device__ static T term(T y, T dy) { return logs ? dy : y * dy; }
  __device__ static T of(T y, T dy, T total) {
    if constexpr (logs) return dy - math::exp(y) * total;
    return y * (dy - total);
  }
};

/// dx[row, :] of softmax or log softmax, for rows of up to 32 `each`: one warp per row, which keeps it in
/// registers.
template <class T, int each, bool logs>
__global__ void __launch_bounds__(cuda::block)
    short_gradients(const T* y, const T* dy, int64_t rows, int64_t width, T* dx) {
  const int64_t row = cuda::grid_warp();
  if (row >= rows) return;
  y += row * width;
  dy += row * width;
  dx += row * width;
  T value[each], dy_value[each], total = 0;
  for (int j = 0; j < each; ++j) {
    const int64_t i = lane() + j * lanes;
    value[j] = i < width ? y[i] : T(0);
    dy_value[j] = i < width ? dy[i] : T(0);
    total += RowGradient<T, logs>::term(value[j], dy_value[j]);
  }
  total = cuda::warp_sum(total);
  for (int j = 0; j < each; ++j) {
    const int64_t i = lane() + j * lanes;
    if (i < width) dx[i] = RowGradient<T, logs>::of(value[j], dy_value[j], total);
  }
}

template <class T, bool logs>
__global__ void __launch_bounds__(cuda::block) long_gradients(const T* y, const T* dy, int64_t width, T* dx) {
  __shared__ T scratch[lanes];
  const int64_t first = int64_t{blockIdx.x} * width;
  T total = 0;
  for (int64_t i = first + threadIdx.x; i < first + width; i += cuda::block)
    total += RowGradient<T, logs>::term(y[i], dy[i]);
  total = cuda::block_sum(total, scratch);
  for (int64_t i = first + threadIdx.x; i < first + width; i += cuda::block)
    dx[i] = RowGradient<T, logs>::of(y[i], dy[i], total);
}

/// y = softmax, or with `logs` log softmax, of each row: one warp per row of up to 1024 numbers, else one
/// block per row.
template <bool logs>
void forward(const char* op, const Tensor& x, const Tensor& y) {
  const int64_t width = x.rank() > 0 ? x.extent(-1) : 1;
  if (x.size() == 0) return;
  const int64_t rows = x.size() / width;
  visit_float(op, x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T* from = x.data<T>();
    T* to = y.data<T>();
    if (width <= 2 * lanes)
      cuda::run(short_rows<T, 2, logs>, cuda::warps(rows), from, rows, width, to);
    else if (width <= 8 * lanes)
      cuda::run(short_rows<T, 8, logs>, cuda::warps(rows), from, rows, width, to);
    else if (width <= short_width)
      cuda::run(short_rows<T, short_width / lanes, logs>, cuda::warps(rows), from, rows, width, to);
    else
      cuda::run(long_rows<T, logs>, cuda::blocks(rows), from, width, to);
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
  visit_float(op, y.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T *from = y.data<T>(), *dy_value = dy.data<T>();
    T* to = dx.data<T>();
    if (width <= 2 * lanes)
      cuda::run(short_gradients<T, 2, logs>, cuda::warps(rows), from, dy_value, rows, width, to);
    else if (width <= 8 * lanes)
      cuda::run(short_gradients<T, 8, logs>, cuda::warps(rows), from, dy_value, rows, width, to);
    else if (width <= short_width)
      cuda::run(short_gradients<T, short_width / lanes, logs>, cuda::warps(rows), from, dy_value, rows, width,
                to);
    else
      cuda::run(long_gradients<T, logs>, cuda::blocks(rows), from, dy_value, width, to);
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

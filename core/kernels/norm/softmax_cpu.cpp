// Softmax of rows on the CPU.
#include "heed/core/kernels/norm/softmax.h"

#include <algorithm>
#include <cmath>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

constexpr int64_t block = 1024;  ///< exponentials that are added in T; blocks are added in double
constexpr int64_t exp_grain = light_grain / 4;  ///< numbers of a task: exp costs about four light operations

/// The number subtracted before exp: the row's maximum, or 0 in a row of -inf, whose exponentials are then 0.
template <class T>
T finite_max(const T* x, int64_t width) {
  const T row_max = lanes::largest(x, width);
  return row_max == minus_infinity<T> ? T(0) : row_max;
}

/// y = exp(x - shift), with y [width]; returns the sum of y.
template <class T>
double exponentials(const T* x, T shift, T* y, int64_t width) {
  double total = 0;
  for (int64_t begin = 0; begin < width; begin += block) {
    const int64_t end = std::min(width, begin + block);
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) y[i] = math::exp(x[i] - shift);
    total += static_cast<double>(lanes::sum(y + begin, end - begin));
  }
  return total;
}

/// Returns the sum of exp(x - shift) over a row.
template <class T>
double exponential_sum(const T* x, T shift, int64_t width) {
  T y[block];
  double total = 0;
  for (int64_t begin = 0; begin < width; begin += block) {
    const int64_t count = std::min(block, width - begin);
    for (int64_t i = 0; i < count; ++i) y[i] = math::exp(x[begin + i] - shift);
    total += static_cast<double>(lanes::sum(y, count));
  }
  return total;
}

constexpr int64_t short_width = 32;  ///< up to here short_rows() takes rows, short_group at a time
constexpr int64_t short_group = 16;

/// y = softmax of short_group rows of up to short_width numbers: vector lanes are rows, so nothing is added
/// across lanes.
template <class T>
void short_rows(const T* x, int64_t width, T* y) {
  constexpr int64_t rows = short_group;
  T powers[short_width][rows], row_max[rows], total[rows];  // powers: x transposed, then exp(x - row_max)
  for (int64_t i = 0; i < width; ++i) {
    for (int64_t r = 0; r < rows; ++r) powers[i][r] = x[r * width + i];
  }
  std::copy_n(powers[0], rows, row_max);
  for (int64_t i = 1; i < width; ++i) {
    for (int64_t r = 0; r < rows; ++r) row_max[r] = powers[i][r] > row_max[r] ? powers[i][r] : row_max[r];
  }
  for (int64_t r = 0; r < rows; ++r) {
    row_max[r] = row_max[r] == minus_infinity<T> ? T(0) : row_max[r];
    total[r] = T(0);
  }
  for (int64_t i = 0; i < width; ++i) {
    for (int64_t r = 0; r < rows; ++r) {
      powers[i][r] = math::exp(powers[i][r] - row_max[r]);
      total[r] += powers[i][r];
    }
  }
  T* scale = total;
  for (int64_t r = 0; r < rows; ++r) scale[r] = total[r] == T(0) ? T(0) : T(1) / total[r];
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < width; ++i) y[r * width + i] = powers[i][r] * scale[r];
  }
}

/// y = softmax of one row.
template <class T>
void one_row(const T* x, int64_t width, T* y) {
  const double total = exponentials(x, finite_max(x, width), y, width);
  const T scale = total == 0 ? T(0) : static_cast<T>(1 / total);
#pragma GCC ivdep
  for (int64_t i = 0; i < width; ++i) y[i] *= scale;
}

int64_t row_width(const Tensor& x) { return x.rank() > 0 ? x.extent(-1) : 1; }

/// Calls f(offset, width) for each row of the last axis of x, in parallel, and counts one operation for each
/// element. One task is some rows.
template <class F>
void for_rows(const Tensor& x, F&& f) {
  if (x.size() == 0) return;
  const int64_t width = row_width(x);
  parallel_rows(x.size() / width, exp_grain / width, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) f(row * width, width);
  });
  Count::add(x.size());
}

}  // namespace

/// y[row, :] = exp(x[row, :] - max) / sum, zeros in a row of -inf. One task is some rows, or some groups of
/// 16 rows where rows have up to 32 numbers.
template <>
void Softmax::cpu<target_isa>(const Tensor& x, const Tensor& y) {
  visit_float("softmax", x.dtype(), [&]<class T>(Type<T>) {
    const T* xs = x.data<T>();
    T* ys = y.data<T>();
    if (x.size() == 0) return;
    const int64_t width = row_width(x), rows = x.size() / width;
    const int64_t group = width <= short_width ? short_group : 1;  // rows
    parallel_rows(ceil_div(rows, group), exp_grain / (width * group), [&](int64_t begin, int64_t end) {
      int64_t row = begin * group;
      const int64_t end_row = std::min(rows, end * group);
      for (; group > 1 && row + group <= end_row; row += group) {
        short_rows(xs + row * width, width, ys + row * width);
      }
      for (; row < end_row; ++row) one_row(xs + row * width, width, ys + row * width);
    });
  });
  Count::add(x.size());
}

/// dx[row, :] = y (dy - sum(y dy)). One task is some rows.
template <>
void SoftmaxBack::cpu<target_isa>(const Tensor& y, const Tensor& dy, const Tensor& dx) {
  visit_float("softmax", y.dtype(), [&]<class T>(Type<T>) {
    for_rows(y, [ys = y.data<T>(), dys = dy.data<T>(), dxs = dx.data<T>()](int64_t offset, int64_t width) {
      const T *y_row = ys + offset, *dy_row = dys + offset;
      T* dx_row = dxs + offset;
      const T y_dot_dy = lanes::dot(y_row, dy_row, width);
#pragma GCC ivdep
      for (int64_t i = 0; i < width; ++i) dx_row[i] = y_row[i] * (dy_row[i] - y_dot_dy);
    });
  });
}

/// y[row, :] = x[row, :] - max - log sum exp(x - max). One task is some rows.
template <>
void LogSoftmax::cpu<target_isa>(const Tensor& x, const Tensor& y) {
  visit_float("log_softmax", x.dtype(), [&]<class T>(Type<T>) {
    for_rows(x, [xs = x.data<T>(), ys = y.data<T>()](int64_t offset, int64_t width) {
      const T* x_row = xs + offset;
      T* y_row = ys + offset;
      const T shift = finite_max(x_row, width);
      const double total = exponential_sum(x_row, shift, width);
      const T log_sum = total == 0 ? T(0) : static_cast<T>(std::log(total));
#pragma GCC ivdep
      for (int64_t i = 0; i < width; ++i) y_row[i] = x_row[i] - shift - log_sum;
    });
  });
}

/// dx[row, :] = dy - exp(y) sum(dy). One task is some rows.
template <>
void LogSoftmaxBack::cpu<target_isa>(const Tensor& y, const Tensor& dy, const Tensor& dx) {
  visit_float("log_softmax", y.dtype(), [&]<class T>(Type<T>) {
    for_rows(y, [ys = y.data<T>(), dys = dy.data<T>(), dxs = dx.data<T>()](int64_t offset, int64_t width) {
      const T *y_row = ys + offset, *dy_row = dys + offset;
      T* dx_row = dxs + offset;
      const T sum_dy = static_cast<T>(lanes::long_sum(dy_row, width));
#pragma GCC ivdep
      for (int64_t i = 0; i < width; ++i) dx_row[i] = dy_row[i] - math::exp(y_row[i]) * sum_dy;
    });
  });
}

}  // namespace heed::kernel

// Softmax of rows on the CPU.
#include "heed/core/kernels/norm/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

constexpr int64_t block = 1024;

/// What is subtracted before exp: the largest x, or 0 in a row of -inf, whose exponentials are then all 0.
template <class T>
T shift_of(const T* x, int64_t width) {
  const T most = lanes::largest(x, width);
  return most == -std::numeric_limits<T>::infinity() ? T(0) : most;
}

/// y = exp(x - shift); gives the sum.
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

/// The sum of exp(x - shift) alone.
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

constexpr int64_t short_width = 32;

/// Softmax of 16 short rows side by side: lanes are rows, so nothing is added across lanes.
template <class T>
void short_rows(const T* x, int64_t width, T* y) {
  constexpr int64_t rows = 16;
  T transposed[short_width][rows], most[rows], total[rows];
  for (int64_t i = 0; i < width; ++i) {
    for (int64_t r = 0; r < rows; ++r) transposed[i][r] = x[r * width + i];
  }
  std::copy_n(transposed[0], rows, most);
  for (int64_t i = 1; i < width; ++i) {
    for (int64_t r = 0; r < rows; ++r) most[r] = transposed[i][r] > most[r] ? transposed[i][r] : most[r];
  }
  for (int64_t r = 0; r < rows; ++r) {
    most[r] = most[r] == -std::numeric_limits<T>::infinity() ? T(0) : most[r];
    total[r] = T(0);
  }
  for (int64_t i = 0; i < width; ++i) {
    for (int64_t r = 0; r < rows; ++r) {
      transposed[i][r] = math::exp(transposed[i][r] - most[r]);
      total[r] += transposed[i][r];
    }
  }
  for (int64_t r = 0; r < rows; ++r) total[r] = total[r] == T(0) ? T(0) : T(1) / total[r];
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < width; ++i) y[r * width + i] = transposed[i][r] * total[r];
  }
}

/// Softmax of one row.
template <class T>
void one_row(const T* x, int64_t width, T* y) {
  const double total = exponentials(x, shift_of(x, width), y, width);
  const T scale = total == 0 ? T(0) : static_cast<T>(1 / total);
#pragma GCC ivdep
  for (int64_t i = 0; i < width; ++i) y[i] *= scale;
}

/// Calls f(row pointers...) for each row of the last axis, in parallel.
template <class F>
void for_rows(const Tensor& empty_like, F&& f) {
  const int64_t width = empty_like.rank() > 0 ? empty_like.extent(-1) : 1;
  if (empty_like.size() == 0) return;
  parallel_rows(empty_like.size() / width, light_grain / 4 / width, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) f(row * width, width);
  });
  Count::add(empty_like.size());
}

}  // namespace

/// y[row, :] = exp(x[row, :] - max) / sum, zeros in a row of -inf. One task is some rows, or
/// some groups of 16 rows where rows have up to 32 numbers.
template <>
void Softmax::cpu<here>(const Tensor& x, const Tensor& y) {
  visit_float("softmax", x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T* from = x.data<T>();
    T* to = y.data<T>();
    const int64_t width = x.rank() > 0 ? x.extent(-1) : 1;
    if (x.size() == 0) return;
    const int64_t rows = x.size() / width;
    const int64_t together = width <= short_width ? 16 : 1;
    parallel_rows(ceil_div(rows, together), light_grain / 4 / (width * together),
                  [&](int64_t begin, int64_t end) {
                    int64_t row = begin * together;
                    const int64_t last = std::min(rows, end * together);
                    for (; together > 1 && row + together <= last; row += together) {
                      short_rows(from + row * width, width, to + row * width);
                    }
                    for (; row < last; ++row) one_row(from + row * width, width, to + row * width);
                  });
  });
  Count::add(x.size());
}

/// dx[row, :] = y (dy - sum(y dy)). One task is some rows.
template <>
void SoftmaxBack::cpu<here>(const Tensor& y, const Tensor& dy, const Tensor& dx) {
  visit_float("softmax", y.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T* py = y.data<T>();
    const T* pdy = dy.data<T>();
    T* pdx = dx.data<T>();
    for_rows(y, [&](int64_t at, int64_t width) {
      const T* a = py + at;
      const T* g = pdy + at;
      const T inner = lanes::dot(a, g, width);
#pragma GCC ivdep
      for (int64_t i = 0; i < width; ++i) pdx[at + i] = a[i] * (g[i] - inner);
    });
  });
}

/// y[row, :] = x[row, :] - max - log sum exp(x - max). One task is some rows.
template <>
void LogSoftmax::cpu<here>(const Tensor& x, const Tensor& y) {
  visit_float("log_softmax", x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T* from = x.data<T>();
    T* to = y.data<T>();
    for_rows(x, [&](int64_t at, int64_t width) {
      const T shift = shift_of(from + at, width);
      const double total = exponential_sum(from + at, shift, width);
      const T log_sum = total == 0 ? T(0) : static_cast<T>(std::log(total));
      const T* row = from + at;
#pragma GCC ivdep
      for (int64_t i = 0; i < width; ++i) to[at + i] = row[i] - shift - log_sum;
    });
  });
}

/// dx[row, :] = dy - exp(y) sum(dy). One task is some rows.
template <>
void LogSoftmaxBack::cpu<here>(const Tensor& y, const Tensor& dy, const Tensor& dx) {
  visit_float("log_softmax", y.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T* py = y.data<T>();
    const T* pdy = dy.data<T>();
    T* pdx = dx.data<T>();
    for_rows(y, [&](int64_t at, int64_t width) {
      const T* a = py + at;
      const T* g = pdy + at;
      const T total = static_cast<T>(lanes::long_sum(g, width));
#pragma GCC ivdep
      for (int64_t i = 0; i < width; ++i) pdx[at + i] = g[i] - math::exp(a[i]) * total;
    });
  });
}

}  // namespace heed::kernel

// Sums, dot products and maxima of contiguous rows, in vectors of 64 bytes on every instruction set (unlike
// vector.h): the order of addition depends on the length alone.
#pragma once

#include <cstdint>
#include <cstring>

#include "heed/core/kernels/simd/vector.h"
#include "heed/core/minus_infinity.h"

namespace heed::kernel::lanes {

inline constexpr int64_t width_bytes = 64;

/// 64 bytes of numbers in as many registers as they need: the compiler keeps an array of registers where it
/// would write a vector wider than a register to memory for each operation.
template <class T>
struct vector {
  using Register = simd::Vector<T>;
  static constexpr int64_t width = width_bytes / static_cast<int64_t>(sizeof(T));  ///< number of lanes
  static constexpr int registers = static_cast<int>(width_bytes) / simd::bytes;

  Register part[registers] = {};

  /// All lanes are x.
  static vector splat(T x) {
    vector all;
    for (Register& part : all.part) part = simd::splat<T>(x);
    return all;
  }

  /// Replaces each register by f(it, the same register of x).
  template <class F>
  vector& combine(const vector& x, F&& f) {
#pragma GCC unroll 4
    for (int i = 0; i < registers; ++i) part[i] = f(part[i], x.part[i]);
    return *this;
  }
  vector& operator+=(const vector& x) {
    return combine(x, [](const Register& a, const Register& b) { return a + b; });
  }
  vector& operator-=(const vector& x) {
    return combine(x, [](const Register& a, const Register& b) { return a - b; });
  }
  vector& operator*=(const vector& x) {
    return combine(x, [](const Register& a, const Register& b) { return a * b; });
  }
  friend vector operator+(vector a, const vector& b) { return a += b; }
  friend vector operator-(vector a, const vector& b) { return a -= b; }
  friend vector operator*(vector a, const vector& b) { return a *= b; }
  friend vector operator-(const vector& a, T b) { return a - splat(b); }
  friend vector operator*(const vector& a, T b) { return a * splat(b); }
};

template <class T>
inline vector<T> load(const T* from) {
  vector<T> x;
  for (int i = 0; i < x.registers; ++i) x.part[i] = simd::load<T>(from + i * simd::Lanes<T>::count);
  return x;
}

/// Reduces the lanes of x to one number: f(lower, upper) combines the upper half of the lanes into the lower
/// half, until one lane is left.
template <class T, class F>
inline T folded(vector<T> x, F&& f) {
  for (int half = vector<T>::registers / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) x.part[i] = f(x.part[i], x.part[i + half]);
  }
  return simd::across<T>(x.part[0], f);
}

/// The sum of all lanes.
template <class T>
inline T across(const vector<T>& x) {
  return folded(x, [](const auto& a, const auto& b) { return a + b; });
}

/// Sum over i < count of term(at), where at(x) is x_i, or a vector of x_i, x_(i + 1), ... of a row x of type
/// const T*. Four vectors hold partial sums, which are added up at the end.
template <class T, class Term>
inline T sum_of(int64_t count, Term&& term) {
  constexpr int64_t width = vector<T>::width;
  const auto terms = [&term](int64_t i) { return term([i](const T* x) { return load<T>(x + i); }); };
  vector<T> a, b, c, d;
  int64_t i = 0;
  for (; i + 4 * width <= count; i += 4 * width) {
    a += terms(i);
    b += terms(i + width);
    c += terms(i + 2 * width);
    d += terms(i + 3 * width);
  }
  for (; i + width <= count; i += width) a += terms(i);
  T total{};
  if (i > 0) total = across<T>((a + b) + (c + d));
  for (; i < count; ++i) total += term([i](const T* x) { return x[i]; });
  return total;
}

/// x_0 + ... + x_(count-1).
template <class T>
inline T sum(const T* x, int64_t count) {
  return sum_of<T>(count, [x](auto at) { return at(x); });
}

/// The sum of x_i y_i.
template <class T>
inline T dot(const T* x, const T* y, int64_t count) {
  return sum_of<T>(count, [x, y](auto at) { return at(x) * at(y); });
}

/// The sum of a long row: blocks of 4096 numbers are summed in T, and the sums of blocks in double.
template <class T>
inline double long_sum(const T* x, int64_t count) {
  constexpr int64_t block = 4096;
  double total = 0;
  for (int64_t i = 0; i < count; i += block) {
    total += static_cast<double>(sum(x + i, count - i < block ? count - i : block));
  }
  return total;
}

/// The largest number of a row, -inf for an empty one. NaNs may be ignored.
template <class T>
inline T largest(const T* x, int64_t count) {
  constexpr int64_t width = vector<T>::width;
  const auto larger = [](const auto& a, const auto& b) { return b > a ? b : a; };
  T max = minus_infinity<T>;
  int64_t i = 0;
  if (count >= width) {
    vector<T> a = load<T>(x), b = a;
    for (; i + 2 * width <= count; i += 2 * width) {
      a.combine(load<T>(x + i), larger);
      b.combine(load<T>(x + i + width), larger);
    }
    for (; i + width <= count; i += width) a.combine(load<T>(x + i), larger);
    max = folded(a.combine(b, larger), larger);
  }
  for (; i < count; ++i) max = x[i] > max ? x[i] : max;
  return max;
}

}  // namespace heed::kernel::lanes

// Sums, dot products and maxima of contiguous rows, in vectors of 64 bytes on every instruction set (unlike
// vector.h): the order of addition depends on the length alone.
#pragma once

#include <cstdint>
#include <cstring>

#include "heed/core/minus_infinity.h"

namespace heed::kernel::lanes {

inline constexpr int64_t width_bytes = 64;

template <class T>
struct Vector {
  using type __attribute__((vector_size(width_bytes))) = T;
  static constexpr int64_t width = width_bytes / static_cast<int64_t>(sizeof(T));
};

template <class T>
using vector = typename Vector<T>::type;

template <class T>
inline void load(vector<T>& to, const T* from) {
  std::memcpy(&to, from, width_bytes);
}

/// Reduces the lanes of x to one number: f(lower, upper) combines the upper half of the lanes into the lower
/// half, until one lane is left.
template <class F>
inline float folded(const vector<float>& x, F&& f) {
  auto eight = __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7);
  f(eight, __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15));
  auto four = __builtin_shufflevector(eight, eight, 0, 1, 2, 3);
  f(four, __builtin_shufflevector(eight, eight, 4, 5, 6, 7));
  float a = four[0], b = four[1];
  f(a, four[2]);
  f(b, four[3]);
  f(a, b);
  return a;
}

template <class F>
inline double folded(const vector<double>& x, F&& f) {
  auto four = __builtin_shufflevector(x, x, 0, 1, 2, 3);
  f(four, __builtin_shufflevector(x, x, 4, 5, 6, 7));
  double a = four[0], b = four[1];
  f(a, four[2]);
  f(b, four[3]);
  f(a, b);
  return a;
}

/// The sum of all lanes.
template <class T>
inline T across(const vector<T>& x) {
  return folded(x, [](auto& a, const auto& b) { a += b; });
}

/// Sum over i < count of term(i). load_terms(i, to) writes term(i), term(i + 1), ... to the lanes of `to`.
/// Four vectors hold partial sums, which are added up at the end.
template <class T, class Term, class LoadTerms>
inline T sum_of(int64_t count, Term&& term, LoadTerms&& load_terms) {
  constexpr int64_t width = Vector<T>::width;
  vector<T> a{}, b{}, c{}, d{}, next;
  int64_t i = 0;
  for (; i + 4 * width <= count; i += 4 * width) {
    load_terms(i, next);
    a += next;
    load_terms(i + width, next);
    b += next;
    load_terms(i + 2 * width, next);
    c += next;
    load_terms(i + 3 * width, next);
    d += next;
  }
  for (; i + width <= count; i += width) {
    load_terms(i, next);
    a += next;
  }
  T total{};
  if (i > 0) {
    a = (a + b) + (c + d);
    total = across<T>(a);
  }
  for (; i < count; ++i) total += term(i);
  return total;
}

/// x_0 + ... + x_(count-1).
template <class T>
inline T sum(const T* x, int64_t count) {
  return sum_of<T>(
      count, [x](int64_t i) { return x[i]; }, [x](int64_t i, vector<T>& to) { load<T>(to, x + i); });
}

/// The sum of x_i y_i.
template <class T>
inline T dot(const T* x, const T* y, int64_t count) {
  return sum_of<T>(
      count, [x, y](int64_t i) { return x[i] * y[i]; },
      [x, y](int64_t i, vector<T>& to) {
        vector<T> factors;
        load<T>(to, x + i);
        load<T>(factors, y + i);
        to *= factors;
      });
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
  constexpr int64_t width = Vector<T>::width;
  T max = minus_infinity<T>;
  int64_t i = 0;
  if (count >= width) {
    vector<T> a, b, next;
    load<T>(a, x);
    b = a;
    for (; i + 2 * width <= count; i += 2 * width) {
      load<T>(next, x + i);
      a = next > a ? next : a;
      load<T>(next, x + i + width);
      b = next > b ? next : b;
    }
    for (; i + width <= count; i += width) {
      load<T>(next, x + i);
      a = next > a ? next : a;
    }
    a = b > a ? b : a;
    max = folded(a, [](auto& c, const auto& d) { c = d > c ? d : c; });
  }
  for (; i < count; ++i) max = x[i] > max ? x[i] : max;
  return max;
}

}  // namespace heed::kernel::lanes

// SIMD vectors as wide as the registers of the instruction set that this copy of the kernels is compiled for,
// and operations on them. row_reductions.h has vectors of a fixed width, whose sums do not depend on the
// instruction set; math.h has scalar functions that the compiler vectorises.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace heed::simd {

#if defined(__AVX512F__)
inline constexpr int bytes = 64;
inline constexpr int registers = 32;
#elif defined(__AVX2__)
inline constexpr int bytes = 32;
inline constexpr int registers = 16;
#else
inline constexpr int bytes = 16;
inline constexpr int registers = 16;
#endif

template <class T>
using Word = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

/// The vector types of T: `count` lanes fill a register.
template <class T>
struct Lanes {
  static constexpr int count = bytes / static_cast<int>(sizeof(T));
  typedef T V __attribute__((vector_size(bytes)));
  typedef Word<T> U __attribute__((vector_size(bytes)));
};

template <class T>
using Vector = typename Lanes<T>::V;
template <class T>
using Words = typename Lanes<T>::U;

template <class T>
inline Vector<T> load(const T* from) {
  Vector<T> x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
template <class T>
inline Words<T> load_words(const Word<T>* from) {
  Words<T> x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
/// Loads the first `count` lanes from memory; the others are zero.
template <class T>
inline Vector<T> load_part(const T* from, int64_t count) {
  Vector<T> x = {};
  for (int64_t i = 0; i < count; ++i) x[i] = from[i];
  return x;
}
template <class T>
inline void store(T* to, Vector<T> x) {
  std::memcpy(to, &x, sizeof x);
}
template <class T>
inline Vector<T> splat(T x) {
  return x - Vector<T>{};
}
/// Reduces the lanes to one number: lane i becomes join(lane i, lane i + half), until one lane is left.
template <class T, class F>
inline T across(Vector<T> x, F&& join) {
  T lane[Lanes<T>::count];
  std::memcpy(lane, &x, sizeof x);
#pragma GCC unroll 4
  for (int half = Lanes<T>::count / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < half; ++i) lane[i] = join(lane[i], lane[i + half]);
  }
  return lane[0];
}

/// `count` rounded up to whole vectors.
template <class T>
constexpr int64_t padded(int64_t count) {
  return (count + Lanes<T>::count - 1) / Lanes<T>::count * Lanes<T>::count;
}

/// 2^x for x <= 127 (float) or 1023 (double); 0 below the smallest normal number, so 2^-inf is exactly 0; NaN
/// stays NaN. A polynomial for the fraction (relative error 5e-9 in float, 1e-17 in double, before rounding),
/// the whole part added to the exponent.
template <class T>
inline Vector<T> exp2(Vector<T> x) {
  constexpr bool single = sizeof(T) == 4;
  constexpr T min_exponent = single ? T(-126) : T(-1022);
  constexpr T rounding =
      single ? T(12582912) : T(6755399441055744);  // 1.5 2^23 and 1.5 2^52 round to whole numbers
  const Vector<T> low = splat(min_exponent);
  const Vector<T> clamped = x < low ? low : x;
  const Vector<T> whole = clamped + rounding;
  const Vector<T> f = clamped - (whole - rounding);
  Vector<T> p;
  if constexpr (single) {
    p = splat(T(0.0001545316294512069));
    p = p * f + T(0.0013390863364671234);
    p = p * f + T(0.009618082557277852);
    p = p * f + T(0.05550357114219078);
    p = p * f + T(0.24022650760568126);
    p = p * f + T(0.6931471880262288);
  } else {
    p = splat(T(4.4549605981865186e-10));
    p = p * f + T(7.072585949269223e-09);
    p = p * f + T(1.0178062445845774e-07);
    p = p * f + T(1.321544258792169e-06);
    p = p * f + T(1.525273382983612e-05);
    p = p * f + T(0.0001540353044173605);
    p = p * f + T(0.0013333558146416936);
    p = p * f + T(0.009618129107606888);
    p = p * f + T(0.0555041086648216);
    p = p * f + T(0.24022650695910097);
    p = p * f + T(0.6931471805599453);
  }
  p = p * f + T(1);
  const Words<T> scaled =
      reinterpret_cast<Words<T>>(p) + (reinterpret_cast<Words<T>>(whole) << (single ? 23 : 52));
  return x < low ? Vector<T>{} : reinterpret_cast<Vector<T>>(scaled);
}

/// log2 x for a normal positive x; NaN stays NaN. The series of artanh of (m - 1) / (m + 1), which is at most
/// 0.172, for the mantissa m.
template <class T>
inline Vector<T> log2(Vector<T> x) {
  constexpr bool single = sizeof(T) == 4;
  constexpr int mantissa = single ? 23 : 52, terms = single ? 5 : 11;
  using Signed = std::conditional_t<single, int32_t, int64_t>;
  typedef Signed S __attribute__((vector_size(bytes)));
  constexpr Signed root = static_cast<Signed>(single ? 0x3f3504f3 : 0x3fe6a09e667f3bcd);  // sqrt(1/2)
  const S exponent = (reinterpret_cast<S>(x) - root) >> mantissa;
  const Vector<T> m = reinterpret_cast<Vector<T>>(reinterpret_cast<S>(x) - (exponent << mantissa));
  const Vector<T> s = (m - T(1)) / (m + T(1));
  const Vector<T> square = s * s;
  Vector<T> series = splat(T(1) / T(2 * terms + 1));
#pragma GCC unroll 16
  for (int i = terms - 1; i >= 0; --i) series = series * square + T(1) / T(2 * i + 1);
  const Vector<T> result = __builtin_convertvector(exponent, Vector<T>) + s * series * T(2.8853900817779268);
  return x == x ? result : x;
}

namespace detail {

/// One step of a transposition: swaps the lanes of `a` whose index has bit `step` set with the lanes of `b`
/// whose index has it clear.
template <class T, int step, size_t... lane>
inline void exchange(Vector<T>& a, Vector<T>& b, std::index_sequence<lane...>) {
  constexpr int s = step, n = sizeof...(lane);
  const Vector<T> low = __builtin_shufflevector(
      a, b, ((lane & s) != 0 ? n + static_cast<int>(lane) - s : static_cast<int>(lane))...);
  b = __builtin_shufflevector(a, b,
                              ((lane & s) != 0 ? n + static_cast<int>(lane) : static_cast<int>(lane) + s)...);
  a = low;
}

/// With step 1, transposes the square matrix `rows` of as many rows as lanes.
template <class T, int step>
inline void exchanges(Vector<T>* rows) {
  constexpr int n = Lanes<T>::count;
  if constexpr (step < n) {
#pragma GCC unroll 16
    for (int r = 0; r < n; ++r) {
      if ((r & step) == 0) exchange<T, step>(rows[r], rows[r + step], std::make_index_sequence<n>{});
    }
    exchanges<T, step * 2>(rows);
  }
}

/// Implements row_sums() from `step` on: for each multiple r of 2 step, rows r and r + step exchange lanes,
/// and row r becomes their sum.
template <class T, int step>
inline Vector<T> row_sums(Vector<T>* rows) {
  constexpr int n = Lanes<T>::count;
  if constexpr (step == n) {
    return rows[0];
  } else {
    // Later steps need only the sum of the two rows of an exchange.
#pragma GCC unroll 16
    for (int r = 0; r < n; r += 2 * step) {
      exchange<T, step>(rows[r], rows[r + step], std::make_index_sequence<n>{});
      rows[r] += rows[r + step];
    }
    return row_sums<T, step * 2>(rows);
  }
}

}  // namespace detail

/// Lane r of the result is the sum of the lanes of rows[r], for as many rows as lanes. Overwrites `rows`.
template <class T>
inline Vector<T> row_sums(Vector<T>* rows) {
  return detail::row_sums<T, 1>(rows);
}

/// to[c, r] = factor from[r, c]: `rows` x `columns`, leading dimensions ld_from and ld_to. Rows of `to` are
/// filled with zeros up to whole vectors.
template <class T>
inline void scaled_transpose(const T* from, int64_t ld_from, int64_t rows, int64_t columns, T factor, T* to,
                             int64_t ld_to) {
  constexpr int n = Lanes<T>::count;
  for (int64_t r = 0; r < rows; r += n) {
    const int64_t num_rows = rows - r < n ? rows - r : n;
    for (int64_t c = 0; c < columns; c += n) {
      const int64_t num_columns = columns - c < n ? columns - c : n;
      Vector<T> block[n];
      const T* corner = from + r * ld_from + c;
      if (num_rows == n && num_columns == n) {
#pragma GCC unroll 16
        for (int i = 0; i < n; ++i) block[i] = load(corner + i * ld_from) * factor;
      } else {
        for (int i = 0; i < n; ++i) {
          block[i] = i >= num_rows      ? Vector<T>{}
                     : num_columns == n ? load(corner + i * ld_from)
                                        : load_part(corner + i * ld_from, num_columns);
          block[i] *= factor;
        }
      }
      detail::exchanges<T, 1>(block);
      T* out = to + c * ld_to + r;
      if (num_columns == n) {
#pragma GCC unroll 16
        for (int i = 0; i < n; ++i) store(out + i * ld_to, block[i]);
      } else {
        for (int i = 0; i < num_columns; ++i) store(out + i * ld_to, block[i]);
      }
    }
  }
}

/// to[r] = sum over c of a[r, c] b[r, c]. `to` has space for whole vectors.
template <class T>
inline void row_dots(const T* a, int64_t lda, const T* b, int64_t ldb, int64_t rows, int64_t columns, T* to) {
  constexpr int n = Lanes<T>::count;
  const int64_t whole = columns / n * n;
  for (int64_t r = 0; r < rows; r += n) {
    Vector<T> sums[n];
    for (int i = 0; i < n; ++i) {
      sums[i] = Vector<T>{};
      if (r + i >= rows) continue;
      const T *x = a + (r + i) * lda, *y = b + (r + i) * ldb;
      for (int64_t c = 0; c < whole; c += n) sums[i] += load(x + c) * load(y + c);
      if (whole < columns)
        sums[i] += load_part(x + whole, columns - whole) * load_part(y + whole, columns - whole);
    }
    store(to + r, row_sums<T>(sums));
  }
}

/// x . y over `count` numbers. The order of addition depends on the instruction set, unlike that of
/// lanes::dot().
template <class T>
inline T dot(const T* x, const T* y, int64_t count) {
  constexpr int n = Lanes<T>::count;
  Vector<T> sums = {};
  int64_t c = 0;
  for (; c + n <= count; c += n) sums += load(x + c) * load(y + c);
  if (c < count) sums += load_part(x + c, count - c) * load_part(y + c, count - c);
  return across<T>(sums, [](T a, T b) { return a + b; });
}

/// y += factor x over `count` numbers.
template <class T>
inline void add_scaled(const T* x, T factor, int64_t count, T* y) {
  constexpr int n = Lanes<T>::count;
  int64_t c = 0;
  for (; c + n <= count; c += n) store(y + c, load(y + c) + load(x + c) * factor);
  for (; c < count; ++c) y[c] += x[c] * factor;
}

/// to[c] = factor from[c] for `count` numbers.
template <class T>
inline void scaled(const T* from, int64_t count, T factor, T* to) {
  constexpr int n = Lanes<T>::count;
  int64_t c = 0;
  for (; c + n <= count; c += n) store(to + c, load(from + c) * factor);
  for (; c < count; ++c) to[c] = from[c] * factor;
}

}  // namespace heed::simd

// Register-blocked matrix products: a block of c stays in registers while elements of a are broadcast and
// rows of b are read.
#include "heed/core/kernels/gemm/small_gemm.h"

#include <algorithm>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/kernels/simd/with_constant.h"

namespace heed::kernel {
namespace {

/// The largest number of rows of a block of `vectors` vectors that leaves registers for a row of b and one
/// broadcast element of a.
constexpr int max_block_rows(int vectors) {
  if (simd::registers == 32) return vectors == 1 ? 16 : vectors == 2 ? 12 : vectors == 3 ? 8 : 6;
  return vectors == 1 ? 8 : 6;
}
constexpr int max_block_vectors = simd::registers == 32 ? 4 : 2;

template <class T>
struct Operands {
  int64_t k;
  const T* a;
  int64_t lda;
  const T* b;
  int64_t ldb;
  T* c;
  int64_t ldc;
  bool add;
};

/// c [rows, vectors] = a [rows, k] b [k, vectors], or c += a b with x.add, with the whole block of c in
/// registers. A function of its own: inlined beside the blocks of other sizes, c does not stay in registers.
template <class T, Left left, int rows, int vectors>
[[gnu::noinline]] void multiply_block(const Operands<T>& x) {
  using V = simd::Vector<T>;
  constexpr int n = simd::Lanes<T>::count;
  V sum[rows][vectors];
  // sum [rows, vectors] = c, or zeros.
  if (x.add) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sum[r][v] = simd::load(x.c + r * x.ldc + v * n);
    }
  } else {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sum[r][v] = V{};
    }
  }
  // sum += (column k of a) (row k of b), for each k.
  const T* a = x.a;
  const T* b = x.b;
  const int64_t lda = x.lda;
  for (int64_t k = 0; k < x.k; ++k) {
    V right[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) right[v] = simd::load(b + v * n);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const T a_rk = left == Left::transposed ? a[r] : a[r * lda];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sum[r][v] += a_rk * right[v];
    }
    a += left == Left::transposed ? lda : 1;
    b += x.ldb;
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) simd::store(x.c + r * x.ldc + v * n, sum[r][v]);
  }
}

/// Computes c [m, vectors] block by block, those with most rows first.
template <class T, Left left, int vectors>
void multiply_columns(Operands<T> x, int64_t m) {
  const auto next_block = [&]<int rows>(std::integral_constant<int, rows>) {
    multiply_block<T, left, rows, vectors>(x);
    x.a += left == Left::transposed ? rows : rows * x.lda;
    x.c += rows * x.ldc;
    m -= rows;
  };
  constexpr int max_rows = max_block_rows(vectors);
  while (m >= max_rows) next_block(std::integral_constant<int, max_rows>());
  if constexpr (max_rows > 8) {
    if (m >= 8) next_block(std::integral_constant<int, 8>());
  }
  if (m >= 4) next_block(std::integral_constant<int, 4>());
  if (m >= 2) next_block(std::integral_constant<int, 2>());
  if (m >= 1) next_block(std::integral_constant<int, 1>());
}

/// c [m, n] = a b, or c += a b with x.add, in strips of columns: as few as possible, of about equally many
/// vectors and at most `max_block_vectors`.
template <class T, Left left>
void multiply(Operands<T> x, int64_t m, int64_t n) {
  int64_t vectors = n / simd::Lanes<T>::count;
  for (int64_t strips = ceil_div(vectors, max_block_vectors); strips > 0; --strips) {
    const int64_t block_vectors = ceil_div(vectors, strips);
    with_constant<max_block_vectors>(
        block_vectors, [&](auto count) { multiply_columns<T, left, decltype(count)::value>(x, m); });
    x.b += block_vectors * simd::Lanes<T>::count;
    x.c += block_vectors * simd::Lanes<T>::count;
    vectors -= block_vectors;
  }
}

}  // namespace

template <class T>
int64_t small_gemm(Left left, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b,
                   int64_t ldb, T* c, int64_t ldc, bool add) {
  const Operands<T> x{.k = k, .a = a, .lda = lda, .b = b, .ldb = ldb, .c = c, .ldc = ldc, .add = add};
  if (left == Left::transposed) {
    multiply<T, Left::transposed>(x, m, n);
  } else {
    multiply<T, Left::row_major>(x, m, n);
  }
  return 2 * m * n * k;
}

template int64_t small_gemm(Left, int64_t, int64_t, int64_t, const float*, int64_t, const float*, int64_t,
                            float*, int64_t, bool);
template int64_t small_gemm(Left, int64_t, int64_t, int64_t, const double*, int64_t, const double*, int64_t,
                            double*, int64_t, bool);

}  // namespace heed::kernel

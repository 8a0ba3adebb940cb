// Products of few rows with a weight in bf16, on the CPU: dot products along the rows of the weight.
#include "heed/core/kernels/gemm/bf16_weight_gemm.h"

#include <algorithm>
#include <vector>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

using Floats = lanes::vector<float>;
using Words __attribute__((vector_size(lanes::width_bytes))) = uint32_t;

constexpr int64_t width = 16;         ///< floats in a vector
constexpr int64_t pairs = 2 * width;  ///< numbers of bf16 in one
#if defined(__AVX512F__)
constexpr int64_t rows_at_once = NarrowRows::few_rows;  ///< whose sums stay in registers, beside four columns
#else
constexpr int64_t rows_at_once = 1;
#endif

/// Elements of the weight per task: some microseconds of reading.
constexpr int64_t least_read = int64_t{1} << 15;

/// The two floats of a word. By reference: the ABI cannot return vectors wider than the machine's.
void parts(const Words& words, Floats& even, Floats& odd) {
  const Words low = words << 16, high = words & 0xffff0000U;
  std::memcpy(&even, &low, sizeof even);
  std::memcpy(&odd, &high, sizeof odd);
}

/// Rows of a, each with its even numbers in front of its odd ones in every group of `pairs`: a word of the
/// weight holds an even number in its lower and an odd one in its upper half, and either becomes a float by
/// one operation where it lies. What is left beyond the last group stays as it is.
std::vector<float> sorted_by_parity(const float* a, int64_t m, int64_t k) {
  std::vector<float> out(a, a + m * k);
  for (int64_t r = 0; r < m; ++r) {
    for (int64_t l = 0; l + pairs <= k; l += pairs) {
      for (int64_t i = 0; i < width; ++i) {
        out[static_cast<size_t>(r * k + l + i)] = a[r * k + l + 2 * i];
        out[static_cast<size_t>(r * k + l + width + i)] = a[r * k + l + 2 * i + 1];
      }
    }
  }
  return out;
}

/// c[r, j] = sum_l a[r, l] w[j, l] + beta c[r, j] for R rows and up to 4 columns.
template <int R>
void dots(const float* a, const bf16* w, int64_t k, int64_t count, float beta, float* c, int64_t ldc) {
  Floats sum[R][4] = {};
  const bf16* column[4];
  for (int j = 0; j < 4; ++j) column[j] = w + std::min<int64_t>(j, count - 1) * k;
  int64_t l = 0;
  for (; l + pairs <= k; l += pairs) {
    Floats even[4], odd[4], left;
    for (int j = 0; j < 4; ++j) {
      Words words;
      std::memcpy(&words, column[j] + l, sizeof words);
      parts(words, even[j], odd[j]);
    }
    for (int r = 0; r < R; ++r) {
      lanes::load<float>(left, a + r * k + l);
      for (int j = 0; j < 4; ++j) sum[r][j] += left * even[j];
      lanes::load<float>(left, a + r * k + l + width);
      for (int j = 0; j < 4; ++j) sum[r][j] += left * odd[j];
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int64_t j = 0; j < count; ++j) {
      float total = lanes::across<float>(sum[r][j]);
      for (int64_t i = l; i < k; ++i) total += a[r * k + i] * static_cast<float>(column[j][i]);
      float& to = c[r * ldc + j];
      to = beta == 0 ? total : total + beta * to;
    }
  }
}

template <int R>
void dots_of(int64_t rows, const float* a, const bf16* w, int64_t k, int64_t count, float beta, float* c,
             int64_t ldc) {
  if constexpr (R > 1) {
    if (rows < R) return dots_of<R - 1>(rows, a, w, k, count, beta, c, ldc);
  }
  dots<R>(a, w, k, count, beta, c, ldc);
}

}  // namespace

/// c[r, j] = sum_l a[r, l] w[j, l] + beta c[r, j]. One task is some groups of 16 columns j, computed four
/// columns at a time for all rows r.
template <>
void NarrowRows::cpu<here>(const Tensor& a, const Tensor& w, const Tensor& c, double beta) {
  const int64_t m = a.extent(0), k = a.extent(1), n = w.extent(0);
  const std::vector<float> left = sorted_by_parity(a.data<float>(), m, k);
  const bf16* right = w.data<bf16>();
  float* to = c.data<float>();
  constexpr int64_t columns = 16;  // of c in a cache line: no two threads write into one line
  const int64_t grain = std::max<int64_t>(1, least_read / (columns * std::max<int64_t>(1, k)));
  parallel_rows(ceil_div(n, columns), grain, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin * columns; j < std::min(n, end * columns); j += 4) {
      for (int64_t row = 0; row < m; row += rows_at_once) {
        dots_of<rows_at_once>(m - row, left.data() + row * k, right + j * k, k, std::min<int64_t>(4, n - j),
                              static_cast<float>(beta), to + row * n + j, n);
      }
    }
  });
  Count::add(2 * m * n * k);
}

}  // namespace heed::kernel

// Products of few rows with a weight in bf16, on the CPU: dot products along the rows of the weight.
#include "heed/core/kernels/gemm/bf16_weight_gemm.h"

#include <algorithm>
#include <vector>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/kernels/simd/with_constant.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

using Floats = lanes::vector<float>;
using Words __attribute__((vector_size(lanes::width_bytes))) = uint32_t;

constexpr int64_t width = 16;         ///< floats in a vector
constexpr int64_t group = 2 * width;  ///< numbers of bf16 in a vector

/// Number of rows whose sums for four columns stay in registers.
#if defined(__AVX512F__)
constexpr int64_t rows_at_once = Bf16WeightGemm::max_rows;
#else
constexpr int64_t rows_at_once = 1;
#endif

/// Number of elements of the weight that a task reads, which takes some microseconds.
constexpr int64_t elements_per_task = int64_t{1} << 15;

/// Widens the two bf16 numbers of each word: `even` from its lower half, `odd` from its upper half. Results
/// are references because the ABI cannot return vectors wider than the machine's.
void split_words(const Words& words, Floats& even, Floats& odd) {
  const Words low = words << 16, high = words & 0xffff0000U;
  std::memcpy(&even, &low, sizeof even);
  std::memcpy(&odd, &high, sizeof odd);
}

/// a [m, k] with the numbers of each group of 32 reordered for split_words(): those of even index first, then
/// those of odd index. Numbers after the last whole group stay in order.
std::vector<float> sorted_by_parity(const float* a, int64_t m, int64_t k) {
  std::vector<float> out(a, a + m * k);
  for (int64_t r = 0; r < m; ++r) {
    for (int64_t l = 0; l + group <= k; l += group) {
      for (int64_t i = 0; i < width; ++i) {
        out[static_cast<size_t>(r * k + l + i)] = a[r * k + l + 2 * i];
        out[static_cast<size_t>(r * k + l + width + i)] = a[r * k + l + 2 * i + 1];
      }
    }
  }
  return out;
}

/// c[r, j] = sum_l a[r, l] w[j, l] + beta c[r, j] for R rows of sorted_by_parity() and up to 4 columns j.
/// Vector lanes are numbers l.
template <int R>
void dots(const float* a, const bf16* w, int64_t k, int64_t count, float beta, float* c, int64_t ldc) {
  Floats sum[R][4] = {};
  const bf16* column[4];
  for (int j = 0; j < 4; ++j) column[j] = w + std::min<int64_t>(j, count - 1) * k;
  int64_t l = 0;
  for (; l + group <= k; l += group) {
    Floats even[4], odd[4], left;
    for (int j = 0; j < 4; ++j) {
      Words words;
      std::memcpy(&words, column[j] + l, sizeof words);
      split_words(words, even[j], odd[j]);
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
      float& c_rj = c[r * ldc + j];
      c_rj = beta == 0 ? total : total + beta * c_rj;
    }
  }
}

}  // namespace

/// c[r, j] = sum_l a[r, l] w[j, l] + beta c[r, j]. One task is some groups of 16 columns j, computed four
/// columns at a time for all rows r.
template <>
void Bf16WeightGemm::cpu<target_isa>(const Tensor& a, const Tensor& w, const Tensor& c, double beta) {
  const int64_t m = a.extent(0), k = a.extent(1), n = w.extent(0);
  const std::vector<float> left = sorted_by_parity(a.data<float>(), m, k);
  const bf16* right = w.data<bf16>();
  constexpr int64_t columns = 16;  // a cache line of c, so that no two threads write into one line
  const int64_t grain = std::max<int64_t>(1, elements_per_task / (columns * std::max<int64_t>(1, k)));
  parallel_rows(ceil_div(n, columns), grain, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin * columns; j < std::min(n, end * columns); j += 4) {
      for (int64_t row = 0; row < m; row += rows_at_once) {
        with_constant<rows_at_once>(m - row, [&](auto R) {
          dots<decltype(R)::value>(left.data() + row * k, right + j * k, k, std::min<int64_t>(4, n - j),
                                   static_cast<float>(beta), c.data<float>() + row * n + j, n);
        });
      }
    }
  });
  Count::add(2 * m * n * k);
}

}  // namespace heed::kernel

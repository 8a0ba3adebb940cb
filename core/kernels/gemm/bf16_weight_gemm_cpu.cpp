// Products of few rows with a weight in bf16, on the CPU: dot products along the rows of the weight.
#include "heed/core/kernels/gemm/bf16_weight_gemm.h"

#include <algorithm>
#include <vector>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/gemm/gemm_few_rows.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

/// Number of elements of the weight that a task reads, which takes some microseconds.
constexpr int64_t elements_per_task = int64_t{1} << 15;

/// a [m, k] with the numbers of each group of 32 reordered for few_rows::dots(): those of even index first,
/// then those of odd index. Numbers after the last whole group stay in order.
std::vector<float> sorted_by_parity(const float* a, int64_t m, int64_t k) {
  constexpr int64_t group = few_rows::group_of<bf16>, width = group / 2;
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

}  // namespace

/// c[r, j] = sum_l a[r, l] w[j, l] + beta c[r, j]. One task is some groups of 16 columns j for all rows r.
template <>
void Bf16WeightGemm::cpu<target_isa>(const Tensor& a, const Tensor& w, const Tensor& c, double beta) {
  const int64_t m = a.extent(0), k = a.extent(1), n = w.extent(0);
  const std::vector<float> left = sorted_by_parity(a.data<float>(), m, k);
  const bf16* right = w.data<bf16>();
  constexpr int64_t columns = 16;  // a cache line of c, so that no two threads write into one line
  const int64_t grain = std::max<int64_t>(1, elements_per_task / (columns * std::max<int64_t>(1, k)));
  parallel_rows(ceil_div(n, columns), grain, [&](int64_t begin, int64_t end) {
    const int64_t j = begin * columns, end_column = std::min(n, end * columns);
    few_rows::multiply(left.data(), k, right + j * k, k, c.data<float>() + j, n, m, end_column - j, k,
                       {.alpha = 1, .beta = static_cast<float>(beta)});
  });
  Count::add(2 * m * n * k);
}

}  // namespace heed::kernel

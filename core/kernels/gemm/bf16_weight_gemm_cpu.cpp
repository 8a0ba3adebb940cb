// Products of few rows with a weight in bf16, on the CPU: dot products along the rows of the weight.
#include "heed/core/kernels/gemm/bf16_weight_gemm.h"

#include <vector>

#include "heed/core/kernels/gemm/gemm_few_rows.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

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

/// c[r, j] = sum_l a[r, l] w[j, l] + beta c[r, j]. One task is some columns j for all rows r.
template <>
void Bf16WeightGemm::cpu<target_isa>(const Tensor& a, const Tensor& w, const Tensor& c, double beta) {
  static_assert(max_rows == few_rows::max_rows);
  const int64_t m = a.extent(0), k = a.extent(1), n = w.extent(0);
  const std::vector<float> left = sorted_by_parity(a.data<float>(), m, k);
  const bf16* right = w.data<bf16>();
  few_rows::by_columns(n, k * static_cast<int64_t>(sizeof(bf16)), [&](int64_t begin, int64_t end) {
    few_rows::multiply(left.data(), k, right + begin * k, k, c.data<float>() + begin, n, m, end - begin, k,
                       {.alpha = 1, .beta = static_cast<float>(beta)});
  });
  Count::add(2 * m * n * k);
}

}  // namespace heed::kernel

// Products of few rows with a weight in blocks of 8-bit numbers, on the CPU: dot products along the rows of
// the weight.
#include "heed/core/kernels/gemm/q8_weight_gemm.h"

#include <cstring>

#include "heed/core/kernels/gemm/gemm_few_rows.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/kernels/simd/with_constant.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

using few_rows::Floats;

/// Bytes between the numbers in use and those that the CPU is asked to fetch.
constexpr int64_t fetched_ahead = 2048;

/// q_0 ... q_15 as floats.
Floats widen(const int8_t* q) {
  constexpr int n = simd::Lanes<float>::count;
  typedef int8_t Bytes __attribute__((vector_size(16)));
  typedef int32_t Integers __attribute__((vector_size(simd::bytes)));
  Floats out;
  for (int i = 0; i < Floats::registers; ++i) {
    Bytes bytes{};
    std::memcpy(&bytes, q + i * n, n);
    Integers integers;
    for (int j = 0; j < n; ++j)
      integers[j] = bytes[j];  // one instruction; of __builtin_convertvector GCC makes many
    out.part[i] = __builtin_convertvector(integers, simd::Vector<float>);
  }
  return out;
}

/// sum[r] = sum_l a[r, l] scales[l / 32] q[l] for R rows of a, k apart.
template <int R>
void dots(const float* a, const int8_t* q, const float* scales, int64_t k, float (&sum)[R]) {
  constexpr int64_t size = Q8WeightGemm::block_size, width = Floats::width;
  static_assert(size == 2 * width);
  Floats partial[R];
  for (int64_t b = 0; b < k / size; ++b) {
    const int8_t* block = q + b * size;
    __builtin_prefetch(block + fetched_ahead);
    const Floats lower = widen(block), upper = widen(block + width);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const float* left = a + r * k + b * size;
      partial[r] += (lanes::load(left) * lower + lanes::load(left + width) * upper) * scales[b];
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) sum[r] = lanes::across(partial[r]);
}

}  // namespace

/// c[r, j] = sum_l a[r, l] w[j, l] + beta c[r, j]. One task is some columns j for all rows r.
template <>
void Q8WeightGemm::cpu<target_isa>(const Tensor& a, const Tensor& numbers, const Tensor& scales,
                                   const Tensor& c, double beta) {
  static_assert(max_rows == few_rows::max_rows);
  const int64_t m = a.extent(0), k = a.extent(1), n = numbers.extent(0);
  const auto* q = reinterpret_cast<const int8_t*>(numbers.data<uint8_t>());
  few_rows::by_columns(n, k, [&](int64_t begin, int64_t end) {
    with_constant<max_rows>(m, [&](auto R) {
      for (int64_t j = begin; j < end; ++j) {
        float sum[decltype(R)::value];
        dots(a.data<float>(), q + j * k, scales.data<float>() + j * (k / block_size), k, sum);
        for (int64_t r = 0; r < m; ++r) {
          float& c_rj = c.data<float>()[r * n + j];
          c_rj = beta == 0 ? sum[r] : sum[r] + static_cast<float>(beta) * c_rj;
        }
      }
    });
  });
  Count::add(2 * m * n * k);
}

}  // namespace heed::kernel

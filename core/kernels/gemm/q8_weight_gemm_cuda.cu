// Products of few rows with a weight in blocks of 8-bit numbers, on a GPU: each warp takes a few rows of the
// weight, and each of its lanes reads four numbers at a time.
#include "heed/core/kernels/gemm/q8_weight_gemm.h"

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/block.h"
#include "heed/core/kernels/simd/with_constant.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

constexpr int threads = 64;   // small blocks, so that small weights too are read by many multiprocessors
constexpr int pack_size = 4;  // numbers of a weight in a load of 4 bytes

/// c[r, j] = sum_l a[r, l] scales[j, l / 32] q[j, l] + beta c[r, j] for R rows r of a. A warp takes W rows j
/// of the weight, and its lanes four numbers l each.
template <int R, int W>
__global__ void __launch_bounds__(threads)
    q8_weight_gemm(const float* a, const uint8_t* numbers, const float* scales, float* c, int64_t n,
                   int64_t k, float beta) {
  const int64_t first =
      (static_cast<int64_t>(blockIdx.x) * (threads / cuda::lanes) + cuda::warp_number()) * W;
  if (first >= n) return;  // the whole warp
  float sum[W][R] = {};
#pragma unroll 2
  for (int64_t l = cuda::lane_number() * pack_size; l < k; l += cuda::lanes * pack_size) {
    float right[W][pack_size];
#pragma unroll
    for (int v = 0; v < W; ++v) {
      const int64_t row = min(first + v, n - 1);
      const auto four = *reinterpret_cast<const uint32_t*>(numbers + row * k + l);
      const float scale = scales[(row * k + l) / Q8WeightGemm::block_size];
#pragma unroll
      for (int p = 0; p < pack_size; ++p)
        right[v][p] = scale * static_cast<float>(static_cast<int8_t>(four >> (8 * p)));
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
#pragma unroll
      for (int p = 0; p < pack_size; ++p) {
        const float left = a[r * k + l + p];
#pragma unroll
        for (int v = 0; v < W; ++v) sum[v][r] += left * right[v][p];
      }
    }
  }
#pragma unroll
  for (int v = 0; v < W; ++v) {
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const float total = cuda::warp_sum(sum[v][r]);
      float* c_rj = c + r * n + first + v;
      if (cuda::lane_number() == 0 && first + v < n) *c_rj = beta == 0 ? total : total + beta * *c_rj;
    }
  }
}

}  // namespace

/// Launches q8_weight_gemm() with R = m: a warp for each W rows of the weight.
void Q8WeightGemm::cuda(const Tensor& a, const Tensor& numbers, const Tensor& scales, const Tensor& c,
                        double beta) {
  if (c.size() == 0) return;
  const int64_t n = numbers.extent(0), k = a.extent(1);
  with_constant<max_rows>(a.extent(0), [&](auto rows) {
    // Each row of a is read again for every W rows of the weight, so W grows with the rows of a.
    constexpr int R = decltype(rows)::value, W = R > 2 ? 4 : 2;
    const int64_t blocks = ceil_div(n, W * (threads / cuda::lanes));
    cuda::run(q8_weight_gemm<R, W>, {dim3(static_cast<unsigned>(blocks)), dim3(threads)}, a.data<float>(),
              numbers.data<uint8_t>(), scales.data<float>(), c.data<float>(), n, k, static_cast<float>(beta));
  });
  Count::add(2 * c.size() * k);
}

}  // namespace heed::kernel

// Products of few rows with a weight in bf16, on a GPU: each warp takes a few rows of the weight and reads
// eight numbers at a time.
#include "heed/core/kernels/gemm/bf16_weight_gemm.h"

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/block.h"
#include "heed/core/cuda/device/pack.h"
#include "heed/core/kernels/simd/with_constant.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

constexpr int threads = 64;   // small blocks, so that small weights too are read by many multiprocessors
constexpr int pack_size = 8;  // numbers of a weight in a load of 16 bytes

/// c[r, j] = sum_l a[r, l] w[j, l] + beta c[r, j] for R rows r of a. A warp takes W rows j of the weight, and
/// its lanes P numbers l at once.
template <int R, int W, int P>
__global__ void __launch_bounds__(threads)
    bf16_weight_gemm(const float* a, const bf16* w, float* c, int64_t n, int64_t k, float beta) {
  const int64_t first =
      (static_cast<int64_t>(blockIdx.x) * (threads / cuda::lanes) + cuda::warp_number()) * W;
  if (first >= n) return;  // the whole warp
  float sum[W][R] = {};
#pragma unroll 2
  for (int64_t l = cuda::lane_number() * P; l < k; l += cuda::lanes * P) {
    cuda::Pack<bf16, P> right[W];
#pragma unroll
    for (int v = 0; v < W; ++v)
      right[v] = *reinterpret_cast<const cuda::Pack<bf16, P>*>(w + min(first + v, n - 1) * k + l);
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const auto left = *reinterpret_cast<const cuda::Pack<float, P>*>(a + r * k + l);
#pragma unroll
      for (int v = 0; v < W; ++v) {
#pragma unroll
        for (int p = 0; p < P; ++p) sum[v][r] += left.x[p] * static_cast<float>(right[v].x[p]);
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

/// Launches bf16_weight_gemm() with R = m: a warp for each W rows of the weight, reading eight numbers at
/// once where K and the addresses allow it, else one.
void Bf16WeightGemm::cuda(const Tensor& a, const Tensor& w, const Tensor& c, double beta) {
  if (c.size() == 0) return;
  const int64_t n = w.extent(0), k = a.extent(1);
  const bool aligned =
      k % pack_size == 0 && cuda::packs<pack_size>(a.data<float>()) && cuda::packs<pack_size>(w.data<bf16>());
  with_constant<max_rows>(a.extent(0), [&](auto rows) {
    // Each row of a is read again for every W rows of the weight, so W grows with the rows of a.
    constexpr int R = decltype(rows)::value, W = R > 2 ? 4 : 2;
    const int64_t blocks = ceil_div(n, W * (threads / cuda::lanes));
    cuda::run(aligned ? bf16_weight_gemm<R, W, pack_size> : bf16_weight_gemm<R, W, 1>,
              {dim3(static_cast<unsigned>(blocks)), dim3(threads)}, a.data<float>(), w.data<bf16>(),
              c.data<float>(), n, k, static_cast<float>(beta));
  });
  Count::add(2 * c.size() * k);
}

}  // namespace heed::kernel

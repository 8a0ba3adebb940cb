// Products of few rows with a weight in fewer bytes than f32, on a GPU. They take the time of reading the
// weight: each warp takes a few of its rows.
#pragma once

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/block.h"
#include "heed/core/cuda/device/pack.h"
#include "heed/core/kernels/simd/with_constant.h"
#include "heed/core/operation_count.h"
#include "heed/core/tensor.h"

namespace heed::kernel::few_rows {

constexpr int threads = 64;  // small blocks, so that small weights too are read by many multiprocessors

/// c[r, j] = sum_l a[r, l] w[j, l] + beta c[r, j] for R rows r of a. A warp takes W rows j of the weight, and
/// its lanes P numbers l at once: `weight.read(j k + l, to)` writes w[j, l], ... w[j, l + P - 1].
template <int R, int W, int P, class Weight>
__global__ void __launch_bounds__(threads)
    multiply(const float* a, Weight weight, float* c, int64_t n, int64_t k, float beta) {
  const int64_t first =
      (static_cast<int64_t>(blockIdx.x) * (threads / cuda::lanes) + cuda::warp_number()) * W;
  if (first >= n) return;  // the whole warp
  float sum[W][R] = {};
#pragma unroll 2
  for (int64_t l = cuda::lane_number() * P; l < k; l += cuda::lanes * P) {
    float right[W][P];
#pragma unroll
    for (int v = 0; v < W; ++v) weight.read(min(first + v, n - 1) * k + l, right[v]);
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const auto left = *reinterpret_cast<const cuda::Pack<float, P>*>(a + r * k + l);
#pragma unroll
      for (int v = 0; v < W; ++v) {
#pragma unroll
        for (int p = 0; p < P; ++p) sum[v][r] += left.x[p] * right[v][p];
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

/// Launches multiply() with R = m rows of `a` [m, K] of at most max_rows, for a weight [N, K] and c [m, N].
/// Lanes read P numbers at once where K and the addresses allow it, else one.
template <int max_rows, int P, class Weight>
void launch_multiply(const Tensor& a, const Weight& weight, const Tensor& c, double beta) {
  if (c.size() == 0) return;
  const int64_t n = c.extent(1), k = a.extent(1);
  const bool aligned = k % P == 0 && cuda::packs<P>(a.data<float>()) && cuda::packs<P>(weight.numbers);
  with_constant<max_rows>(a.extent(0), [&](auto rows) {
    // Each row of a is read again for every W rows of the weight, so W grows with the rows of a.
    constexpr int R = decltype(rows)::value, W = R > 2 ? 4 : 2;
    const int64_t blocks = ceil_div(n, W * (threads / cuda::lanes));
    cuda::run(aligned ? multiply<R, W, P, Weight> : multiply<R, W, 1, Weight>,
              {dim3(static_cast<unsigned>(blocks)), dim3(threads)}, a.data<float>(), weight, c.data<float>(),
              n, k, static_cast<float>(beta));
  });
  Count::add(2 * c.size() * k);
}

}  // namespace heed::kernel::few_rows

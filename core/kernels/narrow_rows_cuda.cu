// Products of few rows with a weight in bf16, on a GPU: a warp for each row of the weight.
#include "core/kernels/narrow_rows.h"

#include "core/count.h"
#include "core/cuda/block.h"

namespace heed::kernel {
namespace {

constexpr int threads = 256;

template <int R>
__global__ void narrow_rows(const float* a, const bf16* w, float* c, int64_t n, int64_t k, float beta) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (threads / cuda::lanes) + cuda::warp_number();
  if (row >= n) return;  // the whole warp
  float sum[R] = {};
  for (int64_t l = cuda::lane_number(); l < k; l += cuda::lanes) {
    const float right = static_cast<float>(w[row * k + l]);
    for (int r = 0; r < R; ++r) sum[r] += a[r * k + l] * right;
  }
  for (int r = 0; r < R; ++r) {
    const float total = cuda::warp_sum(sum[r]);
    if (cuda::lane_number() == 0) c[r * n + row] = beta == 0 ? total : total + beta * c[r * n + row];
  }
}

template <int R>
void run(int64_t m, const Tensor& a, const Tensor& w, const Tensor& c, double beta) {
  if constexpr (R > 1) {
    if (m < R) return run<R - 1>(m, a, w, c, beta);
  }
  const int64_t n = w.extent(0);
  cuda::run(narrow_rows<R>,
            {dim3(static_cast<unsigned>(cuda::pieces(n, threads / cuda::lanes))), dim3(threads)},
            a.data<float>(), w.data<bf16>(), c.data<float>(), n, a.extent(1), static_cast<float>(beta));
}

}  // namespace

void NarrowRows::cuda(const Tensor& a, const Tensor& w, const Tensor& c, double beta) {
  if (c.size() == 0) return;
  run<few_rows>(a.extent(0), a, w, c, beta);
  Count::add(2 * c.size() * a.extent(1));
}

}  // namespace heed::kernel

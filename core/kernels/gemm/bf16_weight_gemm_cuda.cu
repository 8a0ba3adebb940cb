// Products of few rows with a weight in bf16, on a GPU: each lane reads eight numbers at a time.
#include "heed/core/kernels/gemm/bf16_weight_gemm.h"

#include "heed/core/kernels/gemm/gemm_few_rows_device.h"

namespace heed::kernel {
namespace {

struct Bf16Weight {
  const bf16* numbers;

  template <int P>
  __device__ void read(int64_t at, float (&to)[P]) const {
    const auto pack = *reinterpret_cast<const cuda::Pack<bf16, P>*>(numbers + at);
#pragma unroll
    for (int p = 0; p < P; ++p) to[p] = static_cast<float>(pack.x[p]);
  }
};

}  // namespace

void Bf16WeightGemm::cuda(const Tensor& a, const Tensor& w, const Tensor& c, double beta) {
  few_rows::launch_multiply<max_rows, /*P=*/8>(a, Bf16Weight{w.data<bf16>()}, c, beta);
}

}  // namespace heed::kernel

// Products of few rows with a weight in blocks of 8-bit numbers, on a GPU: each lane reads four numbers at a
// time.
#include "heed/core/kernels/gemm/q8_weight_gemm.h"

#include "heed/core/kernels/gemm/gemm_few_rows_device.h"

namespace heed::kernel {
namespace {

struct Q8Weight {
  const uint8_t* numbers;
  const float* scales;

  template <int P>
  __device__ void read(int64_t at, float (&to)[P]) const {
    const auto pack = *reinterpret_cast<const cuda::Pack<uint8_t, P>*>(numbers + at);
    const float scale = scales[at / Q8WeightGemm::block_size];
#pragma unroll
    for (int p = 0; p < P; ++p) to[p] = scale * static_cast<float>(static_cast<int8_t>(pack.x[p]));
  }
};

}  // namespace

void Q8WeightGemm::cuda(const Tensor& a, const Tensor& numbers, const Tensor& scales, const Tensor& c,
                        double beta) {
  const Q8Weight weight{numbers.data<uint8_t>(), scales.data<float>()};
  few_rows::launch_multiply<max_rows, /*P=*/4>(a, weight, c, beta);
}

}  // namespace heed::kernel

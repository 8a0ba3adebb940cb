// Dense attention in bf16 by the matrix tiles of AMX, where the compiler has its instructions.
#pragma once

#include "heed/core/kernels/gemm/gemm_bf16.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__x86_64__)
#include "heed/core/kernels/attention/attention_amx_backward.h"
#else
#include "heed/core/kernels/attention/dense_tiles.h"

namespace heed::kernel::amx {

// Never called: declared so that code for other CPUs compiles.
void attention_forward(const DenseTiles<float>& tiles, const Tensor& q, const Tensor& k, const Tensor& v,
                       const Tensor& out, const Tensor& lse);
void attention_backward(const DenseTiles<float>& tiles, const AttentionBackTensors& t);

}  // namespace heed::kernel::amx
#endif

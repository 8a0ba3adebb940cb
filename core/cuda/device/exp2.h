// Fast approximate powers of two.
#pragma once

#include <cmath>

#include "heed/core/cuda/device/grid.h"

namespace heed::cuda {

/// 2^x in one instruction, to 2 units in the last place. Results below the smallest normal number are 0.
__device__ inline float fast_exp2(float x) {
#ifdef __CUDACC__
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  const float y = std::exp2(x);
  return y < 0x1p-126F ? 0.0F : y;
#endif
}

}  // namespace heed::cuda

// The inverse of attention maps and kernels of landmarks by iteration. Xiong et al. 2021, arXiv 2102.03902.
#pragma once

#include "heed/nn/attention.h"

namespace heed {

/// Approximates the inverse of a [B, H, m, m] by rounds of Z <- Z (13 I - A Z (15 I - A Z (7 I - A Z))) / 4,
/// from Z = A^T / divisor.
Tensor iterated_inverse(const Tensor& a, const Tensor& divisor, int64_t rounds);

}  // namespace heed

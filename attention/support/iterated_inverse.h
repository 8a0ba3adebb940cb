// The inverse of maps between landmarks, approximated by iteration. Xiong et al. 2021, arXiv 2102.03902.
#pragma once

#include "heed/nn/attention.h"

namespace heed {

/// Which largest column sum divides the Z that the iteration starts from.
enum class InverseInit {
  exact,    ///< that of each map
  original  ///< that of all maps of the batch, as in the authors' code: outputs depend on other sequences
};

/// Approximates the inverse of a [B, H, m, m] by rounds of Z <- Z (13 I - A Z (15 I - A Z (7 I - A Z))) / 4,
/// from Z = A^T / (largest column sum, plus `increment` [B, 1, 1, 1] where that is given).
Tensor iterated_inverse(const Tensor& a, InverseInit init, int64_t rounds, const Tensor& increment = {});

}  // namespace heed

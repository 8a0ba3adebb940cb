// Third-order iteration to the inverse of a matrix.
#include "heed/attention/support/iterated_inverse.h"

#include "heed/attention/base/multi_head_attention.h"

namespace heed {

Tensor iterated_inverse(const Tensor& a, InverseInit init, int64_t rounds, const Tensor& increment) {
  Tensor divisor = max(sum(a, 2), 3);  // [B, H, 1, 1]
  if (increment) divisor = divisor + increment;
  if (init == InverseInit::original) divisor = max(max(divisor, 0), 1);
  Tensor z = transpose(a, 2, 3) / divisor;
  const Tensor unit = identity(a.extent(2), a);
  for (int64_t round = 0; round < rounds; ++round) {
    const Tensor az = matmul(a, z);
    z = matmul(z, unit * 13.0 - matmul(az, unit * 15.0 - matmul(az, unit * 7.0 - az))) * 0.25;
  }
  return z;
}

}  // namespace heed

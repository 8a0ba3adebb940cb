// Third-order iteration to the inverse of a matrix.
#include "heed/attention/support/iterated_inverse.h"

#include "heed/attention/base/multi_head_attention.h"

namespace heed {

Tensor iterated_inverse(const Tensor& a, const Tensor& divisor, int64_t rounds) {
  Tensor z = transpose(a, 2, 3) / divisor;
  const Tensor one = identity(a.extent(2), a);
  for (int64_t i = 0; i < rounds; ++i) {
    const Tensor az = matmul(a, z);
    z = matmul(z, one * 13.0 - matmul(az, one * 15.0 - matmul(az, one * 7.0 - az))) * 0.25;
  }
  return z;
}

}  // namespace heed

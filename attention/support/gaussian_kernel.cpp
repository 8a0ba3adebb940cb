// The centre of the keys, and squared distances as matrix products.
#include "heed/attention/support/gaussian_kernel.h"

#include <vector>

namespace heed {

Tensor centre_of_keys(const Tensor& k, const Mask& mask) {
  const NoGrad no_grad;
  const Tensor keys = k.detach();
  if (mask.is_causal() || keys.extent(2) == 0) return slice(keys, 2, 0, std::min<int64_t>(1, keys.extent(2)));
  const Tensor kept = mask.padding_mask(keys, 0);
  if (!kept) return mean(keys, 2);
  return sum(keys * kept, 2) / maximum(sum(kept, 2), 1);
}

Tensor log_gaussian(const Tensor& q, const Tensor& k, double scale) {
  // One matrix product of rows [2 s q, -s |q|^2, -s] and [k, 1, |k|^2], with s the scale: adding the squares
  // to the scores afterwards would take more passes over them.
  const auto constant_column = [](const Tensor& x, double value) {
    return Tensor::full(Shape{x.extent(0), x.extent(1), x.extent(2), 1}, value, x.dtype(), x.device());
  };
  const std::vector<Tensor> query_columns{q * (2 * scale), sum(square(q), 3) * -scale,
                                          constant_column(q, -scale)};
  const std::vector<Tensor> key_columns{k, constant_column(k, 1), sum(square(k), 3)};
  return matmul(concat(query_columns, 3), transpose(concat(key_columns, 3), 2, 3));
}

}  // namespace heed

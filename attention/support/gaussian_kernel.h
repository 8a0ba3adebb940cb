// Logarithms of Gaussian kernels of queries and keys, expanded around a centre.
#pragma once

#include "heed/nn/attention.h"

namespace heed {

/// A vector [B, H, 1, d] near the keys k [B, H, Tk, d], without history, to subtract from queries and keys
/// before their distances are expanded: distances do not depend on it, but far from 0 squares and products
/// would cancel. The mean of the keys without padding; when causal the first key, because later keys must not
/// change the rounding of earlier rows.
Tensor centre_of_keys(const Tensor& k, const Mask& mask);

/// -scale |q_i - k_j|^2: q [B, H, Tq, d], k [B, H, Tk, d], both less the centre -> [B, H, Tq, Tk].
Tensor log_gaussian(const Tensor& q, const Tensor& k, double scale);

}  // namespace heed

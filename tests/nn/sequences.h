// Helpers to write batches of sequences and compare tensors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "heed/autograd/ops.h"
#include "heed/tests/catch.h"

namespace heed::test {

/// i32 [batch, T] from row-major values.
inline Tensor ids(const std::vector<int32_t>& values, int64_t batch) {
  return Tensor::of<int32_t>(values, Shape{batch, static_cast<int64_t>(values.size()) / batch});
}

/// i32 [B].
inline Tensor lengths(const std::vector<int32_t>& values) {
  return Tensor::of<int32_t>(values, Shape{static_cast<int64_t>(values.size())});
}

/// Standard normal numbers by a seed.
inline Tensor normal(const Shape& shape, uint64_t seed, DType dtype = DType::f64) {
  Rng rng(seed);
  const Tensor x(shape, dtype);
  fill_normal(x, 0, 1, rng);
  return x;
}

/// The maximum difference of two tensors of one shape.
inline double apart(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  const auto x = a.to_doubles(), y = b.to_doubles();
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::abs(x[i] - y[i]));
  return worst;
}

/// Position t of x [B, T, ...], flattened to [B, features].
inline Tensor position(const Tensor& x, int64_t t) {
  return reshape(slice(x, 1, t, t + 1), Shape{x.extent(0), -1});
}

}  // namespace heed::test

// Random tensors and comparisons for the tests of core.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/core/tensor.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"

namespace heed {

/// Uniform numbers in [low, high), a pure function of the seed.
inline Tensor random_tensor(const Shape& shape, DType dtype = DType::f32, uint32_t seed = 1, double low = -1,
                            double high = 1) {
  std::mt19937 engine(seed);
  std::vector<double> values(static_cast<size_t>(shape.size()));
  for (double& value : values) value = low + (high - low) * (engine() * 0x1p-32);
  const Tensor wide = Tensor::of<double>(values, shape);
  Tensor out(shape, dtype);
  launch<kernel::Copy>(Device::cpu, wide, out);
  return out;
}

/// Random ids in [0, count).
inline Tensor random_ids(const Shape& shape, int32_t count, uint32_t seed = 1) {
  std::mt19937 engine(seed);
  std::vector<int32_t> values(static_cast<size_t>(shape.size()));
  for (int32_t& value : values) value = static_cast<int32_t>(engine() % static_cast<uint32_t>(count));
  return Tensor::of<int32_t>(values, shape);
}

/// The maximum |a - b| / max(1, |b|); infinity where only one is NaN or infinities differ.
inline double distance(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    const double gap = std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i]));
    worst = std::isnan(gap) ? INFINITY : std::max(worst, gap);
  }
  return worst;
}

inline double distance(const Tensor& a, const std::vector<double>& b) { return distance(a.to_doubles(), b); }
inline double distance(const Tensor& a, const Tensor& b) { return distance(a.to_doubles(), b.to_doubles()); }

/// Maximum error of a kernel relative to a reference in double.
inline double tolerance(DType dtype) { return dtype == DType::f64 ? 1e-12 : 2e-5; }

/// True if the contiguous tensors are bit-identical.
inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.bytes())) == 0;
}

/// True if `make()` is bit-identical with 1, 2, 3, 4 and 8 threads.
template <class Make>
bool same_for_any_threads(Make&& make) {
  const int before = threads();
  set_threads(1);
  const Tensor alone = make();
  bool same = true;
  for (const int count : {2, 3, 4, 8}) {
    set_threads(count);
    same = same && same_bits(alone, make());
  }
  set_threads(before);
  return same;
}

}  // namespace heed

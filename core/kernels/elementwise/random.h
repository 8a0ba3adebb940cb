// Fills with random numbers, and the tick that selects the numbers of a step.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/random.h"

namespace heed::kernel {

/// x = mean + deviation * normal (Box and Muller 1958); f32 or f64, contiguous.
struct FillNormal {
  template <Isa>
  static void cpu(const Tensor& x, double mean, double deviation, const Draw& draw);
  static void cuda(const Tensor& x, double mean, double deviation, const Draw& draw);
};

/// x uniform in [low, high); f32 or f64, contiguous.
struct FillUniform {
  template <Isa>
  static void cpu(const Tensor& x, double low, double high, const Draw& draw);
  static void cuda(const Tensor& x, double low, double high, const Draw& draw);
};

/// tick += 1, which selects the next random numbers of a stream; i64 [1].
struct Advance {
  template <Isa>
  static void cpu(const Tensor& tick);
  static void cuda(const Tensor& tick);
};

}  // namespace heed::kernel

// Counted cost: how operations and memory of an attention grow with length and head width.
#pragma once

#include <functional>

#include "heed/attention/variant.h"

namespace heed {

/// The cost of one training step.
struct StepCost {
  double operations = 0;  ///< floating-point operations, without those of Linear layers
  double bytes = 0;       ///< peak memory, without inputs, outputs, parameters and their gradients
};

/// The sizes of a step of one head: batch, sequence length, head width.
struct StepExtent {
  int64_t batch = 1;   ///< sequences B
  int64_t length = 0;  ///< tokens T of each
  int64_t width = 0;   ///< width of a head
};

/// Normally distributed numbers, a pure function of the seed.
Tensor normal_tensor(const Shape& shape, uint64_t seed, Device device, DType dtype = DType::f32);
/// Counts one forward and backward pass on one thread. Queries and keys are [B, T, width] on the attention's
/// device; for self-attention they are the same tensor.
StepCost count_step(Attention& attention, const Mask& mask, const Tensor& queries, const Tensor& keys);

/// "n^1.98 d^1.02": the exponents of length and width.
std::string counted_growth_text(const Growth& growth);

/// Exponents of a variant's time and memory.
struct CountedGrowth {
  Growth time;    ///< exponents of the operations
  Growth memory;  ///< exponents of the peak bytes
};
/// Measures the exponents by doubling length and width at sizes where the leading term of the growth declared
/// in `traits` dominates on this device. `step` counts one step of given sizes; it is called eight times.
CountedGrowth counted_growth(const Traits& traits, Device device,
                             const std::function<StepCost(const StepExtent&)>& step);
/// Exponents of a variant with default options on the CPU, bidirectional if supported. Takes about a second.
CountedGrowth counted_growth(const Variant& variant);
/// The exponents of the operations of an attention with options. The expected exponents `declared` decide the
/// sizes at which operations are counted.
Growth counted_time(const Spec& spec, const Growth& declared);

}  // namespace heed

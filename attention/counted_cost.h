// Counted cost: how operations and memory of an attention grow with length and head width.
#pragma once

#include <functional>

#include "heed/attention/variant.h"

namespace heed {

/// The cost of one training step.
struct Spent {
  double operations = 0;  ///< floating-point operations, without those of Linear layers
  double bytes = 0;       ///< peak memory, without inputs, outputs, parameters and their gradients
};

/// The sizes of a step of one head: batch, sequence length, head width.
struct StepExtent {
  int64_t batch = 1;   ///< sequences B
  int64_t length = 0;  ///< tokens T of each
  int64_t width = 0;   ///< width of a head
};

/// Counts one forward and backward pass on one thread. Queries and keys are [B, T, width] on the attention's
/// device; for self-attention they are the same tensor.
Spent count_step(Attention& attention, const Mask& mask, const Tensor& queries, const Tensor& keys);

/// Exponents of a variant's time and memory, measured by doubling length and width at sizes where the leading
/// term of the growth declared in `traits` dominates on this device. `step` counts one step of given sizes.
struct CountedGrowth {
  Growth time;    ///< exponents of the operations
  Growth memory;  ///< exponents of the peak bytes
};
/// Calls `step` eight times, on one thread each.
CountedGrowth counted_growth(const Traits& traits, Device device,
                             const std::function<Spent(const StepExtent&)>& step);
/// The same for a variant with default options, bidirectional if it can be, on the CPU. Takes about a second.
CountedGrowth counted_growth(const Variant& variant);
/// The exponents of the operations of an attention with options. `declared`: those expected, which decide the
/// sizes that are counted.
Growth counted_time(const Spec& spec, const Growth& declared);

}  // namespace heed

// How costs grow with length and head width: counted, not timed.
#pragma once

#include <functional>

#include "attention/variant.h"

namespace heed {

/// What one training step takes.
struct Spent {
  double operations = 0;  ///< without those of Linear layers
  double bytes = 0;       ///< at the peak, without inputs, outputs, parameters and all their gradients
};

/// The extents of a step of one head.
struct StepExtent {
  int64_t batch = 1, length = 0, width = 0;
};

/// Counts one step forward and backward on one thread: queries and keys [B, T, width] (the same tensor unless
/// queries cross), both of the attention's device.
Spent count_step(Attention& attention, const Mask& mask, const Tensor& queries, const Tensor& keys);

/// Exponents of a variant's time and memory, counted by doubling length and width where the leading term of
/// what `traits` declare outweighs the rest on this device. `step` counts one step there.
struct CountedGrowth {
  Growth time, memory;
};
CountedGrowth counted_growth(const Traits& traits, Device device,
                             const std::function<Spent(const StepExtent&)>& step);
/// The same of a variant with its defaults, looking both ways where it can. Takes about a second.
CountedGrowth counted_growth(const Variant& variant);

}  // namespace heed

// Recomputation (activation checkpointing): compute again in the backward pass instead of keeping
// activations.
#pragma once

#include <functional>
#include <span>

#include "heed/core/random.h"

namespace heed {

/// Returns f(inputs) without keeping anything computed inside: backward() calls f again, with the same random
/// numbers of `rng`. Gradients reach the inputs and the parameters that f uses, bit-identical to those
/// without recomputation. f must return the same result at both calls and have no side effect; every tensor
/// with a node that it uses must be among `inputs`. What f uses and `rng` must outlive backward(); call
/// rng.advance() only after it. Chen et al. 2016, "Training deep nets with sublinear memory cost", arXiv
/// 1604.06174.
Tensor checkpoint(const std::function<Tensor(std::span<const Tensor>)>& f, std::span<const Tensor> inputs,
                  Rng* rng = nullptr);

}  // namespace heed

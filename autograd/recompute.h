// Computing again instead of remembering.
#pragma once

#include <functional>
#include <span>

#include "core/random.h"

namespace heed {

/// f(inputs), of whose inside nothing is kept: the sweep calls f a second time, from the same random draws of
/// `rng`, and goes through that. Gradients reach the inputs and the leaves that f uses (parameters), to the
/// bit those without a checkpoint. f gives the same result at both calls and changes nothing; a tensor with
/// history that it uses is among the inputs. What f uses and `rng` outlive the sweep, and rng.advance() comes
/// after it. Chen et al. 2016, "Training deep nets with sublinear memory cost", arXiv 1604.06174.
Tensor checkpoint(const std::function<Tensor(std::span<const Tensor>)>& f, std::span<const Tensor> inputs,
                  Rng* rng = nullptr);

}  // namespace heed

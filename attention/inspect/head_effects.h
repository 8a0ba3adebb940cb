// The effect of each head of a model on a loss: ablation of one head after the other.
#pragma once

#include <functional>
#include <vector>

#include "heed/attention/inspect/head_replacement.h"

namespace heed {

/// The loss of a model without one of its heads.
struct HeadEffect {
  ModelHead head{};   ///< the head that was replaced
  double loss = 0;    ///< loss with the head replaced
  double change = 0;  ///< `loss` minus the loss of the whole model
};

/// Replaces each of `heads` alone, or each head of the model where none is given, and computes the loss.
/// `loss` runs the model with the context that it gets, without random numbers: calls must agree. `means` are
/// those of HeadAblation. Fails for a head that the model does not have.
std::vector<HeadEffect> head_effects(Module& model,
                                     const std::function<double(const ForwardContext& context)>& loss,
                                     std::vector<ModelHead> heads = {}, const HeadReplacement& by = {},
                                     const MeanOutputs* means = nullptr);

}  // namespace heed

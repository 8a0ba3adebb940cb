// Losses composed of other ops. cross_entropy() and its fused kernel: autograd/ops.h.
#pragma once

#include "heed/autograd/ops.h"

namespace heed {

/// What becomes of the losses of single elements: their mean or sum, of rank 0, or the losses themselves.
enum class Reduction { mean, sum, none };

/// (x - target)^2 of each element. Both have one shape: use expand() where one should broadcast.
Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);

/// -target log sigmoid(x) - (1 - target) log(1 - sigmoid(x)) of each logit x, without overflow. Both have
/// one shape. `positive_weight` multiplies the first term.
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target,
                                        Reduction reduction = Reduction::mean, double positive_weight = 1);

/// target (log target - log_probabilities) of each element, 0 where target is 0: the divergence of the
/// distributions in the rows of log_probabilities [..., V] from those of target [..., V]. Both have one
/// shape. mean is over rows, PyTorch's "batchmean" for one row an example.
Tensor kl_divergence(const Tensor& log_probabilities, const Tensor& target,
                     Reduction reduction = Reduction::mean);

/// cross_entropy() of each target alone: logits [..., V] at targets (i32 [...]) -> [...] in nats. Targets
/// equal to `ignore` give 0.
Tensor cross_entropy_of_each(const Tensor& logits, const Tensor& targets, double smoothing = 0,
                             int32_t ignore = -1);

}  // namespace heed

// AuxiliaryLosses: terms that attentions add to the loss of the task.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heed/autograd/ops.h"

namespace heed {

/// The likelihood of the targets of a batch under a model, for auxiliary losses that depend on it.
struct Likelihood {
  Tensor log_likelihood;  ///< [B], nats: log p of the targets of each sequence, without history
  Tensor weight;          ///< rank 0: the number of tokens or examples that the loss is a mean over
  Tensor has_targets;     ///< [B]: 1, or 0 for a sequence without targets, which only fills the batch up
};

/// Terms that attentions add to the loss, such as those of stochastic attention or routing. The training step
/// adds sum() to the loss of the task.
struct AuxiliaryLosses {
  /// Computes a term of rank 0 from the likelihood of the targets.
  using FromLikelihood = std::function<Tensor(const Likelihood&)>;

  /// Adds a term of rank 0, in the unit of the loss.
  void add(const char* name, const Tensor& term) { list.emplace_back(name, term); }
  /// Adds a term that resolve() computes once the likelihood is known.
  void add(const char* name, FromLikelihood make) { waiting.emplace_back(name, std::move(make)); }
  /// Computes the waiting terms. The task calls it through resolve_auxiliary_losses().
  void resolve(const Likelihood& likelihood);
  /// The sum of all terms; empty when there are none. Fails when some still wait for a likelihood.
  Tensor sum() const;

  std::vector<std::pair<std::string, Tensor>> list;             ///< name and value of each term
  std::vector<std::pair<std::string, FromLikelihood>> waiting;  ///< names of terms that wait for resolve()
  bool dry_run = false;  ///< true in a step whose result is thrown away: modules must not update their state
};

/// Resolves waiting terms with the likelihood of `targets` (i32 [B, ...]) under `logits` [B, ..., V]; targets
/// equal to `ignore` do not count. Does nothing when no term waits.
void resolve_auxiliary_losses(AuxiliaryLosses* losses, const Tensor& logits, const Tensor& targets,
                              int32_t ignore = -1);
/// Resolves waiting terms for concatenated sequences: logits [N, V], targets [N], and in `rows` the length of
/// each sequence.
void resolve_auxiliary_losses(AuxiliaryLosses* losses, const Tensor& logits, const Tensor& targets,
                              std::span<const int64_t> rows, int32_t ignore = -1);
/// Resolves waiting terms where an example is `parts` sequences of a batch [parts * B], ordered part by part:
/// each sequence gets the likelihood of its example, from logits [B, V] and targets [B].
void resolve_auxiliary_losses_of_parts(AuxiliaryLosses* losses, const Tensor& logits, const Tensor& targets,
                                       int64_t parts);

}  // namespace heed

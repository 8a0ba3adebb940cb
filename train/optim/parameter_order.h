// The order of parameters in the arena of an optimizer, and which of them Muon updates.
#pragma once

#include <vector>

#include "heed/train/optim/optimizer.h"

namespace heed {

/// A parameter, and where it belongs.
struct OrderedParameter {
  const Named* parameter;  ///< name and tensor
  int64_t group;           ///< index of its group; -1: none
  bool is_vector;          ///< it has fewer than two axes
  bool is_hidden;  ///< it has OptimizerOptions::hidden_rate, and Muon updates it where the kind is muon
};

/// The parameters of a module: those of Muon first, then those without a group; of each group the matrices
/// first, of these the hidden ones last. Fails for a choice of rules that the options or the shapes do not
/// allow.
std::vector<OrderedParameter> ordered(Module& module, const std::vector<Named>& parameters,
                                      const OptimizerOptions& options);

/// Fails for a group to which no tensor of the module belongs; one that is frozen already counts.
void check_used(const std::vector<Named>& tensors, const std::vector<ParameterGroup>& groups);

}  // namespace heed

// Trained gates of attention heads, which show what heads a converged model can do without.
#pragma once

#include <string>
#include <vector>

#include "heed/train/inspect/head_ablation.h"

namespace heed {

/// Settings of the training of gates.
struct GateOptions {
  int64_t steps = 400;          ///< number of batches of training data
  double penalty = 0.02;        ///< nats per target that an open gate costs: lambda
  double learning_rate = 0.05;  ///< learning rate of Adam
  uint64_t seed = 1;            ///< seed of the noise
};

/// A trained gate.
struct HeadGate {
  std::string name;  ///< name of the head
  double open = 0;   ///< probability that the gate is not 0
  double value = 0;  ///< value of the gate without noise, 0 to 1
};

/// Gates of all heads, and the effect of closing those near 0.
struct GateReport {
  std::vector<HeadGate> gates;  ///< in the order of heads
  double loss = 0;   ///< mean loss of the last tenth of the steps, nats per target, without penalty
  int64_t kept = 0;  ///< number of gates with a value of at least 0.5
  AblationEffect
      effect;  ///< effect on the test examples when the heads of all other gates are replaced by zero
};

/// Multiplies each head's output by a gate before the output projection, and trains the gates alone, with a
/// relaxed L0 penalty: lambda times the sum of the probabilities that gates are open (Louizos et al. 2018,
/// arXiv 1712.01312; Voita et al. 2019, arXiv 1905.09418). The model keeps its weights, runs without dropout,
/// and records no gradients any more. `measurement`: the test examples of the effect. A WorkScope shows the
/// progress (core/counted_work.h).
GateReport train_head_gates(Task& task, Module& model, const GateOptions& options,
                            const AblationOptions& measurement, const DecodeOptions& decode);

Json gates_json(const GateReport& report);         ///< every number, as JSON
std::string gates_text(const GateReport& report);  ///< a table for terminals

}  // namespace heed

// The circuit of a language model: which edges between its heads and networks decide between two answers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heed/attention/inspect/contrast_pair.h"
#include "heed/core/io/json.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// How circuit() measures edges.
struct CircuitOptions {
  int64_t steps = 5;      ///< steps of edge_attribution(); 1: without integrated gradients
  bool is_exact = false;  ///< whether PathPatching measures each edge, too
};

/// An edge and its effect, a mean over pairs.
struct CircuitEdge {
  std::string sender;    ///< EdgeSender::name()
  std::string receiver;  ///< EdgeReceiver::name()
  double score = 0;      ///< estimate of edge_attribution()
  double exact = 0;      ///< effect of PathPatching; 0 where it was not measured
};

/// Effects of all edges of a model.
struct CircuitReport {
  int64_t pairs = 0;                 ///< pairs of inputs
  CircuitOptions options{};          ///< how edges were measured
  double clean = 0;                  ///< mean logit difference on clean inputs
  double corrupted = 0;              ///< mean logit difference on corrupted inputs
  std::vector<CircuitEdge> edges{};  ///< the largest |exact| first where it was measured, else |score|
  double correlation = 0;            ///< rank_correlation() of scores and exact effects; 0: not measured
};

/// At most `examples` test sequences of a task with keys and values, each with the counterpart in which two
/// keys are swapped; both end with the question. A usage error where the task has no keys with values.
std::vector<ContrastPair> contrast_pairs(const Task& task, int64_t examples);

/// Measures all edges of a model on pairs, of which there is at least one. A usage error for a model that is
/// no decoder-only transformer, and as ResidualGraph and check() fail. A WorkScope shows its progress.
CircuitReport circuit(Module& model, std::span<const ContrastPair> pairs, const CircuitOptions& options);

Json circuit_json(const CircuitReport& report);  ///< every number, as JSON
/// A table of the first `top` edges, for terminals.
std::string circuit_text(const CircuitReport& report, int64_t top);

}  // namespace heed

// PathPatching: the exact effect of an edge between nodes of a language model.
#pragma once

#include <vector>

#include "heed/attention/inspect/contrast_pair.h"
#include "heed/attention/inspect/residual_graph.h"

namespace heed {

/// Exchanges what edges carry in the forward pass on the clean input of a pair (path patching: Wang et al.
/// 2022, arXiv 2211.00593; of single edges: Conmy et al. 2023, arXiv 2304.14997): the receiver reads the
/// residual stream with the sender's output on the corrupted input in place of that on the clean one, and
/// all that follows the receiver is computed anew. The effect is the logit_difference() of this pass minus
/// that of the clean one, so it is negative where the edge speaks for the right answer.
class PathPatching {
 public:
  /// Runs the model on both inputs. The graph must outlive it. Fails as check() and ResidualGraph::trace()
  /// do.
  PathPatching(const ResidualGraph& graph, const ContrastPair& pair);
  double clean() const { return clean_difference_; }          ///< logit difference on the clean input
  double corrupted() const { return corrupted_difference_; }  ///< logit difference on the corrupted input
  /// The effect of several edges to one receiver together. Fails for a sender that is not before it.
  double effect(size_t receiver, const std::vector<size_t>& senders) const;
  /// The effect of each edge alone, in the order of ResidualGraph::edges(). A WorkScope shows its progress.
  std::vector<double> effects() const;

 private:
  std::vector<double> effects_of_changes(size_t receiver, const Tensor& changes) const;

  const ResidualGraph& graph_;
  ContrastPair pair_;
  std::vector<Tensor> streams_;  // [1, T, width], on the clean input
  Tensor changes_;               // [senders, T, width]: outputs on the corrupted input minus the clean ones
  double clean_difference_ = 0, corrupted_difference_ = 0;
};

}  // namespace heed

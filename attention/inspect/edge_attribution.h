// Edge attribution patching with integrated gradients: an estimate of the effect of every edge at once.
#pragma once

#include <vector>

#include "heed/attention/inspect/contrast_pair.h"
#include "heed/attention/inspect/residual_graph.h"

namespace heed {

/// Estimates what PathPatching::effects() measures, in the order of ResidualGraph::edges(), by two forward
/// passes, and `steps` forward and backward passes (EAP-IG: Hanna et al. 2024, arXiv 2403.17806):
///
///   score(u, v) = (z'_u - z_u) . 1/m sum_{k=1}^m dL(z' + k/m (z - z')) / dx_v
///
/// z_u and z'_u are the outputs of the sender on the clean and the corrupted input, z and z' the embeddings
/// of these inputs, L is the logit_difference(), and x_v is what the receiver reads, before its norm. The dot
/// product sums over positions and width. The last of the m steps is the clean input itself; with one step
/// the score is that of edge attribution patching (Syed et al. 2023, arXiv 2310.10348). The authors' program
/// runs k = 0 to m - 1 in place of 1 to m. Gradients of the model's parameters are left as they are. Fails
/// for `steps` below 1, and as check() and ResidualGraph::trace() do.
std::vector<double> edge_attribution(const ResidualGraph& graph, const ContrastPair& pair, int64_t steps);

}  // namespace heed

// Attention rollout: how much of each input token reaches each position through all layers so far.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/attention/inspect/map_view.h"

namespace heed {

/// Fills MapView::rollout of every stack of square self-attention maps: R_0 = I, R_l = A_l R_(l-1), where A_l
/// is the mean of the heads plus the identity, each row divided by its sum (Abnar and Zuidema 2020,
/// "Quantifying attention flow in transformers", arXiv 2005.00928, section 3). A row whose sum is not above 0
/// counts as the identity. Maps of one kind are one stack, in the order of their layers. A stack is left
/// without a rollout where a layer has several maps, a layer is missing, lengths differ, or the input is
/// longer than `longest`: its time grows with the cube of the length.
void add_rollout(std::vector<MapView>& maps, int64_t longest = 2048);

}  // namespace heed

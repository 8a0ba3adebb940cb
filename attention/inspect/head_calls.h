// What a recorder kept of an attention's heads, as optional parts of a map: factors and attribution.
#pragma once

#include <optional>

#include "heed/attention/inspect/map_view.h"
#include "heed/autograd/tape.h"
#include "heed/nn/attention.h"

namespace heed {

/// A recorder that keeps queries, keys, values and outputs of heads where `parts` needs them.
MapRecorder recorder_for(const MapParts& parts);

/// Creates `no_grad`, which turns recording of gradients off, unless an attribution needs them.
void turn_gradients_off(std::optional<NoGrad>& no_grad, const MapParts& parts);

/// Calls backward() where an attribution is wanted: of the sum over rows of `logits` [N, classes] of the log
/// probability of the row's class in `chosen`, or of its likeliest class if `chosen` is empty.
void explain_choice(const Tensor& logits, const MapParts& parts, std::vector<int32_t> chosen = {});

/// The index of the largest number of each row of `logits` [N, classes]; the first one wins a tie.
std::vector<int32_t> likeliest(const Tensor& logits);

/// The call that made map number `index` of a recorder with keep_heads; null when its attention keeps none or
/// records another number of maps than it had calls.
const MapRecorder::HeadCall* head_call(const MapRecorder& recorder, size_t index);

/// Puts the queries and keys of the call's first sequence into the map, cut to its lengths. Does nothing
/// where the attention's scores are no dot products.
void add_factors(MapView& view, const MapRecorder::HeadCall& call);

/// Puts weight times gradient into the map, after backward() of the chosen output: a_ij times d output / d
/// a_ij, which is (gradient of head output i) . v_j because the head's output is the map times the values.
/// Does nothing where it is not, to a thousandth of the largest output, or where no gradient has arrived.
void add_attribution(MapView& view, const MapRecorder::Map& map, const MapRecorder::HeadCall& call);

/// Adds factors and attribution to `view`, the view of map number `index` of the recorder, where they were
/// kept.
void add_head_parts(MapView& view, const MapRecorder& recorder, size_t index);

}  // namespace heed

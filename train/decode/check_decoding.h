// check_decoding(): whether a model that is read step by step says what it says when read at once.
#pragma once

#include <functional>

#include "heed/nn/transformer.h"

namespace heed {

/// Reads `ids` by next() token by token, and each beginning of them by one next() at once, and compares the
/// logits that follow. For models of your own, before they are trained. Fails at the first position where a
/// logit differs by more than a thousandth of the largest one, and says what is usually forgotten. `start`
/// makes the state of one sequence; empty: model.start(). Fails for fewer than two ids, and for more than the
/// model reads.
void check_decoding(const AutoregressiveModel& model, const std::vector<int32_t>& ids,
                    const std::function<Decoding()>& start = {});
/// check_decoding() of eight random ids below `vocabulary`, or of max_length() where that is less.
void check_decoding(const AutoregressiveModel& model, int64_t vocabulary);

}  // namespace heed

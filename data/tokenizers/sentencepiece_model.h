// Validates a serialised sentencepiece model before the library reads it.
#pragma once

#include <cstdint>
#include <string_view>

namespace heed::detail {

/// Parses a serialised ModelProto (sentencepiece_model.proto). Fault::data that names `name` and the byte,
/// counted from `offset`, unless the model has the properties of those that train_sentencepiece() makes:
/// well-formed messages; unigram or BPE; tokens that are distinct, UTF-8, of a kind in use, with finite
/// scores, only the first of them unknown; normaliser tables without references outside themselves. The
/// library checks none of this: on other models it reads or runs beyond its memory. `remedy` ends errors:
/// "Take the one of another checkpoint."
void check_sentencepiece_model(std::string_view model, std::string_view name, int64_t offset,
                               std::string_view remedy);

}  // namespace heed::detail

// What a serialised sentencepiece model may look like before the library is trusted with it.
#pragma once

#include <cstdint>
#include <string_view>

namespace heed::detail {

/// Walks over a serialised ModelProto (sentencepiece_model.proto) and throws Fault::data, naming `name` and
/// the byte counted from `offset`, unless it is as train_sentencepiece makes them: messages that end where
/// they should; unigram or BPE; pieces that are distinct, UTF-8, of a kind that is in use, with finite
/// scores, the first and no other being the unknown one; tables of the normaliser whose every step stays
/// within them. The library looks at none of this, and reads or runs beyond its memory on models that break
/// it.
void check_sentencepiece_model(std::string_view model, std::string_view name, int64_t offset);

}  // namespace heed::detail

// Special tokens: padding, unknown words, beginning and end of a sequence.
#pragma once

#include <cstdint>
#include <string_view>

namespace heed {

/// Ids of the special tokens; -1 where a tokenizer has none of that kind.
struct SpecialIds {
  int32_t unknown = 0;  ///< stands for text that the vocabulary lacks
  int32_t pad = 1;      ///< fills short rows of a batch
  int32_t start = 2;    ///< before the first token of a sequence
  int32_t end = 3;      ///< behind the last token of a sequence
  int32_t mask = -1;    ///< stands for a token that a masked language model must guess
  /// Whether the sentence that a translator reads begins with `start`; translations always do.
  bool starts_source = true;

  /// Number of special tokens around the sentence that a translator reads: start, if any, and end.
  int64_t around_source() const { return starts_source ? 2 : 1; }
  /// Number of special tokens around a text that a masked language model reads: start and end of a tokenizer
  /// that has a mask.
  int64_t around_masked() const { return mask >= 0 ? 2 : 0; }
};

/// Display names of the special tokens, in the order of the ids of SpecialIds.
inline constexpr std::string_view special_names[] = {"[UNK]", "[PAD]", "[SOS]", "[EOS]"};

}  // namespace heed

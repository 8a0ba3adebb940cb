// Encodes text of many lines, and decodes ids one by one during generation.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/data/tokenizers/tokenizer.h"

namespace heed {

/// The ids of a text of many lines. A tokenizer without line ends (word, sentencepiece) encodes line by line,
/// with its `end` token for each line's end.
std::vector<int32_t> encode_lines(const Tokenizer& tokenizer, std::string_view text);

/// encode_lines() of a text at the beginning of a language model's input, after Tokenizer::document_start().
std::vector<int32_t> encode_prompt(const Tokenizer& tokenizer, std::string_view text);

/// The inverse of encode_lines().
std::string decode_lines(const Tokenizer& tokenizer, std::span<const int32_t> ids);

/// Decodes ids one at a time: the parts it returns add up to the text of all ids.
class StreamedText {
 public:
  /// Continues after the ids of a prompt, whose text it does not return. The tokenizer must outlive it.
  explicit StreamedText(const Tokenizer& tokenizer, std::span<const int32_t> prompt = {});

  /// The text that this id adds; empty until a multi-byte character is complete.
  std::string add(int32_t id);
  /// The remaining bytes: those of a character that was never completed.
  std::string rest();

 private:
  /// The text of the ids that was not returned yet.
  std::string pending_text() const;

  const Tokenizer& tokenizer_;
  std::vector<int32_t> ids_;  // the newest ids: context, then those not returned yet
  size_t num_returned_ = 0;   // ids of ids_ whose text was returned
};

}  // namespace heed

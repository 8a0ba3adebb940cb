// Texts of many lines as ids, and back while the ids are still being made.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer.h"

namespace heed {

/// The ids of a text of many lines. A tokenizer that knows no line ends (word, sentencepiece) is given line
/// after line, and its `end` stands for each line's end.
std::vector<int32_t> encode_lines(const Tokenizer& tokenizer, std::string_view text);

/// The way back.
std::string decode_lines(const Tokenizer& tokenizer, std::span<const int32_t> ids);

/// Text out of ids that come one at a time: what is given joins up to what the ids decode to together.
class StreamedText {
 public:
  /// The text goes on from `before`, which is not given again. The tokenizer must outlive it.
  explicit StreamedText(const Tokenizer& tokenizer, std::span<const int32_t> before = {});

  /// What this id adds; empty while a character of several bytes is not complete.
  std::string add(int32_t id);
  /// What still waited: the bytes of a character that never became complete.
  std::string rest();

 private:
  std::string fresh() const;

  const Tokenizer& tokenizer_;
  std::vector<int32_t> ids_;  // the newest: those given out last, then those that wait
  size_t given_ = 0;          // so many of them have been given
};

}  // namespace heed

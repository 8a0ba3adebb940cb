// The steps around the model of a tokenizer.json: normalizers, pre-tokenizers and decoders.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/io/json.h"
#include "heed/data/tokenizers/tokenizer_json_reader.h"

namespace heed {

/// A step as a function, and its name in errors: "normalizer Prepend".
template <class Function>
struct NamedStep {
  std::string name;  ///< kind and type
  Function run;      ///< what it does
};

/// Normalises parts of texts and cuts them into words, as Hugging Face's tokenizers 0.23 do. Normalizers:
/// Sequence, Precompiled, NFC, NFD, NFKC, NFKD, Lowercase, Strip, Prepend, BertNormalizer, and Replace of a
/// text or of two and more blanks. Pre-tokenizers: Sequence, Metaspace, Whitespace, WhitespaceSplit and
/// BertPreTokenizer.
class TextSteps {
 public:
  /// Takes normalizer and pre_tokenizer of a file. Fault::data that names a step of another type, a text of
  /// more than 256 bytes that a step puts in, and a Metaspace with prepend_scheme = first behind a step that
  /// may leave out the first character.
  explicit TextSteps(const detail::TokenizerJsonReader& file);
  /// The words of a part of a text; each has a byte at least. `begins`: the text begins with this part.
  /// Fault::data that names the step after which there are more than 64 bytes for each byte and 64 KiB.
  std::vector<std::string> words(std::string_view part, bool begins) const;

 private:
  /// Fails unless the first character of a text is that of its words: for this Metaspace.
  void demand_first_character(const detail::TokenizerJsonReader& file, const Json& metaspace) const;

  std::vector<NamedStep<std::function<std::string(std::string)>>> normalizers_;
  /// Each appends the words of a part.
  std::vector<NamedStep<std::function<void(const std::string&, bool begins, std::vector<std::string>&)>>>
      pre_tokenizers_;
};

/// Makes texts of tokens, as Hugging Face's tokenizers do. Decoders: Sequence, Metaspace, Replace of a text,
/// ByteFallback, Fuse, Strip. Bytes that are no UTF-8 stay as they are, where tokenizers write U+FFFD.
class TextDecoder {
 public:
  /// Takes the decoder of a file. Fault::data that names one of another type, and a text of more than 256
  /// bytes that a Replace puts in place of another.
  explicit TextDecoder(const detail::TokenizerJsonReader& file);
  /// The text of tokens: without a decoder they are joined by blanks. Fault::data as of TextSteps::words().
  std::string joined(std::vector<std::string> tokens) const;

 private:
  std::vector<NamedStep<std::function<void(std::vector<std::string>&)>>> decoders_;
  bool has_decoder_ = false;
};

}  // namespace heed

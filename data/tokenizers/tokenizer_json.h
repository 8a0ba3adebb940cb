// tokenizer.json, the file of Hugging Face's tokenizers: read and written.
#pragma once

#include <memory>
#include <string>

#include "heed/core/error.h"
#include "heed/data/tokenizers/tokenizer.h"

namespace heed {

/// Reads byte pairs: a model BPE whose words are cut as by GPT-2 (ByteLevel) or with each digit alone
/// (Digits, then ByteLevel), without normalizer. Added tokens must be special; no text is encoded as one of
/// them. A model Unigram or WordLevel becomes a tokenizer of the kind `tokenizer_json`
/// (data/tokenizers/json_tokenizer.h). Fault::data that names the file and what does not fit.
std::unique_ptr<Tokenizer> read_tokenizer_json(const Path& path);

/// The content of a tokenizer.json that encodes every text as this `byte_pair` or `tokenizer_json` tokenizer
/// does; of byte pairs but for special tokens, which other programs find in texts. Fault::usage for other
/// kinds.
std::string tokenizer_json(const Tokenizer& tokenizer);

}  // namespace heed

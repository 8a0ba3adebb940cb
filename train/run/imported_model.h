// A model of another program, ready to become a run.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heed/data/tokenizers/tokenizer.h"

namespace heed {

/// A model that another program trained, as a DecoderOnly, MaskedLanguageModel or
/// EncoderDecoder with softmax attention.
struct ImportedModel {
  std::string architecture;  ///< as people call it: "GPT-2"
  std::string run_name;      ///< first part of the names of its runs: "gpt2"
  std::string preset =
      "lm";  ///< preset from which `settings` differ; translate for a translator, mlm for a BERT
  std::vector<std::pair<std::string, std::string>> settings = {};  ///< names and values
  std::string weights = {};  ///< bytes of a safetensors file, for load_bytes()
  /// Tokenizer of texts, or of a translator's source; null where the file has none.
  std::unique_ptr<Tokenizer> tokenizer = {};
  std::unique_ptr<Tokenizer> target_tokenizer = {};  ///< a translator's of its target; else null
  int64_t vocabulary = 0;                            ///< number of its tokens, where there is no tokenizer
  std::vector<std::string> notes = {};               ///< sentences about tensors that are new or left out
};

}  // namespace heed

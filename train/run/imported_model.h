// A model of another program, ready to become a run.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heed/data/tokenizers/tokenizer.h"

namespace heed {

/// A model that another program trained, as a DecoderOnly with softmax attention.
struct ImportedModel {
  std::string architecture;  ///< as people call it: "GPT-2"
  std::string run_name;      ///< first part of the names of its runs: "gpt2"
  std::vector<std::pair<std::string, std::string>> settings = {};  ///< that differ from the preset lm
  std::string weights = {};                   ///< bytes of a safetensors file, for load_bytes()
  std::unique_ptr<Tokenizer> tokenizer = {};  ///< its tokenizer; null where the file has none
  int64_t vocabulary = 0;                     ///< number of its tokens, where there is no tokenizer
};

}  // namespace heed

// The tokenizer of the program llama2.c: pieces with scores, merged in pairs.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "heed/data/tokenizers/tokenizer.h"

namespace heed {

/// Reads a tokenizer.bin of llama2.c (https://github.com/karpathy/llama2.c, tokenizer.py): the pieces of a
/// LLaMA's sentencepiece model with their scores. A text begins with a blank of its own, its characters are
/// pieces or else their bytes are, and of all neighbours those are joined first whose joint piece has the
/// highest score. The kind is `llama2_c`; document_start() is its start token. Fault::data that names `name`
/// and the byte for a file that is cut short, a piece that is empty or there twice, a score that is no
/// number, and where the pieces 3 to 258 are not the bytes.
std::unique_ptr<Tokenizer> parse_llama2_c_tokenizer(std::string bytes, std::string_view name);

namespace detail {
/// Makes a tokenizer from the bytes of save().
std::unique_ptr<Tokenizer> load_llama2_c(std::string_view bytes, std::string_view name);
}  // namespace detail

}  // namespace heed

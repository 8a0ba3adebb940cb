// Tokenizers of a tokenizer.json with a model of the type Unigram or WordLevel.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/io/json.h"
#include "heed/data/tokenizers/tokenizer.h"

namespace heed {

/// Makes a tokenizer of the kind `tokenizer_json`: it finds the added tokens in a text, normalises what lies
/// between them, cuts that into words (data/tokenizers/text_steps.h), and gives ids by the pieces of Unigram
/// or word by word; without an unknown token of a model WordLevel, text that has no id is Fault::usage.
/// unknown() is that of the model; pad(), start() and end() are added tokens with the usual names, such as
/// `<pad>`, `<s>` and `</s>`; document_start() is the token that the template of post_processor puts before
/// texts. Fault::data that begins with `name` and names what does not fit.
std::unique_ptr<Tokenizer> make_json_tokenizer(const Json& json, const std::string& name);

/// The content of a tokenizer.json that gives every text the ids of this tokenizer. Fault::usage for other
/// kinds than `tokenizer_json`.
Json json_of_tokenizer(const Tokenizer& tokenizer);

/// The ids of the added tokens that are special, such as `<s>`, in the order of the file. Fault::usage for
/// other kinds than `tokenizer_json`.
std::vector<int32_t> special_added_ids(const Tokenizer& tokenizer);

namespace detail {
/// Makes a tokenizer from the bytes of save().
std::unique_ptr<Tokenizer> load_json_tokenizer(std::string_view bytes, std::string_view name);
}  // namespace detail

}  // namespace heed

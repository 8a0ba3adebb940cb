// Tokenizers of Marian's translators: the pieces of a sentencepiece model, with ids of a vocabulary of its
// own.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heed/data/tokenizers/tokenizer.h"

namespace heed {

/// The contents of a tokenizer of the kind `marian`.
struct MarianLists {
  std::vector<std::string> pieces;  ///< the piece of each id; both languages of a translator share them
  SpecialIds special;               ///< ids among them; none of them is -1
  std::string model;                ///< bytes of the sentencepiece model of one language, a .spm file
};

/// Makes a tokenizer that cuts texts by `lists.model` and gives each piece its id, `unknown` where it has
/// none. A text that begins with >>CODE<<, the language to translate into, has that as its first piece.
/// Decoding leaves unknown pieces out, too. Fault::data that names `name` for pieces that repeat, special ids
/// outside the vocabulary, and a model that Heed cannot read.
std::unique_ptr<Tokenizer> make_marian_tokenizer(MarianLists lists, std::string_view name);

/// The contents of a tokenizer. Fails unless its kind is `marian`.
MarianLists marian_lists(const Tokenizer& tokenizer);

namespace detail {
/// Makes a tokenizer from the bytes of save().
std::unique_ptr<Tokenizer> load_marian(std::string_view bytes, std::string_view name);
}  // namespace detail

}  // namespace heed

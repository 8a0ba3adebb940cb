// WordPiece, the tokenizer of BERT.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/error.h"
#include "heed/core/io/json.h"
#include "heed/data/tokenizers/bert_text.h"
#include "heed/data/tokenizers/tokenizer.h"

namespace heed {

/// All that a WordPiece tokenizer consists of.
struct WordPieceLists {
  std::vector<std::string> pieces = {};  ///< a piece an id
  int64_t num_word_pieces =
      0;  ///< words are cut into the first so many pieces; the others are special tokens
  std::vector<int32_t> found_in_texts = {};  ///< ids of the special tokens that texts may contain: [MASK]
  SpecialIds special = {};                   ///< all but pad are there; start is [CLS] and end is [SEP]
  BertNormalizer normalizer = {};            ///< what happens to texts first
  std::string prefix = "##";                 ///< begins each piece that does not begin a word
  int64_t max_word = 100;                    ///< a longer word, in code points, is unknown as a whole
};

/// Makes a tokenizer of the kind `wordpiece`. It finds special tokens in a text, normalises what lies between
/// them and cuts that into words (data/tokenizers/bert_text.h). Then it takes from each word the longest
/// piece that the word begins with, and so on behind it; a word with a rest that no piece begins is the one
/// unknown token. Wu et al. 2016, arXiv 1609.08144; Devlin et al. 2019, arXiv 1810.04805. Fault::data that
/// begins with `name` for a repeated piece and for a special id outside of the vocabulary.
std::unique_ptr<Tokenizer> make_wordpiece(WordPieceLists lists, std::string_view name);

/// The lists of a `wordpiece` tokenizer; Fault::usage for other kinds.
const WordPieceLists& wordpiece_lists(const Tokenizer& tokenizer);

/// Reads a tokenizer of a folder: of tokenizer.json, or of vocab.txt (a piece a line) with do_lower_case,
/// strip_accents, tokenize_chinese_chars, unk_token, cls_token and sep_token of tokenizer_config.json, if
/// that is there. The mask is called [MASK] and padding [PAD]. Fault::file where both are missing;
/// Fault::data that names the file and what is no WordPiece of BERT.
std::unique_ptr<Tokenizer> read_wordpiece(const Path& folder);

/// The content of a tokenizer.json of Hugging Face's tokenizers that encodes every text as this tokenizer
/// does. Fault::usage for other kinds.
Json wordpiece_json(const Tokenizer& tokenizer);

namespace detail {
/// Makes a tokenizer of a tokenizer.json, which errors call `name`.
std::unique_ptr<Tokenizer> wordpiece_of_json(const Json& json, const std::string& name);
/// Makes a tokenizer from the bytes of save().
std::unique_ptr<Tokenizer> load_wordpiece(std::string_view bytes, std::string_view name);
}  // namespace detail

}  // namespace heed

// Word and character vocabularies and their tokenizers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "heed/core/error.h"
#include "heed/data/tokenizers/tokenizer.h"

namespace heed {

/// The matches of `\w+|[^\w\s]+` in a text, case-sensitive: runs of letters and digits, and runs of other
/// characters but white space. The word tokenizer of the hkproj translator recipe.
std::vector<std::string_view> word_pieces(std::string_view text);

/// Which words a vocabulary contains.
struct VocabularyOptions {
  int64_t min_frequency = 2;  ///< rarer words are left out
  int64_t max_size = 30000;   ///< tokens, including the four special ones
};

/// A bijection between tokens and the ids 0 .. size() - 1; the first four are [UNK] [PAD] [SOS] [EOS].
class Vocabulary {
 public:
  /// The vocabulary of the special tokens, then `pieces`. Fault::data for an empty or repeated token.
  explicit Vocabulary(std::vector<std::string> pieces);

  /// The vocabulary of the sentences' words: the most frequent first, ties in byte order.
  static Vocabulary train(std::span<const std::string_view> sentences, const VocabularyOptions& options = {});

  /// Loads a word-level tokenizer file (JSON) of Hugging Face, with its ids. Fault::data when it is of
  /// another kind, its ids have gaps, or it does not begin with the four special tokens.
  static Vocabulary load_huggingface(const Path& path);

  /// Number of tokens, the special ones included.
  int64_t size() const { return static_cast<int64_t>(pieces_.size()); }
  /// The id of a token; that of [UNK] when unknown.
  int32_t id(std::string_view piece) const;
  /// True where the token has an id of its own.
  bool contains(std::string_view piece) const { return ids_.contains(piece); }
  /// Fault::usage for an id that does not exist.
  const std::string& piece(int32_t id) const;
  /// All tokens, the special ones first.
  const std::vector<std::string>& pieces() const { return pieces_; }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::vector<std::string> pieces_;
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
};

/// How to join words to text.
enum class Joining {
  natural,  ///< natural text: see detokenise(); unknown words stay visible as [UNK]
  blanks,   ///< with blanks between all words, without unknown ones: what the hkproj recipe compares
};

/// Joins words to natural text: no blank before , . ; : ! ? ) and after (, none around apostrophes and
/// hyphens (l'uomo, don't, anti-hero), paired quotation marks, digits together in 1,000 and 3.5.
std::string detokenise(std::span<const std::string_view> pieces);

/// A tokenizer over a word vocabulary.
std::unique_ptr<Tokenizer> make_word_tokenizer(Vocabulary vocabulary, Joining joining = Joining::natural);

/// A tokenizer of the characters that occur in a text, ids in code point order. It has no special ids:
/// Fault::usage for text with other characters. Fault::data for an empty text or bad UTF-8.
std::unique_ptr<Tokenizer> make_character_tokenizer(std::string_view text);

/// A tokenizer whose 256 ids are the bytes, so that it encodes any input. Saved as a character tokenizer with
/// all bytes; saved ones with fewer can be loaded and reject the others.
std::unique_ptr<Tokenizer> make_byte_tokenizer();

namespace detail {
/// Makes a word tokenizer from the bytes of save().
std::unique_ptr<Tokenizer> load_word_tokenizer(std::string_view bytes, std::string_view name);
/// Makes a character or byte tokenizer from the bytes of save().
std::unique_ptr<Tokenizer> load_character_tokenizer(std::string_view bytes, std::string_view name);
}  // namespace detail

}  // namespace heed

// Word and character vocabularies, and the tokenizers over them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "data/tokenizer.h"

namespace heed {

/// The pieces `\w+|[^\w\s]+` of a text, case kept: runs of letters and digits, runs of anything else, white
/// space dropped. The word tokeniser of the hkproj translator recipe.
std::vector<std::string_view> word_pieces(std::string_view text);

/// Which words enter a vocabulary.
struct VocabularyOptions {
  int64_t minimum = 2;   ///< how often a piece must occur
  int64_t most = 30000;  ///< largest size, the four special pieces included
};

/// A bijection between pieces and the ids 0 .. size() - 1; the first four are [UNK] [PAD] [SOS] [EOS].
class Vocabulary {
 public:
  /// Pieces in this order after the special ones. Fault::data for an empty or repeated piece.
  explicit Vocabulary(std::vector<std::string> pieces);

  /// Counts the word pieces of the sentences: by falling frequency, equally frequent ones in the order of
  /// their bytes.
  static Vocabulary train(std::span<const std::string_view> sentences, const VocabularyOptions& options = {});

  /// The vocabulary of a tokenizer file (JSON) of word level, ids as they stand there. Fault::data when it is
  /// of another kind, or its ids have a hole, or it does not begin with the four special pieces.
  static Vocabulary load_huggingface(const Path& path);

  int64_t size() const { return static_cast<int64_t>(pieces_.size()); }
  /// The id of a piece; that of [UNK] when it is not known.
  int32_t id(std::string_view piece) const;
  bool contains(std::string_view piece) const { return ids_.contains(piece); }
  /// Fault::usage for an id that does not exist.
  const std::string& piece(int32_t id) const;
  /// All pieces, the special ones first.
  const std::vector<std::string>& pieces() const { return pieces_; }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::vector<std::string> pieces_;
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
};

/// How word pieces become text again.
enum class Joining {
  natural,  ///< as it is written: see `detokenise`; unknown pieces stay visible as [UNK]
  blanks,   ///< one blank between all pieces, unknown ones left out: the text the hkproj recipe compares
};

/// Natural text from word pieces: no blank before , . ; : ! ? ) and after (, apostrophes and hyphens closed
/// up (l'uomo, don't, anti-hero), quotation marks paired, digits kept together in 1,000 and 3.5.
std::string detokenise(std::span<const std::string_view> pieces);

/// A tokenizer over a word vocabulary.
std::unique_ptr<Tokenizer> make_word_tokenizer(Vocabulary vocabulary, Joining joining = Joining::natural);

/// What a character tokenizer takes as one character.
enum class CharacterUnit { code_point, byte };

/// A tokenizer whose ids are the ranks of the characters that occur in the text; it has no special ids, so
/// text with other characters is refused with Fault::usage. Fault::data for an empty text or bad UTF-8.
std::unique_ptr<Tokenizer> make_character_tokenizer(std::string_view text);

/// A tokenizer whose 256 ids are the bytes themselves, so that it takes any input. It is saved as a character
/// tokenizer that knows them all; saved ones that know fewer load too, and refuse the others.
std::unique_ptr<Tokenizer> make_byte_tokenizer();

namespace detail {
std::unique_ptr<Tokenizer> load_word_tokenizer(std::string_view bytes, std::string_view name);
std::unique_ptr<Tokenizer> load_character_tokenizer(std::string_view bytes, std::string_view name);
}  // namespace detail

}  // namespace heed

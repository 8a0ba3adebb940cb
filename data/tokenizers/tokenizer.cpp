// Tokenizers of words, characters and bytes, and loading of saved ones.
#include "heed/data/tokenizers/tokenizer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <set>

#include "heed/core/error.h"
#include "heed/data/text/text.h"
#include "heed/data/tokenizers/byte_pair.h"
#include "heed/data/tokenizers/id_tokenizer.h"
#include "heed/data/tokenizers/json_tokenizer.h"
#include "heed/data/tokenizers/llama2_c.h"
#include "heed/data/tokenizers/marian.h"
#include "heed/data/tokenizers/saved_vocabulary.h"
#include "heed/data/tokenizers/sentencepiece.h"
#include "heed/data/tokenizers/vocabulary.h"
#include "heed/data/tokenizers/wordpiece.h"

namespace heed {
namespace {

constexpr std::string_view word_title = "heed word vocabulary 1";
constexpr std::string_view character_title = "heed character vocabulary 1";

class WordTokenizer final : public Tokenizer {
 public:
  WordTokenizer(Vocabulary vocabulary, Joining joining)
      : Tokenizer(SpecialIds{}), vocabulary_(std::move(vocabulary)), joining_(joining) {}

  std::string kind() const override { return "word"; }
  int64_t size() const override { return vocabulary_.size(); }
  std::string piece(int32_t id) const override { return vocabulary_.piece(id); }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    for (const std::string_view word : word_pieces(text)) ids.push_back(vocabulary_.id(word));
    return ids;
  }

  std::string decode(std::span<const int32_t> ids) const override {
    const bool natural = joining_ == Joining::natural;
    std::vector<std::string_view> words;
    for (const int32_t id : ids) {
      const std::string_view word = vocabulary_.piece(id);
      const bool is_hidden = id == pad() || id == start() || id == end() || (id == unknown() && !natural);
      if (!is_hidden) words.push_back(word);
    }
    if (natural) return detokenise(words);
    std::string text;
    for (const std::string_view word : words) {
      if (!text.empty()) text += ' ';
      text += word;
    }
    return text;
  }

  std::string save() const override {
    constexpr auto num_special = static_cast<int64_t>(std::size(special_names));
    std::string out = text(word_title, "\njoining ", joining_ == Joining::natural ? "natural" : "blanks",
                           "\ncount ", size() - num_special, "\n");
    for (int64_t id = num_special; id < size(); ++id)
      out += vocabulary_.piece(static_cast<int32_t>(id)) + "\n";
    return out;
  }

 private:
  Vocabulary vocabulary_;
  Joining joining_;
};

class CharacterTokenizer final : public Tokenizer {
 public:
  /// `characters` must be strictly ascending.
  CharacterTokenizer(std::vector<char32_t> characters, CharacterUnit unit)
      : Tokenizer({.unknown = -1, .pad = -1, .start = -1, .end = -1}),
        characters_(std::move(characters)),
        unit_(unit) {
    latin1_ids_.fill(-1);
    for (size_t i = 0; i < characters_.size(); ++i) {
      if (characters_[i] < latin1_ids_.size()) latin1_ids_[characters_[i]] = static_cast<int32_t>(i);
    }
  }

  std::string kind() const override { return "character"; }
  int64_t size() const override { return static_cast<int64_t>(characters_.size()); }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    ids.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      const char32_t character = next(text, at);
      const int32_t id = find(character);
      if (id < 0) fail_unknown(text.substr(begin, at - begin), character, begin + 1);
      ids.push_back(id);
    }
    return ids;
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string out;
    for (const int32_t id : ids) append(out, id);
    return out;
  }

  std::string piece(int32_t id) const override {
    std::string out;
    append(out, id);
    const char32_t character = characters_[static_cast<size_t>(id)];
    if (character == '\n') return "\\n";
    if (character == '\t') return "\\t";
    const bool is_control = character < 0x20 || (character >= 0x7F && character < 0xA0);
    const bool is_part_of_utf8 = unit_ == CharacterUnit::byte && character >= 0x80;
    return is_control || is_part_of_utf8 ? name(character) : out;
  }

  std::string save() const override {
    const bool byte = unit_ == CharacterUnit::byte;
    std::string out =
        text(character_title, "\nunit ", byte ? "byte" : "code_point", "\ncount ", size(), "\n");
    for (const char32_t character : characters_) out += name(character) + "\n";
    return out;
  }

  /// "U+00E8" or "0xE8".
  static std::string name(char32_t character, CharacterUnit unit) {
    std::array<char, 16> digits;
    const auto value = static_cast<uint32_t>(character);
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16);
    std::string hex(digits.data(), end.ptr);
    for (char& digit : hex) digit = digit >= 'a' ? static_cast<char>(digit - 'a' + 'A') : digit;
    const size_t width = unit == CharacterUnit::byte ? 2 : 4;
    if (hex.size() < width) hex.insert(0, width - hex.size(), '0');
    return (unit == CharacterUnit::byte ? "0x" : "U+") + hex;
  }

 private:
  std::string name(char32_t character) const { return name(character, unit_); }
  /// The character at `at`; moves `at` behind it.
  char32_t next(std::string_view text, size_t& at) const {
    return unit_ == CharacterUnit::byte ? static_cast<unsigned char>(text[at++]) : next_code_point(text, at);
  }

  /// Fails for a character without an id; `place` is its byte in the text, counted from 1.
  [[noreturn]] void fail_unknown(std::string_view seen, char32_t character, size_t place) const {
    if (unit_ ==
        CharacterUnit::byte) {  // byte tokenizers saved by older versions have the bytes of their text
      fail("bytes: ", name(character), " (byte ", place, " of the text) is not one of the ", size(),
           " bytes this model was trained on. Leave it out, or train the model again: byte models now take "
           "all 256.");
    }
    fail("characters: '", seen, "' (", name(character), ", byte ", place, ") is not one of the ", size(),
         " characters this model was trained on. Leave it out; a model of bytes takes any text.");
  }

  /// The id of a character; -1 where it has none.
  int32_t find(char32_t character) const {
    if (character < latin1_ids_.size()) return latin1_ids_[character];
    const auto found = std::lower_bound(characters_.begin(), characters_.end(), character);
    const bool is_known = found != characters_.end() && *found == character;
    return is_known ? static_cast<int32_t>(found - characters_.begin()) : -1;
  }

  void append(std::string& out, int32_t id) const {
    if (id < 0 || id >= size()) {
      const bool byte = unit_ == CharacterUnit::byte;
      fail(byte ? "bytes: no byte" : "characters: no character", " has the id ", id, "; ids are 0 .. ",
           size() - 1, ".");
    }
    const char32_t character = characters_[static_cast<size_t>(id)];
    if (unit_ == CharacterUnit::byte) {
      out += static_cast<char>(character);
    } else {
      append_code_point(out, character);
    }
  }

  std::vector<char32_t> characters_;
  CharacterUnit unit_;
  std::array<int32_t, 256> latin1_ids_;  // ids of the characters below 256; -1: none
};

}  // namespace

std::unique_ptr<Tokenizer> make_word_tokenizer(Vocabulary vocabulary, Joining joining) {
  return std::make_unique<WordTokenizer>(std::move(vocabulary), joining);
}

std::unique_ptr<Tokenizer> make_character_tokenizer(std::string_view text) {
  if (text.empty()) fail(Fault::data, "characters: the text is empty, so there is no character to learn.");
  check_text(text, "text");
  std::set<char32_t> seen;
  for (size_t at = 0; at < text.size();) seen.insert(next_code_point(text, at));
  return std::make_unique<CharacterTokenizer>(std::vector<char32_t>(seen.begin(), seen.end()),
                                              CharacterUnit::code_point);
}

std::unique_ptr<Tokenizer> make_byte_tokenizer() {
  std::vector<char32_t> bytes(256);
  std::iota(bytes.begin(), bytes.end(), char32_t{0});
  return std::make_unique<CharacterTokenizer>(std::move(bytes), CharacterUnit::byte);
}

namespace detail {

std::unique_ptr<Tokenizer> load_word_tokenizer(std::string_view bytes, std::string_view name) {
  SavedLines lines(bytes, word_title, name);
  const std::string_view joining = lines.value("joining");
  if (joining != "natural" && joining != "blanks")
    lines.damaged("'", shown(joining), "' is no way of joining");
  const int64_t count = lines.count();
  std::vector<std::string> pieces;
  for (int64_t i = 0; i < count; ++i) {
    pieces.emplace_back(lines.next());
    if (pieces.back().empty()) lines.damaged("the piece is empty");
  }
  lines.finish();
  try {
    return make_word_tokenizer(Vocabulary(std::move(pieces)),
                               joining == "natural" ? Joining::natural : Joining::blanks);
  } catch (const Error& error) {  // a repeated token
    fail(Fault::data, name, ", from line 4 on: ", error.what());
  }
}

std::unique_ptr<Tokenizer> load_character_tokenizer(std::string_view bytes, std::string_view name) {
  SavedLines lines(bytes, character_title, name);
  const std::string_view unit_name = lines.value("unit");
  if (unit_name != "byte" && unit_name != "code_point") lines.damaged("'", shown(unit_name), "' is no unit");
  const CharacterUnit unit = unit_name == "byte" ? CharacterUnit::byte : CharacterUnit::code_point;
  const char32_t max_character = unit == CharacterUnit::byte ? 0xFF : 0x10FFFF;
  const int64_t count = lines.count();
  if (count == 0) lines.damaged("there must be a character");
  std::vector<char32_t> characters;
  for (int64_t i = 0; i < count; ++i) {
    const std::string_view line = lines.next();
    uint32_t value = 0;
    if (line.size() > 2) std::from_chars(line.data() + 2, line.data() + line.size(), value, 16);
    const auto character = static_cast<char32_t>(value);
    if (character > max_character || CharacterTokenizer::name(character, unit) != line) {
      lines.damaged("'", shown(line), "' is no character");
    }
    if (!characters.empty() && characters.back() >= character) lines.damaged("the characters must rise");
    characters.push_back(character);
  }
  lines.finish();
  return std::make_unique<CharacterTokenizer>(std::move(characters), unit);
}

}  // namespace detail

std::unique_ptr<Tokenizer> load_tokenizer(std::string_view kind, std::string_view bytes,
                                          std::string_view name) {
  if (kind == "word") return detail::load_word_tokenizer(bytes, name);
  if (kind == "character") return detail::load_character_tokenizer(bytes, name);
  if (kind == "sentencepiece") return detail::load_sentencepiece(bytes, name);
  if (kind == "byte_pair") return detail::load_byte_pair(bytes, name);
  if (kind == "ids") return detail::load_id_tokenizer(bytes, name);
  if (kind == "llama2_c") return detail::load_llama2_c(bytes, name);
  if (kind == "marian") return detail::load_marian(bytes, name);
  if (kind == "wordpiece") return detail::load_wordpiece(bytes, name);
  if (kind == "tokenizer_json") return detail::load_json_tokenizer(bytes, name);
  fail(Fault::data, name, ": tokenizers of the kind '", shown(kind),
       "' are unknown. Known: word, character, sentencepiece, byte_pair, ids, llama2_c, marian, wordpiece, "
       "tokenizer_json.");
}

}  // namespace heed

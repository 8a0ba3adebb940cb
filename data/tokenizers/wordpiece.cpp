// Cuts texts into pieces: special tokens, words, and the longest pieces that words begin with.
#include "heed/data/tokenizers/wordpiece.h"

#include <algorithm>
#include <unordered_map>

#include "heed/data/text/text.h"
#include "heed/data/tokenizers/saved_vocabulary.h"
#include "heed/data/tokenizers/special_finder.h"
#include "heed/data/tokenizers/vocabulary.h"

namespace heed {
namespace {

constexpr std::string_view wordpiece_title = "heed wordpiece tokenizer 1\n";

/// Saved form: wordpiece_title, SHA-256 of the rest in hexadecimal, newline, and a tokenizer.json.
class WordPieceTokenizer final : public Tokenizer {
 public:
  WordPieceTokenizer(WordPieceLists lists, std::string_view name)
      : Tokenizer(lists.special), lists_(std::move(lists)) {
    std::unordered_map<std::string_view, int32_t> all;
    for (size_t id = 0; id < lists_.pieces.size(); ++id) {
      const std::string& piece = lists_.pieces[id];
      if (!all.emplace(piece, static_cast<int32_t>(id)).second)
        fail(Fault::data, name, ": the piece ", shown(piece), " has two ids. Give each piece one.");
      if (static_cast<int64_t>(id) < lists_.num_word_pieces) {
        ids_.emplace(piece, static_cast<int32_t>(id));
        max_piece_bytes_ = std::max(max_piece_bytes_, piece.size());
      }
    }
    const auto check_id = [&](int32_t id) {
      if (id < 0 || id >= size())
        fail(Fault::data, name, ": a special token has the id ", id, ", and the ids are 0 to ", size() - 1,
             ". Give special tokens of the vocabulary.");
    };
    for (const int32_t id : {unknown(), start(), end(), special().mask}) check_id(id);
    for (const int32_t id : lists_.found_in_texts) {
      check_id(id);
      if (!piece(id).empty()) special_finder_.add(id, piece(id));
    }
  }

  std::string kind() const override { return "wordpiece"; }
  int64_t size() const override { return static_cast<int64_t>(lists_.pieces.size()); }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    special_finder_.cut(
        text, [&](std::string_view part, size_t) { encode_plain(part, ids); },
        [&](int32_t id) { ids.push_back(id); });
    return ids;
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::vector<std::string> words;
    for (const int32_t id : ids) {
      const std::string one = piece(id);
      if (id == pad() || id == start() || id == end()) continue;
      if (!words.empty() && one.starts_with(lists_.prefix))
        words.back() += one.substr(lists_.prefix.size());
      else
        words.push_back(one);
    }
    return detokenise(std::vector<std::string_view>(words.begin(), words.end()));
  }

  std::string piece(int32_t id) const override {
    if (id < 0 || id >= size())
      fail("wordpiece: no piece has the id ", id, "; ids are 0 .. ", size() - 1, ".");
    return lists_.pieces[static_cast<size_t>(id)];
  }

  std::string save() const override {
    return detail::with_checksum(wordpiece_title, wordpiece_json(*this).dump() + "\n");
  }

  const WordPieceLists& lists() const { return lists_; }

 private:
  /// Appends the ids of a text without special tokens.
  void encode_plain(std::string_view text, std::vector<int32_t>& ids) const {
    const std::string normalized = bert_normalized(text, lists_.normalizer);
    for (const std::string_view word : bert_words(normalized)) encode_word(word, ids);
  }

  void encode_word(std::string_view word, std::vector<int32_t>& ids) const {
    const size_t num_before = ids.size();
    const auto is_unknown = [&] {
      ids.resize(num_before);
      ids.push_back(unknown());
    };
    if (code_points(word) > lists_.max_word) return is_unknown();
    for (size_t begin = 0; begin < word.size();) {
      const std::string_view prefix = begin > 0 ? std::string_view(lists_.prefix) : std::string_view();
      std::string piece = text(prefix, word.substr(begin, max_piece_bytes_));
      auto found = ids_.find(piece);
      while (found == ids_.end() && piece.size() > prefix.size() + 1) {
        piece.pop_back();  // a cut character is no piece, so bytes serve as well as characters
        found = ids_.find(piece);
      }
      if (found == ids_.end()) return is_unknown();
      ids.push_back(found->second);
      begin += piece.size() - prefix.size();
    }
  }

  WordPieceLists lists_;
  std::unordered_map<std::string, int32_t> ids_;  // those that words are cut into
  size_t max_piece_bytes_ = 1;
  detail::SpecialFinder special_finder_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_wordpiece(WordPieceLists lists, std::string_view name) {
  return std::make_unique<WordPieceTokenizer>(std::move(lists), name);
}

const WordPieceLists& wordpiece_lists(const Tokenizer& tokenizer) {
  const auto* own = dynamic_cast<const WordPieceTokenizer*>(&tokenizer);
  if (own == nullptr)
    fail("wordpiece: the tokenizer is of the kind ", tokenizer.kind(), ". Give one of the kind wordpiece.");
  return own->lists();
}

std::unique_ptr<Tokenizer> detail::load_wordpiece(std::string_view bytes, std::string_view name) {
  const std::string_view content = checked_content(bytes, wordpiece_title, "wordpiece", name);
  return wordpiece_of_json(parse_json(content, name), std::string(name));
}

}  // namespace heed

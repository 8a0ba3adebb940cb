// Word vocabularies.
#include "heed/data/tokenizers/vocabulary.h"

#include <algorithm>

#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/data/text/text.h"
#include "heed/data/tokenizers/saved_vocabulary.h"

namespace heed {
namespace {

constexpr int64_t max_vocabulary = int64_t{1} << 24;
constexpr int64_t max_json_bytes = int64_t{256} << 20;

}  // namespace

std::vector<std::string_view> word_pieces(std::string_view text) { return word_runs(text, is_word); }

Vocabulary::Vocabulary(std::vector<std::string> pieces) {
  if (static_cast<int64_t>(pieces.size()) > max_vocabulary) {
    fail(Fault::data, "vocabulary: ", pieces.size(), " pieces; at most ", max_vocabulary, " are possible.");
  }
  for (const std::string_view name : special_names) pieces_.emplace_back(name);
  for (std::string& piece : pieces) pieces_.push_back(std::move(piece));
  ids_.reserve(pieces_.size());
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (pieces_[i].empty()) fail(Fault::data, "vocabulary: piece ", i, " is empty.");
    if (!ids_.emplace(pieces_[i], static_cast<int32_t>(i)).second) {
      fail(Fault::data, "vocabulary: piece ", i, ", '", shown(pieces_[i]), "', is there twice.");
    }
  }
}

Vocabulary Vocabulary::train(std::span<const std::string_view> sentences, const VocabularyOptions& options) {
  if (options.min_frequency < 1 || options.max_size < 5) {
    fail("vocabulary: min_frequency = ", options.min_frequency, " and max_size = ", options.max_size,
         "; they must be at least 1 and 5.");
  }
  std::unordered_map<std::string_view, int64_t> counts;
  for (const std::string_view sentence : sentences) {
    for (const std::string_view piece : word_pieces(sentence)) ++counts[piece];
  }
  struct CountedPiece {
    std::string_view piece;
    int64_t count;
  };
  std::vector<CountedPiece> frequent;
  for (const auto& [piece, count] : counts) {
    if (count >= options.min_frequency) frequent.push_back({piece, count});
  }
  std::sort(frequent.begin(), frequent.end(), [](const CountedPiece& left, const CountedPiece& right) {
    return left.count != right.count ? left.count > right.count : left.piece < right.piece;
  });
  const auto max_words = static_cast<size_t>(options.max_size) - std::size(special_names);
  if (frequent.size() > max_words) frequent.resize(max_words);
  std::vector<std::string> pieces;
  pieces.reserve(frequent.size());
  for (const auto& [piece, count] : frequent) pieces.emplace_back(piece);
  return Vocabulary(std::move(pieces));
}

Vocabulary Vocabulary::load_huggingface(const Path& path) {
  const Json file = parse_json(io::read_text(path, max_json_bytes), path.string());
  const Json* model = file.is_object() ? file.find("model") : nullptr;
  const Json* type = model != nullptr && model->is_object() ? model->find("type") : nullptr;
  const Json* vocab = type != nullptr ? model->find("vocab") : nullptr;
  if (vocab == nullptr || !vocab->is_object() || !type->is_text() || type->text() != "WordLevel") {
    fail(Fault::data, path,
         ":1: no word-level vocabulary; model.type must be \"WordLevel\", model.vocab an object.");
  }
  const std::string place = text(path, ":1: in model.vocab");
  std::vector<std::string> pieces = detail::tokens_by_id(vocab->members(), place, "");
  for (size_t i = 0; i < std::size(special_names); ++i) {
    if (i < pieces.size() && pieces[i] == special_names[i]) continue;
    fail(Fault::data, place, ", id ", i, " must be ", special_names[i], ".");
  }
  pieces.erase(pieces.begin(), pieces.begin() + std::size(special_names));
  try {
    return Vocabulary(std::move(pieces));
  } catch (const Error& error) {
    fail(Fault::data, place, ": ", error.what());
  }
}

int32_t Vocabulary::id(std::string_view piece) const {
  const auto found = ids_.find(piece);
  return found == ids_.end() ? SpecialIds{}.unknown : found->second;
}

const std::string& Vocabulary::piece(int32_t id) const {
  if (id < 0 || id >= size())
    fail("vocabulary: no piece has the id ", id, "; ids are 0 .. ", size() - 1, ".");
  return pieces_[static_cast<size_t>(id)];
}

}  // namespace heed

// Tokenizer of Marian: sentencepiece cuts, and a table of pieces gives the ids.
#include "heed/data/tokenizers/marian.h"

#include <algorithm>
#include <unordered_map>

#include "heed/core/error.h"
#include "heed/core/io/json.h"
#include "heed/data/text/text.h"
#include "heed/data/tokenizers/saved_vocabulary.h"
#include "heed/data/tokenizers/sentencepiece.h"

namespace heed {
namespace {

constexpr std::string_view marian_title = "heed marian tokenizer 1\n";
constexpr std::string_view code_begin = ">>", code_end = "<<";
constexpr std::string_view space_mark = "\u2581";  // stands for a blank in pieces

/// Saved form: marian_title, SHA-256 of the rest in hexadecimal, newline, a line of JSON with pieces and
/// special ids, and the sentencepiece model.
class MarianTokenizer final : public Tokenizer {
 public:
  MarianTokenizer(MarianLists lists, std::string_view name)
      : Tokenizer(lists.special), pieces_(std::move(lists.pieces)), model_(std::move(lists.model), name) {
    for (size_t id = 0; id < pieces_.size(); ++id) {
      if (!ids_.emplace(pieces_[id], static_cast<int32_t>(id)).second)
        fail(Fault::data, name, ": the piece ", shown(pieces_[id]), " has two ids. Give each piece one.");
    }
    for (const int32_t id : {unknown(), pad(), start(), end()}) {
      if (id < 0 || id >= size())
        fail(Fault::data, name, ": a special token has the id ", id, ", and the ids are 0 to ", size() - 1,
             ". Give unknown, pad, start and end ids of the vocabulary.");
    }
  }

  std::string kind() const override { return "marian"; }
  int64_t size() const override { return static_cast<int64_t>(pieces_.size()); }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    const size_t code = text.starts_with(code_begin) ? text.find(code_end) : std::string_view::npos;
    if (code != std::string_view::npos) {
      const size_t behind = code + code_end.size();
      ids.push_back(id_of(text.substr(0, behind)));
      text.remove_prefix(behind);
    }
    for (const std::string& piece : model_.cut(text)) ids.push_back(id_of(piece));
    return ids;
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::vector<std::string> shown_pieces;
    for (const int32_t id : ids) {
      const std::string one = piece(id);
      if (id != unknown() && id != pad() && id != start() && id != end()) shown_pieces.push_back(one);
    }
    std::string text = model_.joined(shown_pieces);
    // Pieces that the model lacks, those of the other language, keep their marks.
    for (size_t at = text.find(space_mark); at != std::string::npos; at = text.find(space_mark, at))
      text.replace(at, space_mark.size(), " ");
    return std::string(trimmed(text));
  }

  std::string piece(int32_t id) const override {
    if (id < 0 || id >= size()) fail("marian: no piece has the id ", id, "; ids are 0 .. ", size() - 1, ".");
    return pieces_[static_cast<size_t>(id)];
  }

  std::string save() const override {
    const Json head = Json::object({{"unknown", unknown()},
                                    {"pad", pad()},
                                    {"start", start()},
                                    {"end", end()},
                                    {"starts_source", special().starts_source},
                                    {"pieces", Json::List(pieces_.begin(), pieces_.end())}});
    const std::string rest = head.dump() + "\n" + model_.bytes();
    return detail::with_checksum(marian_title, rest);
  }

  MarianLists lists() const { return {.pieces = pieces_, .special = special(), .model = model_.bytes()}; }

 private:
  int32_t id_of(std::string_view piece) const {
    const auto found = ids_.find(std::string(piece));
    return found == ids_.end() ? unknown() : found->second;
  }

  std::vector<std::string> pieces_;
  std::unordered_map<std::string, int32_t> ids_;
  PieceModel model_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_marian_tokenizer(MarianLists lists, std::string_view name) {
  return std::make_unique<MarianTokenizer>(std::move(lists), name);
}

MarianLists marian_lists(const Tokenizer& tokenizer) {
  const auto* own = dynamic_cast<const MarianTokenizer*>(&tokenizer);
  if (own == nullptr)
    fail("marian: the tokenizer is of the kind ", tokenizer.kind(), ". Give one of the kind marian.");
  return own->lists();
}

std::unique_ptr<Tokenizer> detail::load_marian(std::string_view bytes, std::string_view name) {
  const std::string_view rest = checked_content(bytes, marian_title, "marian", name);
  const size_t line_end = std::min(rest.find('\n'), rest.size());
  const Json head = parse_json(rest.substr(0, line_end), name);
  const auto id = [&](const char* key) {
    const int64_t value = head.at(key).integer();
    return value < 0 || value > INT32_MAX ? -1 : static_cast<int32_t>(value);
  };
  MarianLists lists{.pieces = {},
                    .special = {.unknown = id("unknown"),
                                .pad = id("pad"),
                                .start = id("start"),
                                .end = id("end"),
                                .starts_source = head.at("starts_source").boolean()},
                    .model = std::string(rest.substr(std::min(line_end + 1, rest.size())))};
  for (const Json& piece : head.at("pieces").list()) lists.pieces.push_back(piece.text());
  return make_marian_tokenizer(std::move(lists), name);
}

}  // namespace heed

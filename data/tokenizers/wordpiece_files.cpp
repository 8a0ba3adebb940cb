// What of a tokenizer.json or a vocab.txt stands for a WordPiece tokenizer, and the file for one of ours.
#include <optional>
#include <unordered_map>

#include "heed/core/io/files.h"
#include "heed/data/text/text.h"
#include "heed/data/tokenizers/saved_vocabulary.h"
#include "heed/data/tokenizers/tokenizer_json_reader.h"
#include "heed/data/tokenizers/wordpiece.h"

namespace heed {
namespace {

constexpr int64_t max_wordpiece_bytes = int64_t{64} << 20;
constexpr std::string_view wordpiece_remedy = " Give the tokenizer of a BERT.";
constexpr const char* pad_token = "[PAD]";
constexpr const char* mask_token = "[MASK]";

using detail::has_text;
using detail::set_member;

/// Reads one tokenizer.json.
class WordPieceJson : detail::TokenizerJsonReader {
 public:
  WordPieceJson(const Json& json, const std::string& name)
      : TokenizerJsonReader(json, name, wordpiece_remedy) {}

  WordPieceLists read() {
    demand(json().is_object(), "it is no object");
    const Json* model = set_member(json(), "model");
    const Json* vocabulary = model == nullptr ? nullptr : set_member(*model, "vocab");
    demand(vocabulary != nullptr && vocabulary->is_object(), "its model has no vocab");
    demand(set_member(*model, "type") == nullptr || has_text(*model, "type", "WordPiece"),
           "its model is not of the type WordPiece");
    const Json* words = set_member(json(), "pre_tokenizer");
    demand(words != nullptr && has_text(*words, "type", "BertPreTokenizer"),
           "its pre_tokenizer is not BertPreTokenizer");
    WordPieceLists out;
    out.pieces = detail::tokens_by_id(vocabulary->members(), name(), remedy());
    out.num_word_pieces = static_cast<int64_t>(out.pieces.size());
    for (const std::string& piece : out.pieces) ids_.emplace(piece, static_cast<int32_t>(ids_.size()));
    out.normalizer = normalizer();
    out.prefix = word(*model, "continuing_subword_prefix", "##");
    const Json* longest = set_member(*model, "max_input_chars_per_word");
    demand(longest == nullptr || (longest->is_integer() && longest->integer() > 0),
           "max_input_chars_per_word is no number above 0");
    if (longest != nullptr) out.max_word = longest->integer();
    for (const detail::AddedToken& one : added_tokens(out.pieces, ids_)) out.found_in_texts.push_back(one.id);
    const auto [start, end] = around();
    out.special = {.unknown = id_of(word(*model, "unk_token", "[UNK]")),
                   .pad = find(pad_token).value_or(-1),
                   .start = id_of(start),
                   .end = id_of(end),
                   .mask = id_of(mask_token)};
    return out;
  }

 private:
  std::optional<int32_t> find(const std::string& piece) const {
    const auto found = ids_.find(piece);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }
  int32_t id_of(const std::string& piece) const {
    const auto found = find(piece);
    demand(found.has_value(), text("its vocabulary lacks ", shown(piece)));
    return *found;
  }

  BertNormalizer normalizer() const {
    const Json* found = set_member(json(), "normalizer");
    demand(found != nullptr && has_text(*found, "type", "BertNormalizer"),
           "its normalizer is not BertNormalizer");
    return bert_normalizer(*found);
  }

  /// The tokens before and behind each text: of a template, or of BertProcessing.
  std::pair<std::string, std::string> around() const {
    const Json* found = set_member(json(), "post_processor");
    const std::string why = "its post_processor does not put one token before a text and one behind it";
    demand(found != nullptr, why);
    if (has_text(*found, "type", "BertProcessing"))
      return {paired(*found, "cls", why), paired(*found, "sep", why)};
    const Json* parts = set_member(*found, "single");
    demand(has_text(*found, "type", "TemplateProcessing") && parts != nullptr && parts->is_list() &&
               parts->list().size() == 3 && set_member(parts->list()[1], "Sequence") != nullptr,
           why);
    const auto token = [&](size_t at) {
      const Json* special = set_member(parts->list()[at], "SpecialToken");
      demand(special != nullptr, why);
      return word(*special, "id");
    };
    return {token(0), token(2)};
  }

  /// The token of a pair of token and id.
  std::string paired(const Json& json, const char* key, const std::string& why) const {
    const Json* pair = set_member(json, key);
    demand(pair != nullptr && pair->is_list() && pair->list().size() == 2 && pair->list()[0].is_text(), why);
    return pair->list()[0].text();
  }

  std::unordered_map<std::string, int32_t> ids_;  // ids of all pieces, added ones included
};

/// A tokenizer.json that says the same as vocab.txt and tokenizer_config.json.
Json json_of_vocabulary(const Path& vocabulary, const Json& settings) {
  const std::string content = io::read_regular_text(vocabulary, max_wordpiece_bytes);
  check_text(content, vocabulary.string());
  Json ids = Json::object();
  for (const std::string_view line : split_lines(content))
    ids.append(std::string(line), static_cast<int64_t>(ids.members().size()));
  const auto token = [&](const char* key, const char* otherwise) {
    const Json* found = set_member(settings, key);
    if (found != nullptr && found->is_object()) found = set_member(*found, "content");
    return found == nullptr ? std::string(otherwise) : found->text();
  };
  const auto setting = [&](const char* key, Json otherwise) {
    const Json* found = set_member(settings, key);
    return found == nullptr ? otherwise : *found;
  };
  const std::string start = token("cls_token", "[CLS]"), end = token("sep_token", "[SEP]"),
                    unknown = token("unk_token", "[UNK]");
  Json added = Json::List();
  for (const std::string& one : {std::string(pad_token), unknown, start, end, std::string(mask_token)}) {
    if (const Json* id = ids.find(one)) added.push(Json::object({{"id", *id}, {"content", one}}));
  }
  return Json::object(
      {{"added_tokens", std::move(added)},
       {"normalizer", Json::object({{"type", "BertNormalizer"},
                                    {"handle_chinese_chars", setting("tokenize_chinese_chars", true)},
                                    {"strip_accents", setting("strip_accents", Json())},
                                    {"lowercase", setting("do_lower_case", true)}})},
       {"pre_tokenizer", Json::object({{"type", "BertPreTokenizer"}})},
       {"post_processor",
        Json::object(
            {{"type", "BertProcessing"}, {"cls", Json::List{start, 0}}, {"sep", Json::List{end, 0}}})},
       {"model", Json::object({{"type", "WordPiece"}, {"unk_token", unknown}, {"vocab", std::move(ids)}})}});
}

}  // namespace

std::unique_ptr<Tokenizer> detail::wordpiece_of_json(const Json& json, const std::string& name) {
  return make_wordpiece(WordPieceJson(json, name).read(), name);
}

std::unique_ptr<Tokenizer> read_wordpiece(const Path& folder) {
  const Path json = folder / "tokenizer.json", vocabulary = folder / "vocab.txt",
             settings = folder / "tokenizer_config.json";
  const auto parsed = [](const Path& path) {
    return parse_json(io::read_regular_text(path, max_wordpiece_bytes), path.string());
  };
  if (io::exists(json)) return detail::wordpiece_of_json(parsed(json), json.string());
  if (!io::exists(vocabulary))
    fail(Fault::file, "wordpiece: ", folder, " has neither tokenizer.json nor vocab.txt.", wordpiece_remedy);
  return detail::wordpiece_of_json(
      json_of_vocabulary(vocabulary, io::exists(settings) ? parsed(settings) : Json()), vocabulary.string());
}

Json wordpiece_json(const Tokenizer& tokenizer) {
  const WordPieceLists& lists = wordpiece_lists(tokenizer);
  const auto piece = [&](int32_t id) { return lists.pieces[static_cast<size_t>(id)]; };
  Json vocabulary = Json::object(), added = Json::List(), special = Json::object();
  for (int64_t id = 0; id < lists.num_word_pieces; ++id)
    vocabulary.append(piece(static_cast<int32_t>(id)), id);
  for (const int32_t id : lists.found_in_texts) added.push(detail::added_token_json(id, piece(id)));
  const std::string start = piece(lists.special.start), end = piece(lists.special.end);
  for (const int32_t id : {lists.special.start, lists.special.end})
    special.set(
        piece(id),
        Json::object({{"id", piece(id)}, {"ids", Json::List{id}}, {"tokens", Json::List{piece(id)}}}));
  const auto token = [](const std::string& id, int type) {
    return Json::object({{"SpecialToken", Json::object({{"id", id}, {"type_id", type}})}});
  };
  const auto sequence = [](const char* id, int type) {
    return Json::object({{"Sequence", Json::object({{"id", id}, {"type_id", type}})}});
  };
  const Json::List one{token(start, 0), sequence("A", 0), token(end, 0)};
  Json::List two = one;
  two.push_back(sequence("B", 1));
  two.push_back(token(end, 1));
  const BertNormalizer& normalizer = lists.normalizer;
  return Json::object(
      {{"version", "1.0"},
       {"truncation", Json()},
       {"padding", Json()},
       {"added_tokens", std::move(added)},
       {"normalizer", Json::object({{"type", "BertNormalizer"},
                                    {"clean_text", normalizer.clean_text},
                                    {"handle_chinese_chars", normalizer.space_ideographs},
                                    {"strip_accents", normalizer.strip_accents},
                                    {"lowercase", normalizer.lower_case}})},
       {"pre_tokenizer", Json::object({{"type", "BertPreTokenizer"}})},
       {"post_processor", Json::object({{"type", "TemplateProcessing"},
                                        {"single", one},
                                        {"pair", std::move(two)},
                                        {"special_tokens", std::move(special)}})},
       {"decoder", Json::object({{"type", "WordPiece"}, {"prefix", lists.prefix}, {"cleanup", true}})},
       {"model", Json::object({{"type", "WordPiece"},
                               {"unk_token", piece(lists.special.unknown)},
                               {"continuing_subword_prefix", lists.prefix},
                               {"max_input_chars_per_word", lists.max_word},
                               {"vocab", std::move(vocabulary)}})}});
}

}  // namespace heed

// Unigram and WordLevel of Hugging Face's tokenizers.
#include "heed/data/tokenizers/json_tokenizer.h"

#include <algorithm>
#include <initializer_list>
#include <unordered_map>

#include "heed/core/error.h"
#include "heed/data/tokenizers/saved_vocabulary.h"
#include "heed/data/tokenizers/special_finder.h"
#include "heed/data/tokenizers/text_steps.h"
#include "heed/data/tokenizers/tokenizer_json_reader.h"
#include "heed/data/tokenizers/unigram.h"

namespace heed {
namespace {

using detail::has_text;
using detail::set_member;

constexpr std::string_view json_tokenizer_title = "heed tokenizer.json 1\n";
constexpr std::string_view json_tokenizer_remedy =
    " Give a tokenizer.json with a model of the type BPE, Unigram or WordLevel.";
constexpr JsonLimits json_tokenizer_limits{.memory = int64_t{256} << 20};

/// What a tokenizer.json says, checked.
struct JsonTokenizerParts {
  Json frame;                                    ///< all of the file but the vocabulary
  std::vector<std::string> pieces;               ///< a piece an id, added tokens included
  std::vector<double> scores;                    ///< a score for each piece of a Unigram; none for WordLevel
  int64_t num_model_pieces = 0;                  ///< how many pieces the model has; the rest are added
  bool byte_fallback = false;                    ///< see Unigram
  std::vector<detail::AddedToken> added = {};    ///< tokens that are found in texts
  std::unordered_map<std::string, int32_t> ids;  ///< ids of all pieces
  SpecialIds special = {};                       ///< see make_json_tokenizer()
  int32_t document_start = -1;                   ///< see Tokenizer
  bool is_unigram() const { return has_text(frame.at("model"), "type", "Unigram"); }
};

/// Reads one tokenizer.json.
class JsonTokenizerFile : public detail::TokenizerJsonReader {
 public:
  using TokenizerJsonReader::TokenizerJsonReader;

  JsonTokenizerParts read() const {
    const Json* model = set_member(json(), "model");
    demand(model != nullptr && (has_text(*model, "type", "Unigram") || has_text(*model, "type", "WordLevel")),
           "its model is not of the type Unigram or WordLevel");
    JsonTokenizerParts out;
    out.frame = frame(*model);
    const int32_t unknown = out.is_unigram() ? read_unigram(*model, out) : read_words(*model, out);
    out.num_model_pieces = static_cast<int64_t>(out.pieces.size());
    out.added = added_tokens(out.pieces, out.ids);
    const auto named = [&](std::initializer_list<const char*> names) {
      for (const char* content : names) {
        for (const detail::AddedToken& one : out.added)
          if (one.is_special && one.content == content) return one.id;
      }
      return -1;
    };
    out.special = {.unknown = unknown,
                   .pad = named({"<pad>", "[PAD]", "<|pad|>"}),
                   .start = named({"<s>", "[SOS]", "[BOS]", "<bos>", "[CLS]", "<|startoftext|>"}),
                   .end = named({"</s>", "[EOS]", "<eos>", "[SEP]", "<|endoftext|>"})};
    if (!adds_nothing()) out.document_start = token_before(out);
    return out;
  }

 private:
  /// The file without what changes no ids, and without the vocabulary.
  Json frame(const Json& model) const {
    Json out = Json::object({{"version", "1.0"}, {"truncation", Json()}, {"padding", Json()}});
    for (const char* key : {"added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder"}) {
      const Json* found = set_member(json(), key);
      const bool is_list = key == std::string_view("added_tokens");
      out.set(key, found != nullptr ? *found : is_list ? Json(Json::List()) : Json());
    }
    Json kept = Json::object();
    for (const char* key : {"type", "unk_id", "unk_token", "byte_fallback"})
      if (const Json* found = set_member(model, key)) kept.set(key, *found);
    return out.set("model", std::move(kept));
  }

  void add_piece(JsonTokenizerParts& out, const std::string& piece) const {
    demand(!piece.empty(), text("piece ", out.pieces.size(), " is empty"));
    demand(out.ids.emplace(piece, static_cast<int32_t>(out.pieces.size())).second,
           text("the piece ", shown(piece), " has two ids"));
    out.pieces.push_back(piece);
  }

  /// Returns the id of the unknown piece; -1: none.
  int32_t read_unigram(const Json& model, JsonTokenizerParts& out) const {
    const Json *vocabulary = set_member(model, "vocab"), *unknown = set_member(model, "unk_id");
    demand(vocabulary != nullptr && vocabulary->is_list() && !vocabulary->list().empty(),
           "its model has no vocab");
    for (const Json& one : vocabulary->list()) {
      demand(one.is_list() && one.list().size() == 2 && one.list()[0].is_text() && one.list()[1].is_number(),
             text("piece ", out.pieces.size(), " is no pair of a text and a score"));
      add_piece(out, one.list()[0].text());
      out.scores.push_back(one.list()[1].real());
    }
    out.byte_fallback = flag(model, "byte_fallback", false);
    if (unknown == nullptr) return -1;
    const auto size = static_cast<int64_t>(out.pieces.size());
    demand(unknown->is_integer() && unknown->integer() >= 0 && unknown->integer() < size,
           text("unk_id is ", shown(unknown->dump(), 40), ", and ids are 0 to ", size - 1));
    return static_cast<int32_t>(unknown->integer());
  }

  /// Returns the id of the unknown word; -1: none.
  int32_t read_words(const Json& model, JsonTokenizerParts& out) const {
    const Json* vocabulary = set_member(model, "vocab");
    demand(vocabulary != nullptr && vocabulary->is_object() && !vocabulary->members().empty(),
           "its model has no vocab");
    for (const std::string& piece : detail::tokens_by_id(vocabulary->members(), name(), remedy()))
      add_piece(out, piece);
    const auto unknown = out.ids.find(word(model, "unk_token", "<unk>"));
    return unknown == out.ids.end() ? -1 : unknown->second;
  }

  /// The token that a template puts before each text.
  int32_t token_before(const JsonTokenizerParts& parts) const {
    const Json* processor = set_member(json(), "post_processor");
    const Json* single = set_member(*processor, "single");
    const std::string why = "its post_processor adds tokens to each text other than one before it";
    demand(has_text(*processor, "type", "TemplateProcessing") && single != nullptr && single->is_list() &&
               single->list().size() == 2 && set_member(single->list()[1], "Sequence") != nullptr,
           why);
    const Json* special = set_member(single->list()[0], "SpecialToken");
    demand(special != nullptr, why);
    const std::string content = word(*special, "id");
    const auto found = parts.ids.find(content);
    demand(found != parts.ids.end(), text("its vocabulary lacks ", shown(content)));
    return found->second;
  }
};

/// Saved form: json_tokenizer_title, SHA-256 of the rest in hexadecimal, newline, and a tokenizer.json.
class JsonTokenizer final : public Tokenizer {
 public:
  JsonTokenizer(JsonTokenizerParts parts, const JsonTokenizerFile& file)
      : Tokenizer(parts.special),
        parts_(std::move(parts)),
        steps_(file),
        decoder_(file),
        unigram_(std::span<const std::string>(parts_.pieces).first(parts_.scores.size()), parts_.scores,
                 unknown(), parts_.byte_fallback),
        is_left_out_(parts_.pieces.size()) {
    for (const detail::AddedToken& one : parts_.added) {
      finder_.add(one.id, one.content);
      is_left_out_[static_cast<size_t>(one.id)] = one.is_special;
    }
  }

  std::string kind() const override { return "tokenizer_json"; }
  int64_t size() const override { return static_cast<int64_t>(parts_.pieces.size()); }
  int32_t document_start() const override { return parts_.document_start; }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    finder_.cut(
        text,
        [&](std::string_view part, size_t offset) {
          for (const std::string& word : steps_.words(part, offset == 0)) encode_word(word, ids);
        },
        [&](int32_t id) { ids.push_back(id); });
    return ids;
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::vector<std::string> tokens;
    for (const int32_t id : ids) {
      std::string one = piece(id);
      if (!is_left_out_[static_cast<size_t>(id)]) tokens.push_back(std::move(one));
    }
    return decoder_.joined(std::move(tokens));
  }

  std::string piece(int32_t id) const override {
    if (id < 0 || id >= size())
      fail("tokenizer.json: no piece has the id ", id, "; ids are 0 .. ", size() - 1, ".");
    return parts_.pieces[static_cast<size_t>(id)];
  }

  std::string save() const override {
    return detail::with_checksum(json_tokenizer_title, json().dump() + "\n");
  }

  /// The ids of special added tokens.
  std::vector<int32_t> special_added() const {
    std::vector<int32_t> out;
    for (const detail::AddedToken& one : parts_.added)
      if (one.is_special) out.push_back(one.id);
    return out;
  }

  /// The content of a tokenizer.json.
  Json json() const {
    Json vocabulary = parts_.is_unigram() ? Json(Json::List()) : Json::object();
    for (int64_t id = 0; id < parts_.num_model_pieces; ++id) {
      const std::string& piece = parts_.pieces[static_cast<size_t>(id)];
      if (parts_.is_unigram())
        vocabulary.push(Json::List{piece, parts_.scores[static_cast<size_t>(id)]});
      else
        vocabulary.append(piece, id);
    }
    Json out = parts_.frame, model = out.at("model");
    return out.set("model", model.set("vocab", std::move(vocabulary)));
  }

 private:
  void encode_word(const std::string& word, std::vector<int32_t>& ids) const {
    if (parts_.is_unigram()) return unigram_.encode(word, ids);
    const auto found = parts_.ids.find(word);
    const bool is_known = found != parts_.ids.end() && found->second < parts_.num_model_pieces;
    if (!is_known && unknown() < 0)
      fail("tokenizer.json: the word '", shown(word),
           "' has no id, and the tokenizer has no unknown token. Leave it out of the text.");
    ids.push_back(is_known ? found->second : unknown());
  }

  JsonTokenizerParts parts_;
  TextSteps steps_;
  TextDecoder decoder_;
  Unigram unigram_;  // without pieces for a model WordLevel
  detail::SpecialFinder finder_;
  std::vector<bool> is_left_out_;  // by id: whether decoding leaves it out
};

/// The tokenizer as one of this kind.
const JsonTokenizer& json_tokenizer(const Tokenizer& tokenizer) {
  const auto* own = dynamic_cast<const JsonTokenizer*>(&tokenizer);
  if (own == nullptr)
    fail("tokenizer.json: the tokenizer is of the kind ", tokenizer.kind(),
         ". Give one of the kind tokenizer_json.");
  return *own;
}

}  // namespace

std::unique_ptr<Tokenizer> make_json_tokenizer(const Json& json, const std::string& name) {
  const JsonTokenizerFile file(json, name, json_tokenizer_remedy);
  return std::make_unique<JsonTokenizer>(file.read(), file);
}

Json json_of_tokenizer(const Tokenizer& tokenizer) { return json_tokenizer(tokenizer).json(); }

std::vector<int32_t> special_added_ids(const Tokenizer& tokenizer) {
  return json_tokenizer(tokenizer).special_added();
}

std::unique_ptr<Tokenizer> detail::load_json_tokenizer(std::string_view bytes, std::string_view name) {
  const std::string_view content = checked_content(bytes, json_tokenizer_title, "tokenizer_json", name);
  return make_json_tokenizer(parse_json(content, name, json_tokenizer_limits), std::string(name));
}

}  // namespace heed

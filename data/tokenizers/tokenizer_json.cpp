// What of a tokenizer.json stands for byte pairs, and the file for byte pairs of ours; other models
// elsewhere.
#include "heed/data/tokenizers/tokenizer_json.h"

#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/data/tokenizers/byte_pair.h"
#include "heed/data/tokenizers/json_tokenizer.h"
#include "heed/data/tokenizers/saved_vocabulary.h"
#include "heed/data/tokenizers/tokenizer_json_reader.h"

namespace heed {
namespace {

constexpr int64_t max_tokenizer_json_bytes = int64_t{64} << 20;
constexpr int64_t max_tokenizer_json_memory = int64_t{256} << 20;
constexpr std::string_view json_remedy =
    " Give a tokenizer.json of byte pairs, as of GPT-2 or SmolLM, or of the type Unigram or WordLevel.";

using detail::is_unset_or;

/// A reader of byte pairs.
class BytePairJson : detail::TokenizerJsonReader {
 public:
  BytePairJson(const Json& json, const std::string& name) : TokenizerJsonReader(json, name, json_remedy) {}

  std::unique_ptr<Tokenizer> read() const {
    const Json* model = json().find("model");
    demand(model != nullptr && model->is_object() && is_unset_or(*model, "type", "BPE"),
           "its model is not of the type BPE");
    demand(is_unset_or(*model, "byte_fallback", false), "byte_fallback is set, so its tokens are no bytes");
    demand(is_unset_or(*model, "ignore_merges", false), "ignore_merges is set");
    demand(is_unset_or(*model, "dropout", 0) || is_unset_or(*model, "dropout", 0.0),
           "merges are dropped at random");
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
      demand(is_unset_or(*model, key, ""), text(key, " is set"));
    demand(is_unset_or(json(), "normalizer", Json()), "it has a normalizer, which changes texts");
    demand(adds_nothing(), "its post_processor adds tokens to each text");
    return byte_pair_of(tokens(*model), merges(*model), pre_tokenizer(), name());
  }

 private:
  static std::string type_of(const Json& json) {
    const Json* type = json.is_object() ? json.find("type") : nullptr;
    return type != nullptr && type->is_text() ? type->text() : "";
  }
  static bool is_byte_level(const Json& json) {
    const Json* prefix = json.is_object() ? json.find("add_prefix_space") : nullptr;
    return type_of(json) == "ByteLevel" && prefix != nullptr && prefix->dump() == "false" &&
           is_unset_or(json, "use_regex", true);
  }

  PreTokenizer pre_tokenizer() const {
    const Json* found = json().find("pre_tokenizer");
    if (found != nullptr && is_byte_level(*found)) return PreTokenizer::gpt2;
    const Json* parts =
        found != nullptr && type_of(*found) == "Sequence" ? found->find("pretokenizers") : nullptr;
    if (parts != nullptr && parts->is_list() && parts->list().size() == 2) {
      const Json& digits = parts->list()[0];
      const bool alone = type_of(digits) == "Digits" && digits.find("individual_digits") != nullptr &&
                         digits.at("individual_digits").dump() == "true";
      if (alone && is_byte_level(parts->list()[1])) return PreTokenizer::individual_digits;
    }
    fail(
        Fault::data, name(), ": its pre_tokenizer is ",
        found == nullptr ? "missing" : shown(found->dump(), 120),
        ", and only ByteLevel without a blank before the text can be read, alone or after Digits one by one.",
        json_remedy);
  }

  /// The tokens by id, in GPT-2's spelling: the model's, and those that were added.
  std::vector<std::string> tokens(const Json& model) const {
    const Json* vocabulary = model.find("vocab");
    demand(vocabulary != nullptr && vocabulary->is_object(), "its model has no vocab");
    Json all = *vocabulary;
    const Json* added = json().find("added_tokens");
    if (added != nullptr && !added->is_null()) {
      demand(added->is_list(), "added_tokens is no list");
      for (const Json& one : added->list()) {
        const Json* content = one.is_object() ? one.find("content") : nullptr;
        const Json* id = one.is_object() ? one.find("id") : nullptr;
        demand(content != nullptr && content->is_text() && id != nullptr,
               "an added token has no content or id");
        const Json* special = one.find("special");
        demand(special != nullptr && special->dump() == "true",
               text("the added token '", shown(content->text()), "' is not special, so texts are cut at it"));
        const std::string spelled = detail::spelled_pieces({content->text()})[0];
        const Json* known = vocabulary->find(spelled);
        demand(known == nullptr || known->dump() == id->dump(),
               text("the added token '", shown(content->text()), "' has two ids"));
        if (known == nullptr) all.append(spelled, *id);
      }
    }
    return detail::tokens_by_id(all.members(), name(), remedy());
  }

  /// The merges by rank, each "left right"; newer files have lists of both.
  std::vector<std::string> merges(const Json& model) const {
    const Json* found = model.find("merges");
    demand(found != nullptr && found->is_list(), "its model has no merges");
    std::vector<std::string> out;
    for (const Json& one : found->list()) {
      const bool is_pair =
          one.is_list() && one.list().size() == 2 && one.list()[0].is_text() && one.list()[1].is_text();
      demand(one.is_text() || is_pair, text("merge ", out.size(), " is no pair of tokens"));
      out.push_back(is_pair ? one.list()[0].text() + " " + one.list()[1].text() : one.text());
    }
    return out;
  }
};

}  // namespace

std::unique_ptr<Tokenizer> read_tokenizer_json(const Path& path) {
  const std::string name = path.string();
  const Json json = parse_json(io::read_regular_text(path, max_tokenizer_json_bytes), name,
                               {.memory = max_tokenizer_json_memory});
  if (!json.is_object()) fail(Fault::data, name, ": it is no object.", json_remedy);
  const Json* model = detail::set_member(json, "model");
  const bool has_other_model = model != nullptr && (detail::has_text(*model, "type", "Unigram") ||
                                                    detail::has_text(*model, "type", "WordLevel"));
  return has_other_model ? make_json_tokenizer(json, name) : BytePairJson(json, name).read();
}

std::string tokenizer_json(const Tokenizer& tokenizer) {
  if (tokenizer.kind() == "tokenizer_json") return json_of_tokenizer(tokenizer).dump() + "\n";
  const BytePairLists lists = byte_pair_lists(tokenizer);
  Json vocabulary = Json::object(), added = Json::List();
  for (size_t id = 0; id < lists.tokens.size(); ++id)
    vocabulary.append(lists.tokens[id], static_cast<int64_t>(id));
  for (const auto& [id, content] : lists.special) added.push(detail::added_token_json(id, content));
  const auto byte_level = [](bool adds_blank) {
    return Json::object({{"type", "ByteLevel"},
                         {"add_prefix_space", adds_blank},
                         {"trim_offsets", true},
                         {"use_regex", true}});
  };
  Json words = byte_level(false);
  if (lists.pre_tokenizer == PreTokenizer::individual_digits) {
    Json digits = Json::object({{"type", "Digits"}, {"individual_digits", true}});
    words = Json::object(
        {{"type", "Sequence"}, {"pretokenizers", Json::List{std::move(digits), std::move(words)}}});
  }
  Json model = Json::object({{"type", "BPE"},
                             {"dropout", Json()},
                             {"unk_token", Json()},
                             {"continuing_subword_prefix", Json()},
                             {"end_of_word_suffix", Json()},
                             {"fuse_unk", false},
                             {"byte_fallback", false},
                             {"ignore_merges", false},
                             {"vocab", std::move(vocabulary)},
                             {"merges", Json::List(lists.merges.begin(), lists.merges.end())}});
  return Json::object({{"version", "1.0"},
                       {"truncation", Json()},
                       {"padding", Json()},
                       {"added_tokens", std::move(added)},
                       {"normalizer", Json()},
                       {"pre_tokenizer", std::move(words)},
                       {"post_processor", Json()},
                       {"decoder", byte_level(true)},
                       {"model", std::move(model)}})
             .dump() +
         "\n";
}

}  // namespace heed

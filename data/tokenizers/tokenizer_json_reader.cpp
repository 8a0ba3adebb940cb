// Members of tokenizer.json, and tokens that are added to a model's.
#include "heed/data/tokenizers/tokenizer_json_reader.h"

#include <algorithm>
#include <unordered_set>

#include "heed/core/error.h"

namespace heed::detail {

const Json* set_member(const Json& json, const char* key) {
  const Json* found = json.is_object() ? json.find(key) : nullptr;
  return found == nullptr || found->is_null() ? nullptr : found;
}

bool has_text(const Json& json, const char* key, std::string_view value) {
  const Json* found = set_member(json, key);
  return found != nullptr && found->is_text() && found->text() == value;
}

bool is_unset_or(const Json& json, const char* key, const Json& value) {
  const Json* found = set_member(json, key);
  return found == nullptr || found->dump() == value.dump();
}

Json added_token_json(int64_t id, const std::string& content) {
  return Json::object({{"id", id},
                       {"content", content},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", true}});
}

void TokenizerJsonReader::demand(bool holds, const std::string& why) const {
  if (!holds) fail(Fault::data, name_, ": ", why, ".", remedy_);
}

bool TokenizerJsonReader::flag(const Json& json, const char* key, bool otherwise) const {
  const Json* found = set_member(json, key);
  if (found == nullptr) return otherwise;
  const std::string value = found->dump();
  demand(value == "true" || value == "false",
         text(key, " is ", shown(value, 40), ", and must be true or false"));
  return value == "true";
}

std::string TokenizerJsonReader::word(const Json& json, const char* key, const char* otherwise) const {
  const Json* found = set_member(json, key);
  const std::string value = found == nullptr ? otherwise : found->is_text() ? found->text() : "";
  demand(!value.empty(), text(key, " is no text"));
  return value;
}

BertNormalizer TokenizerJsonReader::bert_normalizer(const Json& json) const {
  const bool lower_case = flag(json, "lowercase", true);
  return {.clean_text = flag(json, "clean_text", true),
          .space_ideographs = flag(json, "handle_chinese_chars", true),
          .strip_accents = flag(json, "strip_accents", lower_case),
          .lower_case = lower_case};
}

std::vector<AddedToken> TokenizerJsonReader::added_tokens(
    std::vector<std::string>& pieces, std::unordered_map<std::string, int32_t>& ids) const {
  std::vector<AddedToken> out;
  const Json* added = set_member(json_, "added_tokens");
  if (added == nullptr) return out;
  demand(added->is_list(), "added_tokens is no list");
  std::unordered_set<std::string> seen;
  for (const Json& one : added->list()) {
    const Json *content = set_member(one, "content"), *id = set_member(one, "id");
    demand(content != nullptr && content->is_text() && !content->text().empty() && id != nullptr &&
               id->is_integer(),
           "an added token has no content or id");
    const std::string token = text("the added token ", shown(content->text()));
    for (const char* key : {"single_word", "lstrip", "rstrip", "normalized"})
      demand(!flag(one, key, false), text(token, " has ", key, " = true"));
    demand(seen.insert(content->text()).second, token + " is there twice");
    const auto [place, is_new] = ids.emplace(content->text(), static_cast<int32_t>(pieces.size()));
    if (is_new) pieces.push_back(content->text());
    demand(place->second == id->integer(),
           text(token, " has the id ", id->integer(), " in place of ", place->second));
    out.push_back({place->second, content->text(), flag(one, "special", false)});
  }
  return out;
}

bool TokenizerJsonReader::adds_nothing() const {
  const Json* processor = set_member(json_, "post_processor");
  if (processor == nullptr || has_text(*processor, "type", "ByteLevel")) return true;
  const Json* parts =
      has_text(*processor, "type", "TemplateProcessing") ? set_member(*processor, "single") : nullptr;
  return parts != nullptr && parts->is_list() &&
         std::all_of(parts->list().begin(), parts->list().end(),
                     [](const Json& part) { return set_member(part, "Sequence") != nullptr; });
}

}  // namespace heed::detail

// Reads and makes the tokenizer files of a Marian.
#include "heed/train/run/marian_tokenizer_files.h"

#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/data/tokenizers/marian.h"
#include "heed/data/tokenizers/saved_vocabulary.h"
#include "heed/train/run/model_settings.h"

namespace heed {
namespace {

constexpr const char* settings_of_tokenizer = "tokenizer_config.json";

/// The token of a member of tokenizer_config.json, a text or an object with its content; `otherwise` where
/// the member is missing.
std::string token_in(const Json& json, const char* key, const std::string& otherwise) {
  const Json* found = json.find(key);
  if (found == nullptr || found->is_null()) return otherwise;
  return found->is_object() ? found->at("content").text() : found->text();
}

/// The id of a token. Fails where the vocabulary lacks it, or where config.json gives it another.
int32_t id_of_token(const std::vector<std::string>& pieces, const std::string& token, const char* key,
                    int32_t expected, const Path& folder) {
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id] != token) continue;
    if (expected >= 0 && static_cast<int32_t>(id) != expected)
      fail(Fault::data, folder / marian_tokenizer_names[2], ": ", shown(token), " has the id ", id,
           ", and config.json says ", key, " ", expected, ". Give the files of one model.");
    return static_cast<int32_t>(id);
  }
  fail(Fault::data, folder / marian_tokenizer_names[2], " lacks the token ", shown(token),
       ". Give the vocabulary of the model.");
}

}  // namespace

std::pair<std::unique_ptr<Tokenizer>, std::unique_ptr<Tokenizer>> read_marian_tokenizers(
    const Path& folder, const MarianConfig& config) {
  const Path vocabulary = folder / marian_tokenizer_names[2], settings = folder / settings_of_tokenizer;
  const Json ids = parse_json(io::read(vocabulary), vocabulary.string());
  if (!ids.is_object()) fail(Fault::data, vocabulary, " is no JSON object of pieces and their ids.");
  MarianLists lists{
      .pieces = detail::tokens_by_id(ids.members(), vocabulary.string(), "Give the vocabulary of the model."),
      .special = {},
      .model = {}};
  if (static_cast<int64_t>(lists.pieces.size()) != config.vocabulary)
    fail(Fault::data, vocabulary, " has ", lists.pieces.size(), " pieces, and ", folder / "config.json",
         " says vocab_size ", config.vocabulary, ". Give the vocabulary that the model was trained with.");
  Json tokens = Json::object();
  if (io::exists(settings)) tokens = parse_json(io::read(settings), settings.string());
  const std::string name = settings.string();
  ModelSettings(tokens, name).demand("separate_vocabs", false, "both languages share one vocabulary");
  const auto id = [&](const char* key, const char* otherwise, const char* id_key, int32_t expected) {
    return id_of_token(lists.pieces, token_in(tokens, key, otherwise), id_key, expected, folder);
  };
  lists.special = {.unknown = id("unk_token", "<unk>", "unk_token_id", -1),
                   .pad = id("pad_token", "<pad>", "pad_token_id", config.pad),
                   .start = config.pad,
                   .end = id("eos_token", "</s>", "eos_token_id", config.end),
                   .starts_source = false};
  const auto with_model = [&](const char* file) {
    MarianLists one = lists;
    one.model = io::read(folder / file);
    return make_marian_tokenizer(std::move(one), (folder / file).string());
  };
  return {with_model(marian_tokenizer_names[0]), with_model(marian_tokenizer_names[1])};
}

std::vector<NamedBytes> marian_tokenizer_files(const ExportedModel& model) {
  const MarianLists source = marian_lists(model.tokenizer), target = marian_lists(model.translator->target);
  demand_setting(source.pieces == target.pieces, "a Marian", "one vocabulary for both languages");
  Json vocabulary = Json::object();
  for (size_t id = 0; id < source.pieces.size(); ++id)
    vocabulary.append(source.pieces[id], static_cast<int64_t>(id));
  const auto token = [&](int32_t id) { return source.pieces[static_cast<size_t>(id)]; };
  const Json settings = Json::object({{"tokenizer_class", "MarianTokenizer"},
                                      {"unk_token", token(source.special.unknown)},
                                      {"pad_token", token(source.special.pad)},
                                      {"eos_token", token(source.special.end)},
                                      {"separate_vocabs", false},
                                      {"model_max_length", model.config.max_length},
                                      {"clean_up_tokenization_spaces", false}});
  return {{marian_tokenizer_names[0], source.model},
          {marian_tokenizer_names[1], target.model},
          {marian_tokenizer_names[2], vocabulary.dump() + "\n"},
          {settings_of_tokenizer, settings.dump(2) + "\n"}};
}

}  // namespace heed

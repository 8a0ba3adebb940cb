// Chooses the family of a folder's model, and reads or makes its files.
#include "heed/train/run/huggingface_folder.h"

#include <tuple>

#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/data/tokenizers/byte_pair.h"
#include "heed/data/tokenizers/tokenizer_json.h"
#include "heed/data/tokenizers/wordpiece.h"
#include "heed/train/run/bert_huggingface.h"
#include "heed/train/run/gpt2_huggingface.h"
#include "heed/train/run/huggingface_code.h"
#include "heed/train/run/llama_huggingface.h"
#include "heed/train/run/marian_huggingface.h"
#include "heed/train/run/marian_tokenizer_files.h"

namespace heed {
namespace {

constexpr const char* settings_file = "config.json";
constexpr const char* tokenizer_file = "tokenizer.json";
constexpr const char* vocabulary_file = "vocab.json";
constexpr const char* merges_file = "merges.txt";
constexpr const char* pieces_file = "vocab.txt";
constexpr const char* generation_file = "generation_config.json";

/// Fails for a pipe among the files that the folder has, which reading would wait for.
void refuse_pipes(const Path& folder) {
  for (const char* name :
       {settings_file, weights_file, weights_index_file, tokenizer_file, vocabulary_file, merges_file,
        pieces_file, "source.spm", "target.spm", generation_file, "tokenizer_config.json"}) {
    if (io::exists(folder / name)) io::size(folder / name);
  }
}

/// Fails unless the folder has the files that are read for this model_type.
void check_folder(const Path& folder, const std::string& type) {
  const auto has = [&](const char* name) { return io::exists(folder / name); };
  std::string missing;
  const auto miss = [&](const std::string& what) { missing += text(missing.empty() ? "" : ", ", what); };
  if (!has(settings_file)) miss(settings_file);
  if (!has(weights_file) && !has(weights_index_file)) miss(weights_file);
  const bool has_vocabulary = has(vocabulary_file), has_merges = has(merges_file);
  if (type == "\"marian\"") {
    for (const char* name : marian_tokenizer_names)
      if (!has(name)) miss(name);
  } else if (type == "\"bert\"") {
    if (!has(tokenizer_file) && !has(pieces_file)) miss(tokenizer_file);
  } else if (!has(tokenizer_file) && !(has_vocabulary && has_merges)) {
    miss(has_vocabulary ? merges_file : has_merges ? vocabulary_file : tokenizer_file);
  }
  if (missing.empty()) return;
  std::string advice =
      "Give the folder of a GPT-2, LLaMA, BERT or Marian as Hugging Face's Transformers saves it "
      "(save_pretrained of the model and of its tokenizer)";
  if (has("pytorch_model.bin"))
    advice += ", with safe_serialization=True: pytorch_model.bin is a program, which is not run";
  fail(Fault::file, "import: ", shown(folder.string()), " lacks ", missing, ". ", advice, ".");
}

std::unique_ptr<Tokenizer> tokenizer_of(const Path& folder, bool prefers_two_files) {
  const bool has_two = io::exists(folder / vocabulary_file) && io::exists(folder / merges_file);
  if (has_two && (prefers_two_files || !io::exists(folder / tokenizer_file)))
    return read_byte_pair(folder / vocabulary_file, folder / merges_file);
  return read_tokenizer_json(folder / tokenizer_file);
}

void check_size(const Tokenizer& tokenizer, int64_t vocabulary, const Path& folder) {
  if (tokenizer.size() == vocabulary) return;
  fail(Fault::data, "import: the tokenizer in ", folder, " has ", tokenizer.size(), " tokens, and ",
       folder / settings_file, " says vocab_size ", vocabulary,
       ". Give the tokenizer that the model was trained with.");
}

ImportedModel gpt2_in(const Path& folder, const Json& json, const std::string& name) {
  const Gpt2Config found = parse_gpt2_config(json, name);
  ImportedModel out{.architecture = "GPT-2", .run_name = "gpt2"};
  out.tokenizer = tokenizer_of(folder, true);
  check_size(*out.tokenizer, found.vocabulary, folder);
  Gpt2Weights weights = gpt2_weights(TensorFiles::open(folder), found);
  out.settings = gpt2_settings(found, weights.tied);
  out.settings.emplace_back("data.tokenizer", out.tokenizer->kind());
  out.weights = std::move(weights.bytes);
  return out;
}

ImportedModel llama_in(const Path& folder, const Json& json, const std::string& name) {
  const LlamaSizes sizes = parse_llama_config(json, name);
  ImportedModel out{.architecture = "LLaMA", .run_name = "llama"};
  out.tokenizer = tokenizer_of(folder, false);
  check_size(*out.tokenizer, sizes.vocabulary, folder);
  out.settings = llama_settings(sizes, PositionKind::rope);
  out.settings.emplace_back("data.tokenizer", out.tokenizer->kind());
  out.weights = llama_weights(TensorFiles::open(folder), sizes);
  return out;
}

ImportedModel bert_in(const Path& folder, const Json& json, const std::string& name) {
  const BertConfig config = parse_bert_config(json, name);
  ImportedModel out{.architecture = "BERT", .run_name = "bert", .preset = "mlm"};
  out.tokenizer = read_wordpiece(folder);
  check_size(*out.tokenizer, config.vocabulary, folder);
  BertWeights weights = bert_weights(TensorFiles::open(folder), config);
  out.settings = bert_settings(config);
  out.weights = std::move(weights.bytes);
  out.notes = std::move(weights.notes);
  return out;
}

ImportedModel marian_in(const Path& folder, const Json& json, const std::string& name) {
  const MarianConfig config = parse_marian_config(json, name);
  ImportedModel out{.architecture = "Marian", .run_name = "marian", .preset = "translate"};
  std::tie(out.tokenizer, out.target_tokenizer) = read_marian_tokenizers(folder, config);
  const Path generation = folder / generation_file;
  const bool has_generation = io::exists(generation);
  out.settings =
      marian_settings(config, has_generation ? parse_json(io::read(generation), generation.string()) : json,
                      has_generation ? generation.string() : name);
  out.weights = marian_weights(TensorFiles::open(folder), config);
  return out;
}

/// tokenizer_config.json, by which AutoTokenizer finds the class of the tokenizer.
Json tokenizer_config(const ExportedModel& model) {
  Json out = Json::object({{"tokenizer_class", "PreTrainedTokenizerFast"},
                           {"model_max_length", model.config.max_length},
                           {"clean_up_tokenization_spaces", false}});
  const SpecialIds& ids = model.tokenizer.special();
  const bool is_byte_pair = model.tokenizer.kind() == "byte_pair";
  const auto name = [&](const char* key, int32_t id) {
    if (id >= 0) out.set(key, model.tokenizer.piece(id));
  };
  name("bos_token", is_byte_pair ? ids.end : ids.start);
  name("eos_token", ids.end);
  if (is_byte_pair) return out;
  name("unk_token", ids.unknown);
  name("pad_token", ids.pad);
  return out;
}

}  // namespace

ImportedModel read_huggingface_folder(const Path& folder) {
  refuse_pipes(folder);
  if (!io::exists(folder / settings_file)) check_folder(folder, "");
  const std::string name = (folder / settings_file).string();
  const Json json = parse_json(io::read(folder / settings_file), name);
  const Json* found = json.is_object() ? json.find("model_type") : nullptr;
  const std::string type = found == nullptr ? "missing" : found->dump();
  check_folder(folder, type);
  if (type == "\"gpt2\"") return gpt2_in(folder, json, name);
  if (type == "\"llama\"") return llama_in(folder, json, name);
  if (type == "\"bert\"") return bert_in(folder, json, name);
  if (type == "\"marian\"") return marian_in(folder, json, name);
  fail(Fault::data, name, ": model_type is ", shown(type, 80),
       ", and only \"gpt2\", \"llama\", \"bert\" and \"marian\" can be read.");
}

namespace {

/// The files of a translator.
std::vector<NamedBytes> marian_out(const ExportedModel& model) {
  MarianFiles made = encode_marian(model);
  std::vector<NamedBytes> out = marian_tokenizer_files(model);
  out.push_back({settings_file, made.config.dump(2) + "\n"});
  out.push_back({generation_file, made.generation.dump(2) + "\n"});
  out.push_back({weights_file, std::move(made.weights)});
  return out;
}

/// The files of a masked language model.
std::vector<NamedBytes> bert_out(const ExportedModel& model) {
  BertFiles made = encode_bert(model);
  const WordPieceLists& lists = wordpiece_lists(model.tokenizer);
  const auto piece = [&](int32_t id) {
    return id >= 0 ? Json(lists.pieces[static_cast<size_t>(id)]) : Json();
  };
  const Json named = Json::object({{"tokenizer_class", "PreTrainedTokenizerFast"},
                                   {"unk_token", piece(lists.special.unknown)},
                                   {"pad_token", piece(lists.special.pad)},
                                   {"cls_token", piece(lists.special.start)},
                                   {"sep_token", piece(lists.special.end)},
                                   {"mask_token", piece(lists.special.mask)},
                                   {"model_max_length", model.config.max_length},
                                   {"clean_up_tokenization_spaces", false}});
  return {{settings_file, made.config.dump(2) + "\n"},
          {weights_file, std::move(made.weights)},
          {tokenizer_file, wordpiece_json(model.tokenizer).dump() + "\n"},
          {"tokenizer_config.json", named.dump(2) + "\n"}};
}

}  // namespace

std::vector<NamedBytes> huggingface_files(const ExportedModel& model) {
  if (model.translator) return marian_out(model);
  if (model.is_masked) return bert_out(model);
  Json config;
  std::string weights;
  if (is_rotary(model.config.position)) {
    LlamaFiles made = encode_llama_folder(model);
    config = std::move(made.config);
    weights = std::move(made.weights);
  } else {
    Gpt2Files made = encode_gpt2(model);
    config = std::move(made.config);
    weights = std::move(made.weights);
  }
  std::vector<NamedBytes> code;
  if (!model.attention_code.is_null()) code.push_back(add_attention_code(config, model.attention_code));
  std::vector<NamedBytes> out{{settings_file, config.dump(2) + "\n"},
                              {weights_file, std::move(weights)},
                              {tokenizer_file, tokenizer_json(model.tokenizer)},
                              {"tokenizer_config.json", tokenizer_config(model).dump(2) + "\n"}};
  out.insert(out.end(), code.begin(), code.end());
  if (model.tokenizer.kind() == "byte_pair" && byte_pair_lists(model.tokenizer).pre_tokenizer ==
                                                   PreTokenizer::gpt2) {  // these files cannot say others
    BytePairFiles files = byte_pair_files(model.tokenizer);
    out.push_back({vocabulary_file, std::move(files.vocabulary)});
    out.push_back({merges_file, std::move(files.merges)});
  }
  return out;
}

}  // namespace heed

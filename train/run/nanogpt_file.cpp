// The members of a checkpoint of nanoGPT.
#include "heed/train/run/nanogpt_file.h"

#include <algorithm>
#include <numeric>

#include "heed/core/io/files.h"
#include "heed/data/text/text.h"
#include "heed/data/tokenizers/vocabulary.h"
#include "heed/train/run/gpt2_shape.h"
#include "heed/train/run/model_settings.h"
#include "heed/train/run/torch_file.h"

namespace heed {
namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view compiled_prefix = "_orig_mod.";
constexpr const char* nanogpt_prefix = "transformer.";
constexpr int64_t max_meta_bytes = int64_t{16} << 20;
/// The members of model_args: the arguments of nanoGPT's GPTConfig.
constexpr std::string_view arguments_of_model[] = {"n_layer", "n_head",     "n_embd", "block_size",
                                                   "bias",    "vocab_size", "dropout"};

/// A member of the checkpoint, which must be a dict.
const PickleValue& dict_of(const Pickle& pickle, const char* key) {
  const PickleValue* found = pickle.find(pickle.root(), key);
  if (found == nullptr || found->kind != Kind::dict)
    pickle.refuse(pickle.root(), text("there is no dict '", key,
                                      "'. Give a ckpt.pt of nanoGPT, a dict with model and model_args."));
  return *found;
}

/// model_args as JSON.
Json arguments_in(const Pickle& pickle) {
  Json out = Json::object();
  const PickleValue& given = dict_of(pickle, "model_args");
  for (size_t i = 0; i < given.items.size(); i += 2) {
    const PickleValue &key = pickle.at(given.items[i]), &value = pickle.at(given.items[i + 1]);
    if (key.kind != Kind::text ||
        std::ranges::find(arguments_of_model, key.text) == std::end(arguments_of_model))
      pickle.refuse(
          key, text("model_args has ", key.kind == Kind::text ? shown(key.text) : "a key that is no text",
                    ", which nanoGPT does not have: a model with other parts cannot be read."));
    Json one;
    if (value.kind == Kind::boolean) one = value.integer != 0;
    if (value.kind == Kind::integer) one = value.integer;
    if (value.kind == Kind::real) one = value.real;
    out.set(std::string(key.text), one);
  }
  return out;
}

Gpt2Config sizes_in(const Pickle& pickle) {
  const Json json = arguments_in(pickle);
  const std::string name = pickle.name() + ": byte 0: model_args";
  const ModelSettings arguments(json, name);
  Gpt2Config out{.vocabulary = arguments.count("vocab_size"),
                 .positions = arguments.count("block_size"),
                 .width = arguments.count("n_embd"),
                 .layers = arguments.count("n_layer"),
                 .heads = arguments.count("n_head"),
                 .dropout = arguments.fraction("dropout", 0),
                 .activation = Activation::gelu};
  out.hidden = 4 * out.width;
  out.attention_dropout = out.dropout;
  const Json* bias = json.find("bias");  // older models always have biases
  if (bias != nullptr && bias->dump() != "true" && bias->dump() != "false")
    fail(Fault::data, name, ": bias is ", shown(bias->dump()), "; it must be True or False.");
  out.has_biases = bias == nullptr || bias->dump() == "true";
  if (out.width % out.heads != 0)
    fail(Fault::data, name, ": n_head is ", out.heads, "; it must divide n_embd, ", out.width, ".");
  return out;
}

/// The tensors of the state_dict. They may share numbers only as output layer and embedding do, so that a
/// small file makes no large model.
std::vector<TensorSource> tensors_in(const TorchFile& file, size_t file_size) {
  const Pickle& pickle = file.pickle();
  const PickleValue& state = dict_of(pickle, "model");
  std::vector<TensorSource> out;
  double viewed = 0;
  for (size_t i = 0; i < state.items.size(); i += 2) {
    const PickleValue& key = pickle.at(state.items[i]);
    if (key.kind != Kind::text) pickle.refuse(key, "the name of a tensor is no text. Save a state_dict().");
    std::string_view name = key.text;
    if (name.starts_with(compiled_prefix)) name.remove_prefix(compiled_prefix.size());
    if (static_cast<int64_t>(out.size()) >= max_tensors)
      pickle.refuse(key, text("model has more than ", max_tensors, " tensors."));
    out.push_back(file.tensor(pickle.at(state.items[i + 1]), std::string(name)));
    double numbers = 1;
    for (const int64_t extent : out.back().shape) numbers *= static_cast<double>(extent);
    viewed += numbers;
    if (viewed >
        static_cast<double>(file_size))  // a number has 2 bytes or more, and the table is there twice
      pickle.refuse(key, "the tensors of model share storages, and only output layer and embedding may.");
  }
  return out;
}

/// The tokenizer of a meta.pkl: characters, with ids in the order of their code points.
std::unique_ptr<Tokenizer> read_meta(const Path& path, int64_t vocabulary) {
  const std::string bytes = io::read(path, max_meta_bytes);
  const Pickle pickle = Pickle::parse(bytes, path.string(), {});
  const PickleValue* itos = pickle.find(pickle.root(), "itos");
  if (itos == nullptr || itos->kind != Kind::dict)
    pickle.refuse(pickle.root(), "there is no dict 'itos', the characters by id.");
  std::string characters;
  for (size_t i = 0; i < itos->items.size(); i += 2) {
    const PickleValue &id = pickle.at(itos->items[i]), &character = pickle.at(itos->items[i + 1]);
    if (id.kind != Kind::integer || id.integer != static_cast<int64_t>(i / 2) || character.kind != Kind::text)
      pickle.refuse(id, "the ids of itos must count up from 0, each with a character.");
    characters += character.text;
  }
  auto out = make_character_tokenizer(characters);
  std::vector<int32_t> counting(static_cast<size_t>(out->size()));
  std::iota(counting.begin(), counting.end(), 0);
  if (out->size() != vocabulary || out->encode(characters) != counting)
    fail(Fault::data, path, ": byte 0: its ", itos->items.size() / 2, " characters are not ", vocabulary,
         " different ones in the order of their code points, as the model's must be. Take the file away, or "
         "put that of the model's text there.");
  return out;
}

}  // namespace

ImportedModel read_nanogpt(std::string_view bytes, const Path& path) {
  const std::string name = path.string();
  const TorchFile file = TorchFile::parse(bytes, name);
  const Gpt2Config sizes = sizes_in(file.pickle());
  TensorConversion conversion(name, tensors_in(file, bytes.size()), "a GPT-2 of those model_args");
  const bool is_tied = convert_gpt2(conversion, sizes, {.prefix = nanogpt_prefix, .is_in_out = false});
  ImportedModel out{.architecture = "GPT-2",
                    .run_name = "nanogpt",
                    .settings = gpt2_settings(sizes, is_tied),
                    .weights = conversion.encode(),
                    .vocabulary = sizes.vocabulary};
  const Path meta = path.parent_path() / "meta.pkl";
  if (!io::exists(meta)) return out;
  out.tokenizer = read_meta(meta, sizes.vocabulary);
  out.settings.emplace_back("data.tokenizer", out.tokenizer->kind());
  return out;
}

std::string encode_nanogpt(const ExportedModel& model) {
  const Gpt2Config sizes = gpt2_sizes(model, {.name = "a nanoGPT checkpoint",
                                              .activation = Activation::gelu,
                                              .is_strict = true,
                                              .may_lack_biases = true});
  const auto made = gpt2_tensors(model, sizes, {.prefix = nanogpt_prefix, .is_in_out = false});
  std::vector<TorchTensor> tensors;
  for (const auto& [name, tensor] : made) tensors.push_back({name, tensor.shape, tensor.numbers});
  const auto table =
      std::ranges::find(tensors, nanogpt_prefix + std::string("wte.weight"), &TorchTensor::name);
  tensors.push_back({"lm_head.weight", table->shape, table->numbers});
  std::vector<std::string_view> storages;
  PickleWriter out;
  out.dict().text("model");
  write_state_dict(out, tensors, storages);
  out.set().text("model_args").dict();
  const std::pair<const char*, int64_t> counts[] = {{"n_layer", sizes.layers},
                                                    {"n_head", sizes.heads},
                                                    {"n_embd", sizes.width},
                                                    {"block_size", sizes.positions},
                                                    {"vocab_size", sizes.vocabulary}};
  for (const auto& [key, value] : counts) out.text(key).integer(value).set();
  out.text("bias").boolean(sizes.has_biases).set();
  out.text("dropout").real(sizes.dropout).set().set();
  return encode_torch_file(out.finish(), storages);
}

}  // namespace heed

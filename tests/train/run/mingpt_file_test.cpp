// tests train/run/mingpt_file.h
#include "heed/train/run/mingpt_file.h"

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/json.h"
#include "heed/tests/train/damaged_model_files.h"
#include "heed/tests/train/nanogpt_bytes.h"

namespace heed {
namespace {

TransformerConfig small_mingpt() {
  TransformerConfig config = small_nanogpt();
  config.activation = Activation::gelu_tanh;
  return config;
}

/// The tensors have the names of nanoGPT's.
Json mingpt_json(DecoderOnly& model) {
  const NanogptBytes parts(model);
  Json out = Json::object({{"config", Json::object({{"model_type", "gpt-nano"},
                                                    {"n_layer", 2},
                                                    {"n_head", 2},
                                                    {"n_embd", 16},
                                                    {"vocab_size", nanogpt_tokens},
                                                    {"block_size", 24},
                                                    {"resid_pdrop", 0.25}})}});
  for (const SavedTensor& tensor : parts.tensors)
    out.set(tensor.name, Json::object({{"shape", Json::List(tensor.shape.begin(), tensor.shape.end())},
                                       {"dtype", "torch.float32"},
                                       {"data", picture::base64(parts.storages.at(tensor.key))}}));
  const Json mask =
      Json::object({{"shape", Json::List{1, 1}}, {"dtype", "torch.float32"}, {"data", "AAAAAA=="}});
  return out.set("transformer.h.0.attn.bias", mask);
}

void read_as_mingpt(const std::string& bytes) { (void)read_mingpt(bytes, "m.json"); }

}  // namespace

TEST_CASE("minGPT: the logits of a model that was written and read are its own, bit for bit") {
  DecoderOnly model = random_model(small_mingpt(), nanogpt_tokens, 1);
  const ImportedModel read = read_mingpt(mingpt_json(model).dump(), "m.json");
  CHECK(logits_with(small_mingpt(), nanogpt_tokens, read.weights) == some_logits(model));
  CHECK(read.vocabulary == nanogpt_tokens);
  CHECK(setting_of(read.settings, "model.activation") == "gelu_tanh");
  CHECK(setting_of(read.settings, "model.dropout") == "0.25");
}

TEST_CASE("minGPT: what is missing or no tensor is refused by its name") {
  DecoderOnly model = random_model(small_mingpt(), nanogpt_tokens, 1);
  const Json good = mingpt_json(model);
  const std::string name = "transformer.ln_f.weight";
  const auto with = [&](const char* key, const Json& value) {
    Json tensor = good.at(name);
    return Json(good).set(name, tensor.set(key, value)).dump();
  };
  check_file_refused("{}", read_as_mingpt, "there is no config");
  check_file_refused("{\"config\": 3}", read_as_mingpt, "m.json: config");
  check_file_refused(Json(good).set(name, 3).dump(), read_as_mingpt, name + " is no tensor: it has no shape");
  check_file_refused(with("dtype", "torch.int8"), read_as_mingpt, "has the dtype \"torch.int8\"");
  check_file_refused(with("shape", Json::List{-1}), read_as_mingpt, "has the shape [-1]");
  check_file_refused(with("shape", Json::List{1 << 20, 1 << 20}), read_as_mingpt,
                     "has fewer numbers than its shape");
  check_file_refused(with("shape", Json::List{15}), read_as_mingpt, "and the model's settings give [16]");
  check_file_refused(with("data", std::string(88, '!')), read_as_mingpt, "data is no base64 of 64 bytes");
  check_file_refused(Json(good).set("transformer.h.2.ln_1.weight", good.at(name)).dump(), read_as_mingpt,
                     "transformer.h.2.ln_1.weight is none of a minGPT");
  const std::string nan =
      picture::base64(NumberBytes().floats(std::vector<float>(16)).set(8, 0x7fc00000).bytes);
  CHECK(fault_of([&] { read_as_mingpt(with("data", nan)); }) == Fault::numeric);
}

TEST_CASE("minGPT: five thousand damaged files are read or refused, nothing else") {
  DecoderOnly model = random_model(small_mingpt(), nanogpt_tokens, 1);
  const std::string bytes = mingpt_json(model).dump();
  CHECK(refused_damages(bytes, bytes.size(), read_as_mingpt) > 1000);
}

}  // namespace heed

// tests train/run/llama_huggingface.h
#include "heed/train/run/llama_huggingface.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include "heed/attention/variant.h"
#include "heed/core/io/files.h"
#include "heed/core/random.h"
#include "heed/data/tokenizers/json_tokenizer.h"
#include "heed/data/tokenizers/tokenizer_json_reader.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/tests/train/llama_file.h"
#include "heed/train/run/huggingface_folder.h"
#include "heed/train/run/llama_gguf.h"

namespace heed {
namespace {

TransformerConfig llama_by_halves(Tie tie = Tie::output) {
  TransformerConfig out = small_llama(tie);
  out.position = PositionKind::rope;
  return out;
}

DecoderOnly llama_of(const TransformerConfig& config, uint64_t seed) {
  const NoGrad no_grad;
  Rng rng(seed);
  DecoderOnly out(config, static_cast<int64_t>(llama_tokens().size()), attention_factory("softmax"), rng);
  visit_tensors(out, [&](const std::string& name, Tensor& x) {  // norms that can be told apart
    if (name.ends_with("gain")) fill_uniform(x.detach(), 0.5, 1.5, rng);
  });
  return out;
}

std::vector<float> folder_logits(const DecoderOnly& model) {
  const NoGrad no_grad;
  return model(Tensor::of<int32_t>(std::vector<int32_t>{1, 10, 3, 0, 7, 7}, Shape{2, 3}), {}).to_host();
}

/// The files of a model, which has these settings.
LlamaFiles llama_folder(DecoderOnly& model, TransformerConfig config) {
  const ImportedModel tokens = llama_model(GgufFile::parse(llama_file(), "m.gguf"));
  const SafeTensors weights = SafeTensors::parse(save_bytes(model), "model.safetensors");
  return encode_llama_folder({.name = "m",
                              .config = std::move(config),
                              .attention = "softmax",
                              .weights = weights,
                              .tokenizer = *tokens.tokenizer});
}

std::string folder_weights(const LlamaFiles& files) {
  return llama_weights(SafeTensors::parse(files.weights, "m.safetensors"),
                       parse_llama_config(files.config, "config.json"));
}

/// The tensors of a file as 16-bit numbers: the upper halves of f32 as bf16, or powers of two as f16.
std::string in_16_bits(const std::string& bytes, const std::string& dtype) {
  const SafeTensors file = SafeTensors::parse(bytes, "m.safetensors");
  std::map<std::string, std::vector<uint16_t>> numbers;
  std::vector<TensorBytes> list;
  for (const TensorEntry& entry : file.entries()) {
    std::vector<uint16_t>& made = numbers[entry.name];
    for (const float x : file.floats(entry)) {
      uint32_t bits = 0;
      std::memcpy(&bits, &x, sizeof bits);
      // f16 has 5 bits of exponent around 15 and 10 of fraction, which are cut here: sign, then both.
      const int exponent = static_cast<int>(bits >> 23 & 255) - 127 + 15;
      const uint32_t half = exponent < 1 ? 0 : static_cast<uint32_t>(exponent) << 10 | (bits >> 13 & 1023);
      made.push_back(static_cast<uint16_t>(dtype == "BF16" ? bits >> 16 : (bits >> 16 & 0x8000) | half));
    }
    list.push_back({entry.name, dtype, entry.shape, std::as_bytes(std::span(made))});
  }
  return encode_safetensors(list);
}

}  // namespace

TEST_CASE("llama folder: the logits of a model that was written and read are its own, bit for bit") {
  for (const Tie tie : {Tie::output, Tie::none}) {
    DecoderOnly model = llama_of(llama_by_halves(tie), 1), read = llama_of(llama_by_halves(tie), 2);
    const LlamaFiles files = llama_folder(model, llama_by_halves(tie));
    CHECK(folder_logits(read) != folder_logits(model));
    load_bytes(read, folder_weights(files));
    CHECK(folder_logits(read) == folder_logits(model));
    const LlamaSizes sizes = parse_llama_config(files.config, "config.json");
    CHECK(sizes.tied == (tie == Tie::output));
    CHECK(sizes.rope_base == 5000);
    CHECK(sizes.kv_heads == 2);
    CHECK(files.config.at("rope_theta").real() == 5000);
    CHECK(SafeTensors::parse(files.weights, "m").metadata().at("format") == "pt");
  }
}

TEST_CASE("llama folder: a tokenizer of the type WordLevel goes out and comes in again") {
  DecoderOnly model = llama_of(llama_by_halves(), 1);
  Json words = Json::object({{"<s>", 0}, {"</s>", 1}});
  for (size_t id = 2; id < llama_tokens().size(); ++id) words.append(text("w", id), id);
  const auto special = [](int64_t id, const char* content) { return detail::added_token_json(id, content); };
  const auto tokenizer = make_json_tokenizer(
      Json::object({{"added_tokens", Json::List{special(0, "<s>"), special(1, "</s>")}},
                    {"pre_tokenizer", Json::object({{"type", "WhitespaceSplit"}})},
                    {"model", Json::object({{"type", "WordLevel"}, {"unk_token", "w2"}, {"vocab", words}})}}),
      "words");
  const SafeTensors weights = SafeTensors::parse(save_bytes(model), "model.safetensors");
  const Scratch scratch;
  for (const NamedBytes& file : huggingface_files({.name = "m",
                                .config = llama_by_halves(),
                                .attention = "softmax",
                                .weights = weights,
                                .tokenizer = *tokenizer}))
    io::write(scratch / file.name, file.bytes);
  const ImportedModel read = read_huggingface_folder(scratch.path());
  CHECK(read.tokenizer->save() == tokenizer->save());
  CHECK(read.settings.back() == std::pair<std::string, std::string>{"data.tokenizer", "tokenizer_json"});
  const auto json = [&](const char* name) { return parse_json(io::read(scratch / name), name); };
  CHECK(json("config.json").at("bos_token_id").integer() == 0);
  CHECK(json("config.json").at("eos_token_id").integer() == 1);
  CHECK(json("tokenizer_config.json").at("bos_token").text() == "<s>");
  CHECK(json("tokenizer_config.json").at("unk_token").text() == "w2");
  CHECK(!io::exists(scratch / "vocab.json"));
}

TEST_CASE("llama folder: rows of neighbouring pairs are moved, so that the model stays the same") {
  DecoderOnly model = llama_of(small_llama(), 1), read = llama_of(llama_by_halves(), 2);
  load_bytes(read, folder_weights(llama_folder(model, small_llama())));
  const std::vector<float> wanted = folder_logits(model), made = folder_logits(read);
  double apart = 0;
  for (size_t i = 0; i < wanted.size(); ++i)
    apart = std::max(apart, static_cast<double>(std::abs(made[i] - wanted[i])));
  CHECK(apart < 1e-6);
  load_bytes(read, save_bytes(model));  // without moving rows it is another model
  CHECK(std::abs(folder_logits(read).back() - wanted.back()) > 1e-5);
}

TEST_CASE("llama folder: tensors of 16 bits become f32, and superfluous ones are left out") {
  DecoderOnly model = llama_of(llama_by_halves(), 1);
  const LlamaFiles files = llama_folder(model, llama_by_halves());
  const auto largest_gap = [&](const std::string& dtype) {
    const std::string weights = folder_weights({files.config, in_16_bits(files.weights, dtype)});
    const SafeTensors read = SafeTensors::parse(weights, "read"),
                      own = SafeTensors::parse(save_bytes(model), "own");
    double gap = 0;
    for (const TensorEntry& entry : own.entries()) {
      const std::vector<float> wanted = own.floats(entry), made = read.floats(read.at(entry.name));
      for (size_t i = 0; i < wanted.size(); ++i)
        gap =
            std::max(gap, static_cast<double>(std::abs(made[i] - wanted[i]) / (std::abs(wanted[i]) + 0.1F)));
    }
    return gap;
  };
  for (const auto& [dtype, bound] : {std::pair{"F16", 0.001}, std::pair{"BF16", 0.008}}) {
    CAPTURE(dtype);
    CHECK(largest_gap(dtype) < bound);
    CHECK(largest_gap(dtype) > bound / 10);
  }
  const SafeTensors plain = SafeTensors::parse(files.weights, "m");
  std::vector<TensorBytes> more;
  for (const TensorEntry& entry : plain.entries())
    more.push_back({entry.name, entry.dtype, entry.shape, plain.bytes(entry)});
  const TensorEntry& table = plain.at("model.embed_tokens.weight");
  more.push_back({"lm_head.weight", "F32", table.shape, plain.bytes(table)});
  const std::vector<float> angles{1, 0.01F};
  more.push_back(
      {"model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {2}, std::as_bytes(std::span(angles))});
  CHECK(folder_weights({files.config, encode_safetensors(more)}) == folder_weights(files));
}

TEST_CASE("llama folder: a weights file that does not fit is refused by its tensor") {
  DecoderOnly model = llama_of(llama_by_halves(), 1);
  const LlamaFiles files = llama_folder(model, llama_by_halves());
  const auto refused = [&](const std::string& reason, const char* key, Json value) {
    INFO(reason);
    const LlamaFiles other{Json(files.config).set(key, std::move(value)), files.weights};
    CHECK(fault_of([&] { folder_weights(other); }) == Fault::data);
    CHECK_THROWS_WITH(folder_weights(other), containing("m.safetensors: ") && containing(reason));
  };
  refused("tensor model.layers.2.input_layernorm.weight is missing", "num_hidden_layers", 3);
  refused("tensor model.layers.1.input_layernorm.weight and 8 others are none of a LLaMA",
          "num_hidden_layers", 1);
  refused("mlp.gate_proj.weight has shape [24, 16]", "intermediate_size", 20);
  refused("k_proj.weight has shape [8, 16]", "num_key_value_heads", 4);
  refused("embed_tokens.weight has shape [31, 16]", "vocab_size", 32);
  refused("tensor lm_head.weight is missing", "tie_word_embeddings", false);
}

TEST_CASE("llama folder: settings of old and new files are read, and others refused by their name") {
  DecoderOnly model = llama_of(llama_by_halves(), 1);
  const Json good = llama_folder(model, llama_by_halves()).config;
  const auto base_of = [&](const Json& json) { return parse_llama_config(json, "config.json").rope_base; };
  const Json old = Json(good).set("rope_parameters", Json()).set("rope_scaling", Json());
  CHECK(base_of(Json(old).set("rope_theta", 20000.0)) == 20000);  // Transformers 4 writes it here.
  CHECK(base_of(Json(old).set("rope_theta", Json())) == 10000);
  const Json nested = Json::object({{"rope_type", "default"}, {"rope_theta", 30000}});
  CHECK(base_of(Json(old).set("rope_parameters", nested)) == 30000);  // Transformers 5 writes it there.
  const LlamaSizes narrow = parse_llama_config(
      Json(good).set("head_dim", Json()).set("num_key_value_heads", Json()), "config.json");
  CHECK(narrow.head_width == 4);
  CHECK(narrow.kv_heads == 4);
  const auto refused = [&](const std::string& reason, const char* key, Json value) {
    INFO(reason);
    const Json json = Json(good).set(key, std::move(value));
    CHECK(fault_of([&] { base_of(json); }) == Fault::data);
    CHECK_THROWS_WITH(base_of(json), containing("config.json: ") && containing(reason));
  };
  refused("model_type is \"mistral\", and only \"llama\"", "model_type", "mistral");
  refused("hidden_act is \"gelu\", and only \"silu\"", "hidden_act", "gelu");
  refused("attention_bias is true, and only false", "attention_bias", true);
  refused("mlp_bias is true", "mlp_bias", true);
  refused("hidden_size is \"wide\"", "hidden_size", "wide");
  refused("rms_norm_eps is 2", "rms_norm_eps", 2);
  refused("num_hidden_layers is 1000000, and a file has at most", "num_hidden_layers", 1000000);
  refused("rope_parameters: rope_type is \"llama3\", and only \"default\"", "rope_parameters",
          Json::object({{"rope_type", "llama3"}, {"rope_theta", 10000}}));
  refused("rope_parameters: rope_theta is -1", "rope_parameters", Json::object({{"rope_theta", -1}}));
  refused("rope_scaling: rope_type is \"llama3\"", "rope_scaling", Json::object({{"rope_type", "llama3"}}));
  refused("rope_scaling: type is \"linear\"", "rope_scaling", Json::object({{"type", "linear"}}));
  CHECK(fault_of([&] { base_of(Json(good).set("tie_word_embeddings", 1)); }) == Fault::data);
  CHECK_THROWS_WITH(base_of(Json(Json::List())), containing("no JSON object"));
}

TEST_CASE("llama folder: what LLaMA does not have is refused by its setting") {
  DecoderOnly model = llama_of(llama_by_halves(), 1);
  const auto refused = [&](const std::string& reason, const std::function<void(TransformerConfig&)>& change) {
    TransformerConfig config = llama_by_halves();
    change(config);
    INFO(reason);
    CHECK(fault_of([&] { llama_folder(model, config); }) == Fault::usage);
    CHECK_THROWS_WITH(llama_folder(model, config),
                      containing("a LLaMA in a folder of Hugging Face's Transformers needs " + reason));
  };
  refused("model.activation = swiglu", [](auto& c) { c.activation = Activation::gelu; });
  refused("model.attention_bias = false", [](auto& c) { c.attention_bias.query = true; });
  refused("model.norm_scale = rms", [](auto& c) { c.norm_scale = kernel::NormScale::variance; });
  refused("model.logit_scale = 1", [](auto& c) { c.logit_scale = 0.5; });
}

}  // namespace heed

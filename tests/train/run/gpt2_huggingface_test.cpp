// tests train/run/gpt2_huggingface.h
#include "heed/train/run/gpt2_huggingface.h"

#include <cstring>
#include <functional>

#include "heed/attention/variant.h"
#include "heed/data/synthetic/language_model_text.h"
#include "heed/data/tokenizers/byte_pair.h"
#include "heed/data/tokenizers/vocabulary.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/tests/train/gpt2_folder.h"

namespace heed {
namespace {

constexpr int64_t vocabulary = 11;

std::vector<float> gpt2_logits(const DecoderOnly& model) {
  const NoGrad no_grad;
  return model(Tensor::of<int32_t>(std::vector<int32_t>{1, 10, 3, 0, 7, 7}, Shape{2, 3}), {}).to_host();
}

Gpt2Weights gpt2_taken(std::string bytes, Json json = gpt2_json(vocabulary)) {
  return gpt2_weights(SafeTensors::parse(std::move(bytes), "m.safetensors"),
                      parse_gpt2_config(json, "config.json"));
}

/// Weights of a small GPT-2 as the file of a checkpoint, with norms and biases that can be told apart.
SafeTensors gpt2_checkpoint(Tie tie, int64_t tokens) {
  Rng rng(1);
  DecoderOnly model(small_gpt2(tie), tokens, attention_factory("softmax"), rng);
  gpt2_file(model);
  return SafeTensors::parse(save_bytes(model), "model.safetensors");
}

}  // namespace

TEST_CASE("gpt2: the logits of a model that was written and read are its own, bit for bit") {
  struct Case {
    Tie tie;
    const char* prefix;
    bool twice, tied;
  };
  for (const Case& one : {Case{Tie::output, "", false, true}, Case{Tie::output, "transformer.", true, true},
                          Case{Tie::none, "transformer.", false, false}}) {
    CAPTURE(one.prefix, one.twice, one.tied);
    Rng rng(1), other(2);
    DecoderOnly model(small_gpt2(one.tie), vocabulary, attention_factory("softmax"), rng);
    DecoderOnly read(small_gpt2(one.tie), vocabulary, attention_factory("softmax"), other);
    const Gpt2Weights weights = gpt2_taken(gpt2_file(model, one.prefix, one.twice));
    CHECK(weights.tied == one.tied);
    CHECK(gpt2_logits(read) != gpt2_logits(model));
    load_bytes(read, weights.bytes);
    CHECK(gpt2_logits(read) == gpt2_logits(model));
  }
}

TEST_CASE("gpt2: a file that does not fit its settings is refused by the tensor's name") {
  Rng rng(1);
  DecoderOnly model(small_gpt2(), vocabulary, attention_factory("softmax"), rng);
  const std::string bytes = gpt2_file(model);
  Json json = gpt2_json(vocabulary);
  CHECK_THROWS_WITH(gpt2_taken(bytes, Json(json).set("n_layer", 3)), containing("h.2.ln_1.weight"));
  CHECK_THROWS_WITH(gpt2_taken(bytes, Json(json).set("n_layer", 1)),
                    containing("tensor h.1.attn.c_attn.bias and 11 others are none of a GPT-2"));
  CHECK_THROWS_WITH(gpt2_taken(bytes, Json(json).set("n_inner", Json())),
                    containing("h.0.mlp.c_fc.weight has shape [16, 40]") && containing("[16, 64]"));
  CHECK_THROWS_WITH(gpt2_taken(bytes, Json(json).set("vocab_size", 12)),
                    containing("wte.weight has shape [11, 16]"));
}

TEST_CASE("gpt2: a weight that is not finite is refused by its name in the file") {
  Rng rng(1);
  DecoderOnly model(small_gpt2(), vocabulary, attention_factory("softmax"), rng);
  const std::string bytes = gpt2_file(model);
  const SafeTensors file = SafeTensors::parse(bytes, "m.safetensors");
  const TensorEntry& entry = file.at("h.0.mlp.c_fc.weight");
  for (const uint32_t bits : {0x7fc00000U, 0xff800000U}) {
    std::string bad = bytes;
    std::memcpy(bad.data() + entry.offset + 4 * (40 + 2), &bits, sizeof bits);
    CHECK(fault_of([&] { gpt2_taken(bad); }) == Fault::numeric);
    CHECK_THROWS_WITH(gpt2_taken(bad), containing("h.0.mlp.c_fc.weight") && containing("[1, 2]"));
  }
}

TEST_CASE("gpt2: settings that Heed has not are refused by their name") {
  const auto refusal = [](const char* key, Json value) {
    try {
      parse_gpt2_config(gpt2_json(vocabulary).set(key, std::move(value)), "config.json");
    } catch (const Error& error) {
      CHECK(error.fault() == Fault::data);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK_THAT(refusal("model_type", "llama"), containing("model_type is \"llama\"") && containing("\"gpt2\""));
  CHECK_THAT(refusal("activation_function", "relu"), containing("gelu_new"));
  CHECK_THAT(refusal("scale_attn_by_inverse_layer_idx", true), containing("scale_attn_by_inverse_layer_idx"));
  CHECK_THAT(refusal("n_head", -1), containing("n_head is -1") && containing("from 1 to"));
  CHECK_THAT(refusal("n_embd", "wide"), containing("n_embd is \"wide\""));
  CHECK_THAT(refusal("resid_pdrop", 1.5), containing("resid_pdrop is 1.5"));
  CHECK_THROWS_WITH(parse_gpt2_config(Json(Json::List{}), "config.json"), containing("no JSON object"));
  CHECK_THROWS_WITH(parse_gpt2_config(Json::object({{"model_type", "gpt2"}}), "config.json"),
                    containing("vocab_size is missing"));
  CHECK(parse_gpt2_config(gpt2_json(vocabulary).set("n_inner", Json()), "").hidden == 64);
}

TEST_CASE("gpt2: a model that is exported and read has the same weights, bit for bit") {
  const auto tokenizer = train_byte_pair(verse(5000, 1), {.size = 280});
  for (const Tie tie : {Tie::output, Tie::none}) {
    CAPTURE(tie == Tie::output);
    const SafeTensors own = gpt2_checkpoint(tie, tokenizer->size());
    TransformerConfig config = small_gpt2(tie);
    config.dropout = 0.25;
    config.attention_dropout = 0.125;
    const Gpt2Files files = encode_gpt2(
        {.name = "m", .config = config, .attention = "softmax", .weights = own, .tokenizer = *tokenizer});
    CHECK(files.config.at("eos_token_id").integer() == tokenizer->end());
    CHECK(files.config.at("tie_word_embeddings").boolean() == (tie == Tie::output));
    const SafeTensors written = SafeTensors::parse(files.weights, "m.safetensors");
    CHECK(written.at("transformer.h.0.mlp.c_fc.weight").shape == std::vector<int64_t>{16, 40});
    CHECK(written.at("transformer.h.1.attn.c_attn.weight").shape == std::vector<int64_t>{16, 48});
    CHECK((written.find("lm_head.weight") == nullptr) == (tie == Tie::output));
    const Gpt2Config sizes = parse_gpt2_config(files.config, "config.json");
    CHECK(sizes.hidden == 40);
    CHECK(sizes.dropout == 0.25);
    CHECK(sizes.attention_dropout == 0.125);
    const Gpt2Weights again = gpt2_weights(written, sizes);
    CHECK(again.tied == (tie == Tie::output));
    const SafeTensors read = SafeTensors::parse(again.bytes, "again");
    CHECK(read.entries().size() == own.entries().size());
    for (const TensorEntry& entry : own.entries()) {
      CAPTURE(entry.name);
      CHECK(read.at(entry.name).shape == entry.shape);
      CHECK(read.floats(read.at(entry.name)) == own.floats(entry));
    }
  }
}

TEST_CASE("gpt2: what GPT-2 does not have is refused by its setting") {
  const auto tokenizer = train_byte_pair(verse(5000, 1), {.size = 280});
  const SafeTensors weights = gpt2_checkpoint(Tie::output, tokenizer->size());
  const auto refused = [&](const std::string& reason, const std::string& attention, const Tokenizer& tokens,
                           const std::function<void(TransformerConfig&)>& change) {
    ExportedModel model{
        .name = "m", .config = small_gpt2(), .attention = attention, .weights = weights, .tokenizer = tokens};
    change(model.config);
    INFO(reason);
    CHECK(fault_of([&] { encode_gpt2(model); }) == Fault::usage);
    CHECK_THROWS_WITH(encode_gpt2(model), containing("export: a GPT-2 needs " + reason));
  };
  const auto changed = [&](const std::string& reason, const std::function<void(TransformerConfig&)>& change) {
    refused(reason, "softmax", *tokenizer, change);
  };
  const auto same = [](TransformerConfig&) {};
  refused("attention.decoder = softmax (linear and fastmax: --as huggingface --code), not linear", "linear",
          *tokenizer, same);
  refused("data.tokenizer = byte_pair", "softmax", *make_byte_tokenizer(), same);
  changed("model.activation = gelu_tanh", [](auto& c) { c.activation = Activation::gelu; });
  changed("model.norm_scale = variance", [](auto& c) { c.norm_scale = kernel::NormScale::rms; });
  changed("model.norm_bias = true", [](auto& c) { c.norm_bias = false; });
  changed("model.norm = pre", [](auto& c) { c.norm = NormPlace::post; });
  changed("model.position = learned", [](auto& c) { c.position = PositionKind::sinusoid; });
  changed("model.attention_bias = true", [](auto& c) { c.attention_bias.key = false; });
  changed("model.feed_forward_bias = true", [](auto& c) { c.feed_forward_bias = false; });
  changed("model.kv_heads = 0", [](auto& c) { c.kv_heads = 1; });
  changed("model.head_dim = 0", [](auto& c) { c.head_dim = 4; });
  changed("model.d_ff above 0", [](auto& c) { c.d_ff = 0; });
  changed("model.scale_embedding = false", [](auto& c) { c.scale_embedding = true; });
  changed("model.tie_embeddings = output or none", [](auto& c) { c.tie_embeddings = Tie::all; });
  changed("model.qk_norm = none", [](auto& c) { c.modifiers.sink = Sink::zero; });
  changed("model.output_bias = false", [](auto& c) {
    c.tie_embeddings = Tie::none;
    c.output_bias = true;
  });
}

}  // namespace heed

// tests train/run/gpt2_weights.h
#include "heed/train/run/gpt2_huggingface.h"

#include <cstring>

#include "heed/attention/variant.h"
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
                    containing("12 tensors are none of a GPT-2") && containing("h.1.attn.c_attn.bias"));
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

}  // namespace heed

// tests train/run/llama_gguf.h
#include "heed/train/run/llama_gguf.h"

#include <cmath>

#include "heed/attention/variant.h"
#include "heed/core/random.h"
#include "heed/data/tokenizers/vocabulary.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/tests/train/llama_file.h"

namespace heed {
namespace {

std::vector<float> llama_logits(const DecoderOnly& model) {
  const NoGrad no_grad;
  return model(Tensor::of<int32_t>(std::vector<int32_t>{1, 10, 3, 0, 7, 7}, Shape{2, 3}), {}).to_host();
}

ImportedModel llama_taken(const GgufBytes& file) {
  return llama_model(GgufFile::parse(file.bytes(), "m.gguf"));
}

void check_llama_refused(const GgufBytes& file, const std::string& reason) {
  INFO(reason);
  CHECK(fault_of([&] { llama_taken(file); }) == Fault::data);
  CHECK_THROWS_WITH(llama_taken(file), containing("m.gguf: ") && containing(reason));
}

}  // namespace

TEST_CASE("llama: the logits of a model that was written and read are its own, bit for bit") {
  const auto vocabulary = static_cast<int64_t>(llama_tokens().size());
  for (const Tie tie : {Tie::output, Tie::none}) {
    Rng rng(1), other(2);
    DecoderOnly model(small_llama(tie), vocabulary, attention_factory("softmax"), rng);
    DecoderOnly read(small_llama(tie), vocabulary, attention_factory("softmax"), other);
    GgufBytes file = llama_metadata();
    add_llama_tensors(file, model);
    const ImportedModel taken = llama_taken(file);
    CHECK(llama_logits(read) != llama_logits(model));
    load_bytes(read, taken.weights);
    CHECK(llama_logits(read) == llama_logits(model));
    CHECK(taken.tokenizer->encode("the hen") == std::vector<int32_t>{30, 1, 10, 7, 16});
  }
}

TEST_CASE("llama: a model that was read is written with the same numbers") {
  for (const Tie tie : {Tie::output, Tie::none}) {
    const GgufFile first = GgufFile::parse(llama_file(tie), "first.gguf");
    const ImportedModel taken = llama_model(first);
    const SafeTensors weights = SafeTensors::parse(taken.weights, "model.safetensors");
    const GgufFile second = GgufFile::parse(encode_llama({.name = "again",
                                                          .config = small_llama(tie),
                                                          .attention = "softmax",
                                                          .weights = weights,
                                                          .tokenizer = *taken.tokenizer}),
                                            "second.gguf");
    CHECK(second.tensors().size() == first.tensors().size());
    for (const GgufTensor& one : first.tensors()) {
      REQUIRE(second.find(one.name) != nullptr);
      CHECK(second.values(*second.find(one.name)) == first.values(one));
    }
    const ImportedModel again = llama_model(second);
    CHECK(again.weights == taken.weights);
    CHECK(again.settings == taken.settings);
    CHECK(again.tokenizer->save() == taken.tokenizer->save());
  }
}

TEST_CASE("llama: rows of rope by halves are moved, so that the model stays the same") {
  const auto vocabulary = static_cast<int64_t>(llama_tokens().size());
  TransformerConfig halves = small_llama();
  halves.position = PositionKind::rope;
  Rng rng(1), other(2);
  DecoderOnly model(halves, vocabulary, attention_factory("softmax"), rng);
  DecoderOnly read(small_llama(), vocabulary, attention_factory("softmax"), other);
  const ImportedModel tokens = llama_model(GgufFile::parse(llama_file(), "m.gguf"));
  const SafeTensors weights = SafeTensors::parse(save_bytes(model), "model.safetensors");
  const ExportedModel exported{.name = "halves",
                               .config = halves,
                               .attention = "softmax",
                               .weights = weights,
                               .tokenizer = *tokens.tokenizer};
  load_bytes(read, llama_model(GgufFile::parse(encode_llama(exported), "m.gguf")).weights);
  const std::vector<float> wanted = llama_logits(model), made = llama_logits(read);
  double apart = 0;
  for (size_t i = 0; i < wanted.size(); ++i)
    apart = std::max(apart, static_cast<double>(std::abs(made[i] - wanted[i])));
  CHECK(apart < 1e-6);
  load_bytes(read, save_bytes(model));  // without moving rows it is another model
  CHECK(std::abs(llama_logits(read).back() - wanted.back()) > 1e-5);
}

TEST_CASE("llama: what GGUF's llama does not have is refused by its setting") {
  const ImportedModel taken = llama_model(GgufFile::parse(llama_file(), "m.gguf"));
  const SafeTensors weights = SafeTensors::parse(taken.weights, "model.safetensors");
  const auto refused = [&](const std::string& reason, const std::string& attention, auto&& change) {
    ExportedModel model{.name = "m",
                        .config = small_llama(),
                        .attention = attention,
                        .weights = weights,
                        .tokenizer = *taken.tokenizer};
    change(model.config);
    INFO(reason);
    CHECK(fault_of([&] { encode_llama(model); }) == Fault::usage);
    CHECK_THROWS_WITH(encode_llama(model), containing(reason));
  };
  const auto same = [](TransformerConfig&) {};
  refused("attention.decoder = softmax (linear and fastmax: --as huggingface --code), not fastmax", "fastmax",
          same);
  const auto letters = make_byte_tokenizer();
  const ExportedModel other{.name = "m",
                            .config = small_llama(),
                            .attention = "softmax",
                            .weights = weights,
                            .tokenizer = *letters};
  CHECK_THROWS_WITH(encode_llama(other), containing("data.tokenizer = byte_pair"));
  refused("model.activation = swiglu", "softmax", [](auto& c) { c.activation = Activation::gelu; });
  refused("model.norm_scale = rms", "softmax", [](auto& c) { c.norm_scale = kernel::NormScale::variance; });
  refused("model.norm = pre", "softmax", [](auto& c) { c.norm = NormPlace::post; });
  refused("model.position = rope", "softmax", [](auto& c) { c.position = PositionKind::learned; });
  refused("model.attention_bias = false", "softmax", [](auto& c) { c.attention_bias = true; });
  refused("model.feed_forward_bias = false", "softmax", [](auto& c) { c.feed_forward_bias = true; });
  refused("model.scale_embedding = false", "softmax", [](auto& c) { c.scale_embedding = true; });
  refused("model.short_convolution = 0", "softmax", [](auto& c) { c.short_convolution = 3; });
  refused("model.qk_norm = none", "softmax", [](auto& c) { c.modifiers.softcap = 30; });
}

TEST_CASE("llama: what cannot be read is refused by its key or tensor") {
  Rng rng(1);
  DecoderOnly model(small_llama(), static_cast<int64_t>(llama_tokens().size()), attention_factory("softmax"),
                    rng);
  const auto with = [&](auto&& change) {
    GgufBytes file = llama_metadata();
    change(file);
    add_llama_tensors(file, model);
    return file;
  };
  check_llama_refused(with([](GgufBytes& g) { g.floats("blk.0.attn_q.bias", {16}, std::vector<float>(16)); }),
                      "tensor blk.0.attn_q.bias is none of a LLaMA without biases");
  check_llama_refused(with([](GgufBytes& g) { g.word("llama.rope.scaling.type", "yarn"); }),
                      "llama.rope.scaling.type is \"yarn\", and only \"none\" can be read");
  check_llama_refused(with([](GgufBytes& g) { g.whole("llama.attention.key_length", 8); }),
                      "llama.rope.dimension_count is 4, and only 8 can be read");
  check_llama_refused(with([](GgufBytes& g) { g.whole("llama.expert_count", 8); }),
                      "llama.expert_count is 8");
  GgufBytes many;
  many.word("general.architecture", "llama")
      .whole("llama.block_count", 1 << 24)
      .whole("llama.embedding_length", 16);
  many.whole("llama.feed_forward_length", 24).whole("llama.attention.head_count", 4);
  many.whole("llama.context_length", 24).floats("token_embd.weight", {31, 16}, std::vector<float>(31 * 16));
  check_llama_refused(many, "llama.block_count is 16777216, and a file has at most 32768 tensors");
  check_llama_refused(llama_metadata(), "there is no table token_embd.weight");
  GgufBytes part = llama_metadata();
  part.floats("token_embd.weight", {31, 16}, std::vector<float>(31 * 16));
  check_llama_refused(part, "tensor output_norm.weight is missing");
  part.floats("output_norm.weight", {8}, std::vector<float>(8));
  check_llama_refused(part, "tensor output_norm.weight has shape [8], and the model's settings give [16]");
  GgufBytes fewer = llama_metadata();
  fewer.floats("token_embd.weight", {30, 16}, std::vector<float>(30 * 16));
  check_llama_refused(fewer, "its tokenizer has 31 tokens, and token_embd.weight 30 rows");
  GgufBytes other;
  other.word("general.architecture", "falcon");
  check_llama_refused(other, "general.architecture is \"falcon\", and only \"llama\" can be read");
}

TEST_CASE("llama: five thousand damaged files are converted or refused, nothing else") {
  const std::string good = llama_file();
  const auto header = static_cast<int64_t>(good.find("token_embd.weight")) + 2000;  // numbers follow
  Rng rng(1);
  int64_t refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string bytes = good;
    for (int64_t changes = 1 + rng.below(3); changes > 0; --changes)
      bytes[static_cast<size_t>(rng.below(header))] = static_cast<char>(rng.below(256));
    try {
      (void)llama_model(GgufFile::parse(bytes, "m.gguf"));
    } catch (const Error& error) {
      ++refused;
      if (error.fault() != Fault::data && error.fault() != Fault::numeric) FAIL_CHECK(error.what());
    }
  }
  CHECK(refused > 1000);
}

}  // namespace heed

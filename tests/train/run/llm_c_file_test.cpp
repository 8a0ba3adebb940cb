// tests train/run/llm_c_file.h
#include "heed/train/run/llm_c_file.h"

#include "heed/data/tokenizers/id_tokenizer.h"
#include "heed/tests/train/damaged_model_files.h"
#include "heed/tests/train/llm_c_bytes.h"

namespace heed {
namespace {

void read_as_llm_c(const std::string& bytes) { (void)read_llm_c(bytes, "m.bin"); }

}  // namespace

TEST_CASE("llm.c: the logits of a model that was written and read are its own, bit for bit") {
  DecoderOnly model = random_model(small_llm_c(), llm_c_tokens, 1);
  const ImportedModel read = read_llm_c(llm_c_bytes(model).bytes, "m.bin");
  CHECK(logits_with(small_llm_c(), llm_c_tokens, read.weights) == some_logits(model));
  CHECK(read.vocabulary == llm_c_tokens);
  CHECK(read.tokenizer == nullptr);
  CHECK(setting_of(read.settings, "model.d_ff") == "64");
  CHECK(setting_of(read.settings, "model.max_length") == "24");
  CHECK(setting_of(read.settings, "model.activation") == "gelu_tanh");
}

TEST_CASE("llm.c: weights in bf16 are the upper halves of those in f32") {
  DecoderOnly model = random_model(small_llm_c(), llm_c_tokens, 1);
  std::string upper = llm_c_bytes(model).bytes;
  for (size_t at = 1024; at < upper.size(); at += 4) upper[at] = upper[at + 1] = '\0';
  const std::string halves = read_llm_c(llm_c_bytes(model, true).bytes, "m.bin").weights;
  CHECK(halves == read_llm_c(upper, "m.bin").weights);
  CHECK(halves != read_llm_c(llm_c_bytes(model).bytes, "m.bin").weights);
}

TEST_CASE("llm.c: a model that was read is written as the same bytes") {
  DecoderOnly model = random_model(small_llm_c(), llm_c_tokens, 1);
  const std::string bytes = llm_c_bytes(model).bytes;
  const ImportedModel read = read_llm_c(bytes, "m.bin");
  const SafeTensors weights = SafeTensors::parse(read.weights, "model.safetensors");
  const auto ids = make_id_tokenizer(llm_c_tokens);
  ExportedModel exported{.name = "again",
                         .config = small_llm_c(),
                         .attention = "softmax",
                         .weights = weights,
                         .tokenizer = *ids};
  CHECK(encode_llm_c(exported) == bytes);
  const auto refused = [&](const std::string& reason, auto&& change) {
    exported.config = small_llm_c();
    change(exported.config);
    INFO(reason);
    CHECK(fault_of([&] { encode_llm_c(exported); }) == Fault::usage);
    CHECK_THROWS_WITH(encode_llm_c(exported), containing("an llm.c checkpoint needs " + reason));
  };
  refused("model.activation = gelu_tanh", [](auto& c) { c.activation = Activation::gelu; });
  refused("model.d_ff = 64", [](auto& c) { c.d_ff = 40; });
  refused("model.norm_epsilon = 1e-5", [](auto& c) { c.norm_epsilon = 1e-6; });
  refused("model.tie_embeddings = output", [](auto& c) { c.tie_embeddings = Tie::none; });
  refused("model.norm_bias = true", [](auto& c) { c.norm_bias = false; });
  refused("model.position = learned", [](auto& c) { c.position = PositionKind::rope; });
}

TEST_CASE("llm.c: what is cut short or lies about its sizes is refused with the place") {
  DecoderOnly model = random_model(small_llm_c(), llm_c_tokens, 1);
  const NumberBytes good = llm_c_bytes(model);
  for (size_t size = 0; size < good.bytes.size(); size += 4) {
    if (fault_of([&] { read_as_llm_c(good.bytes.substr(0, size)); }) != Fault::data) FAIL_CHECK(size);
  }
  const auto with = [&](size_t at, int32_t value) { return NumberBytes(good).set(at, value).bytes; };
  check_file_refused(good.bytes.substr(0, 9), read_as_llm_c,
                     "it ends before max_seq_len of its header (at byte 8)");
  check_file_refused(good.bytes.substr(0, 900), read_as_llm_c, "its header has 1024 bytes");
  check_file_refused(with(0, 20240803), read_as_llm_c, "its mark is 20240803; it must be 20240326");
  check_file_refused(with(4, 1), read_as_llm_c, "version is 1; 3 (f32) and 5 (bf16) can be read (at byte 4)");
  check_file_refused(with(4, 5), read_as_llm_c, "bytes follow its last tensor");
  check_file_refused(with(8, 0), read_as_llm_c, "max_seq_len is 0; it must be 1 to 16777216 (at byte 8)");
  check_file_refused(with(12, -1), read_as_llm_c, "vocab_size is -1");
  check_file_refused(with(16, 1 << 24), read_as_llm_c, "num_layers is 16777216; a file of ");
  check_file_refused(with(16, 3), read_as_llm_c,
                     "tensor h.1.mlp.c_fc.bias has 256 bytes by the header's sizes, and 0 follow");
  check_file_refused(with(20, 3), read_as_llm_c, "num_heads is 3; it must divide channels, 16");
  check_file_refused(with(24, 1 << 24), read_as_llm_c, "tensor wte.weight has 1409286144 bytes");
  check_file_refused(with(28, 20), read_as_llm_c, "padded_vocab_size is 20, less than vocab_size, 21");
  check_file_refused(good.bytes + "1234", read_as_llm_c, "4 bytes follow its last tensor");
  CHECK(fault_of([&] { read_as_llm_c(with(1024 + 40, 0x7fc00000)); }) == Fault::numeric);
  CHECK_THROWS_WITH(read_as_llm_c(with(1024 + 40, 0x7fc00000)),
                    containing("m.bin: tensor wte.weight is not finite at number 10"));
}

TEST_CASE("llm.c: five thousand damaged files are read or refused, nothing else") {
  DecoderOnly model = random_model(small_llm_c(), llm_c_tokens, 1);
  CHECK(refused_damages(llm_c_bytes(model).bytes, 40, read_as_llm_c) > 4000);
}

}  // namespace heed

// tests train/run/llama2_c_file.h
#include "heed/train/run/llama2_c_file.h"

#include "heed/tests/train/damaged_model_files.h"
#include "heed/tests/train/llama2_c_bytes.h"

namespace heed {
namespace {

void read_as_llama2_c(const std::string& bytes) { (void)read_llama2_c(bytes, "m.bin"); }

}  // namespace

TEST_CASE("llama2.c: the logits of a model that was written and read are its own, bit for bit") {
  for (const Tie tie : {Tie::output, Tie::none}) {
    for (const int version : {0, 1}) {
      CAPTURE(version);
      const TransformerConfig config = small_llama2_c(tie);
      DecoderOnly model = random_model(config, llama2_c_tokens, 1);
      const ImportedModel read = read_llama2_c(llama2_c_bytes(model, version).bytes, "m.bin");
      CHECK(logits_with(config, llama2_c_tokens, read.weights) == some_logits(model));
      CHECK(read.vocabulary == llama2_c_tokens);
      CHECK(setting_of(read.settings, "model.tie_embeddings") == (tie == Tie::none ? "none" : "output"));
      CHECK(setting_of(read.settings, "model.position") == "rope_interleaved");
      CHECK(setting_of(read.settings, "model.position_base") == "10000");
      CHECK(setting_of(read.settings, "model.kv_heads") == "2");
    }
  }
}

TEST_CASE("llama2.c: what is cut short or lies about its sizes is refused with the place") {
  DecoderOnly model = random_model(small_llama2_c(Tie::none), llama2_c_tokens, 1);
  for (const int version : {0, 1}) {
    CAPTURE(version);
    const NumberBytes good = llama2_c_bytes(model, version);
    for (size_t size = 0; size < good.bytes.size(); size += 4) {
      if (fault_of([&] { read_as_llama2_c(good.bytes.substr(0, size)); }) != Fault::data) FAIL_CHECK(size);
    }
    const size_t first = version == 1 ? 8 : 0;
    const auto with = [&](size_t at, int32_t value) {
      return NumberBytes(good).set(first + at, value).bytes;
    };
    check_file_refused(with(8, 1 << 24), read_as_llama2_c, "n_layers is 16777216; a file of ");
    check_file_refused(with(8, 3), read_as_llama2_c, "it is cut short, or its sizes are wrong");
    check_file_refused(with(12, 16), read_as_llama2_c, "n_heads is 16; dim, 16, must be a multiple of twice");
    check_file_refused(with(16, 3), read_as_llama2_c, "n_kv_heads is 3; it must divide n_heads, 4");
    if (version == 0)
      check_file_refused(with(24, 1 << 24), read_as_llama2_c, "tensor freqs_cos has 134217728 bytes");
    check_file_refused(good.bytes + "1234", read_as_llama2_c, "4 bytes follow its last tensor");
  }
  const NumberBytes marked = llama2_c_bytes(model, 1);
  check_file_refused(NumberBytes(marked).set(4, 2).bytes, read_as_llama2_c, "and 2 has int8 weights");
  check_file_refused(NumberBytes(marked).set(8, 0).bytes, read_as_llama2_c, "dim is 0; it must be 1 to");
  check_file_refused(NumberBytes(marked).set(36, 7).bytes, read_as_llama2_c,
                     "shared_classifier is 7; it must be 0 or 1 (at byte 36)");
  check_file_refused("the moon and the sea", read_as_llama2_c, "its mark is ");
  NumberBytes nan = llama2_c_bytes(model, 0);
  CHECK(fault_of([&] { read_as_llama2_c(nan.set(28 + 8, 0x7f800000).bytes); }) == Fault::numeric);
}

TEST_CASE("llama2.c: five thousand damaged files of each version are read or refused, nothing else") {
  DecoderOnly model = random_model(small_llama2_c(), llama2_c_tokens, 1);
  for (const int version : {0, 1})
    CHECK(refused_damages(llama2_c_bytes(model, version).bytes, 40, read_as_llama2_c) > 3000);
}

}  // namespace heed

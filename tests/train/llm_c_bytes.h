// Checkpoints of llm.c, written as its train_gpt2.py writes them.
#pragma once

#include "heed/tests/train/gpt2_folder.h"
#include "heed/tests/train/model_numbers.h"

namespace heed {

inline constexpr int64_t llm_c_tokens = 21;  ///< tokens of the models here

/// Settings of a small GPT-2 of llm.c.
inline TransformerConfig small_llm_c() {
  TransformerConfig config = small_gpt2();
  config.d_ff = 4 * config.d_model;
  return config;
}

/// The bytes of a checkpoint, in f32 or bf16. Embeddings have a multiple of 128 rows; the last ones are 0.
inline NumberBytes llm_c_bytes(DecoderOnly& model, bool is_bf16 = false) {
  const auto numbers = numbers_of(model);
  const TransformerConfig config = small_llm_c();
  std::vector<float> table = numbers.at("embedder.tokens.weight");
  const int64_t vocabulary = static_cast<int64_t>(table.size()) / config.d_model;
  const int64_t padded = (vocabulary + 127) / 128 * 128;
  std::vector<int32_t> header(256);
  const std::vector<int32_t> begin{20240326,
                                   is_bf16 ? 5 : 3,
                                   static_cast<int32_t>(config.max_length),
                                   static_cast<int32_t>(vocabulary),
                                   static_cast<int32_t>(config.layers),
                                   static_cast<int32_t>(config.heads),
                                   static_cast<int32_t>(config.d_model),
                                   static_cast<int32_t>(padded)};
  std::copy(begin.begin(), begin.end(), header.begin());
  NumberBytes out;
  out.integers(header);
  const auto put = [&](const std::vector<float>& values) {
    is_bf16 ? out.halves(values) : out.floats(values);
  };
  const auto of_layers = [&](const std::vector<std::string>& names) {
    for (int64_t layer = 0; layer < config.layers; ++layer) {
      for (const std::string& name : names) put(numbers.at(text("decoder.blocks.", layer, ".", name)));
    }
  };
  table.resize(static_cast<size_t>(padded * config.d_model));
  put(table);
  put(numbers.at("embedder.position.table"));
  of_layers({"attention_norm.gain"});
  of_layers({"attention_norm.bias"});
  of_layers({"attention.query.weight", "attention.key.weight", "attention.value.weight"});
  of_layers({"attention.query.bias", "attention.key.bias", "attention.value.bias"});
  of_layers({"attention.output.weight"});
  of_layers({"attention.output.bias"});
  of_layers({"forward_norm.gain"});
  of_layers({"forward_norm.bias"});
  of_layers({"feed_forward.up.weight"});
  of_layers({"feed_forward.up.bias"});
  of_layers({"feed_forward.down.weight"});
  of_layers({"feed_forward.down.bias"});
  put(numbers.at("decoder.norm.gain"));
  put(numbers.at("decoder.norm.bias"));
  return out;
}

}  // namespace heed

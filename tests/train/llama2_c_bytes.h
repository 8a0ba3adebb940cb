// Checkpoints of llama2.c, written as its export.py writes them.
#pragma once

#include "heed/tests/train/llama_file.h"
#include "heed/tests/train/model_numbers.h"

namespace heed {

inline constexpr int64_t llama2_c_tokens = 23;  ///< tokens of the models here

/// Settings of a small LLaMA of llama2.c: its base of positions is 10000.
inline TransformerConfig small_llama2_c(Tie tie = Tie::output) {
  TransformerConfig config = small_llama(tie);
  config.modifiers.position_base = 10000;
  return config;
}

/// The bytes of a checkpoint of version 0 or 1.
inline NumberBytes llama2_c_bytes(DecoderOnly& model, int version) {
  const auto numbers = numbers_of(model);
  const bool tied = !numbers.contains("output.weight");
  const TransformerConfig config = small_llama2_c();
  const auto tokens = static_cast<int32_t>(llama2_c_tokens);
  NumberBytes out;
  if (version == 1) out.integers({0x616b3432, 1});
  out.integers({static_cast<int32_t>(config.d_model), static_cast<int32_t>(config.d_ff),
                static_cast<int32_t>(config.layers), static_cast<int32_t>(config.heads),
                static_cast<int32_t>(config.kv_heads), version == 0 && !tied ? -tokens : tokens,
                static_cast<int32_t>(config.max_length)});
  if (version == 1) {
    out.bytes += static_cast<char>(tied ? 1 : 0);
    out.bytes.resize(256);
  }
  const auto of_layers = [&](const std::string& name) {
    for (int64_t layer = 0; layer < config.layers; ++layer)
      out.floats(numbers.at(text("decoder.blocks.", layer, ".", name)));
  };
  if (version == 0) out.floats(numbers.at("embedder.tokens.weight"));
  of_layers("attention_norm.gain");
  if (version == 1) {
    of_layers("forward_norm.gain");
    out.floats(numbers.at("decoder.norm.gain")).floats(numbers.at("embedder.tokens.weight"));
  }
  for (const char* name : {"query", "key", "value", "output"}) of_layers(text("attention.", name, ".weight"));
  if (version == 0) of_layers("forward_norm.gain");
  for (const char* name : {"gate", "down", "up"}) of_layers(text("feed_forward.", name, ".weight"));
  if (version == 0) {
    out.floats(numbers.at("decoder.norm.gain"));
    const auto pairs = static_cast<size_t>(config.max_length * config.d_model / config.heads / 2);
    out.floats(std::vector<float>(2 * pairs, 0.25F));  // angles, which follow from the base
  }
  if (!tied) out.floats(numbers.at("output.weight"));
  return out;
}

}  // namespace heed

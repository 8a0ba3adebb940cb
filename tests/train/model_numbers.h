// Models with random weights whose numbers tests write into the files of other programs.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "heed/attention/variant.h"
#include "heed/core/random.h"
#include "heed/nn/transformer.h"

namespace heed {

/// A model whose norms and biases can be told apart, too.
inline DecoderOnly random_model(const TransformerConfig& config, int64_t vocabulary, uint64_t seed) {
  Rng rng(seed);
  DecoderOnly model(config, vocabulary, attention_factory("softmax"), rng);
  const NoGrad no_grad;
  visit_tensors(model, [&](const std::string& name, Tensor& x) {
    if (name.ends_with("bias") || name.ends_with("gain")) fill_uniform(x.detach(), 0.5, 1.5, rng);
  });
  return model;
}

/// The numbers of all tensors, by name.
inline std::map<std::string, std::vector<float>> numbers_of(DecoderOnly& model) {
  std::map<std::string, std::vector<float>> out;
  for (const Named& named : tensors(model)) out[named.name] = named.tensor->to_host();
  return out;
}

/// Logits of six tokens below 11.
inline std::vector<float> some_logits(const DecoderOnly& model) {
  const NoGrad no_grad;
  return model(Tensor::of<int32_t>(std::vector<int32_t>{1, 10, 3, 0, 7, 7}, Shape{2, 3}), {}).to_host();
}

/// The logits of a model of these settings with the weights of a safetensors file.
inline std::vector<float> logits_with(const TransformerConfig& config, int64_t vocabulary,
                                      const std::string& weights) {
  Rng rng(9);
  DecoderOnly model(config, vocabulary, attention_factory("softmax"), rng);
  load_bytes(model, weights);
  return some_logits(model);
}

/// Bytes in the making, little-endian.
struct NumberBytes {
  std::string bytes;

  NumberBytes& integers(const std::vector<int32_t>& values) {
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int32_t));
    return *this;
  }
  NumberBytes& floats(const std::vector<float>& values) {
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    return *this;
  }
  /// The upper halves of the numbers: bf16.
  NumberBytes& halves(const std::vector<float>& values) {
    for (const float& value : values) bytes.append(reinterpret_cast<const char*>(&value) + 2, 2);
    return *this;
  }
  /// Changes the integer at this byte.
  NumberBytes& set(size_t at, int32_t value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
    return *this;
  }
};

/// The value of a setting of an imported model; empty where it is not set.
inline std::string setting_of(const std::vector<std::pair<std::string, std::string>>& settings,
                              const std::string& key) {
  for (const auto& [name, value] : settings) {
    if (name == key) return value;
  }
  return "";
}

}  // namespace heed

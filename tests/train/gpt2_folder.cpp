// Writes a GPT-2 as Transformers would.
#include "heed/tests/train/gpt2_folder.h"

#include <map>

#include "heed/attention/variant.h"
#include "heed/core/io/files.h"
#include "heed/core/io/safetensors.h"
#include "heed/data/synthetic/language_model_text.h"
#include "heed/data/tokenizers/byte_pair.h"

namespace heed {
namespace {

constexpr int64_t width = 16, hidden = 40, positions = 24, layers = 2;

/// Named numbers on their way into a file.
class Gpt2Writer {
 public:
  explicit Gpt2Writer(DecoderOnly& model) {
    for (const Named& named : tensors(model)) numbers_[named.name] = *named.tensor;
  }
  bool has(const std::string& name) const { return numbers_.contains(name); }
  void copy(const std::string& from, const std::string& to) { made_.emplace_back(to, numbers_.at(from)); }
  void matrix(const std::string& from, const std::string& to) {
    made_.emplace_back(to, contiguous(transpose(numbers_.at(from), 0, 1)));
  }
  void qkv(const std::string& from, const std::string& to) {
    std::vector<Tensor> weights, biases;
    for (const char* part : {"query", "key", "value"}) {
      weights.push_back(numbers_.at(from + "." + part + ".weight"));
      biases.push_back(numbers_.at(from + "." + part + ".bias"));
    }
    made_.emplace_back(to + ".weight", contiguous(transpose(concat(weights, 0), 0, 1)));
    made_.emplace_back(to + ".bias", concat(biases, 0));
  }
  void norm(const std::string& from, const std::string& to) {
    copy(from + ".gain", to + ".weight");
    copy(from + ".bias", to + ".bias");
  }
  void add(const std::string& name, const Tensor& x) { made_.emplace_back(name, x); }
  std::string encode() const {
    std::vector<TensorBytes> list;
    for (const auto& [name, x] : made_) {
      list.push_back({name, to_string(x.dtype()), std::vector<int64_t>(x.shape().begin(), x.shape().end()),
                      std::span(static_cast<const std::byte*>(x.raw()), static_cast<size_t>(x.bytes()))});
    }
    return encode_safetensors(list);
  }

 private:
  std::map<std::string, Tensor> numbers_;
  std::vector<std::pair<std::string, Tensor>> made_;
};

}  // namespace

TransformerConfig small_gpt2(Tie tie) {
  return {.d_model = width,
          .heads = 2,
          .d_ff = hidden,
          .layers = layers,
          .max_length = positions,
          .dropout = 0,
          .activation = Activation::gelu_tanh,
          .position = PositionKind::learned,
          .tie_embeddings = tie,
          .scale_embedding = false,
          .embedding_std = 0.5,
          .position_deviation = 0.5,
          .attention_bias = true,
          .output_bias = false};
}

Json gpt2_json(int64_t vocabulary) {
  return Json::object({{"model_type", "gpt2"},
                       {"activation_function", "gelu_new"},
                       {"vocab_size", vocabulary},
                       {"n_positions", positions},
                       {"n_embd", width},
                       {"n_layer", layers},
                       {"n_head", 2},
                       {"n_inner", hidden},
                       {"layer_norm_epsilon", 1e-5},
                       {"resid_pdrop", 0.1},
                       {"attn_pdrop", 0.1},
                       {"scale_attn_weights", true},
                       {"initializer_range", 0.02}});
}

std::string gpt2_file(DecoderOnly& model, const std::string& prefix, bool twice) {
  const NoGrad no_grad;
  Rng rng(5);
  visit_tensors(model, [&](const std::string& name, Tensor& x) {  // norms and biases that can be told apart
    if (name.ends_with("bias") || name.ends_with("gain")) fill_uniform(x.detach(), 0.5, 1.5, rng);
  });
  Gpt2Writer file(model);
  file.copy("embedder.tokens.weight", prefix + "wte.weight");
  file.copy("embedder.position.table", prefix + "wpe.weight");
  for (int64_t layer = 0; layer < layers; ++layer) {
    const std::string from = text("decoder.blocks.", layer, "."), to = text(prefix, "h.", layer, ".");
    file.norm(from + "attention_norm", to + "ln_1");
    file.norm(from + "forward_norm", to + "ln_2");
    file.qkv(from + "attention", to + "attn.c_attn");
    for (const auto& [ours, theirs] :
         {std::pair{"attention.output", "attn.c_proj"}, std::pair{"feed_forward.up", "mlp.c_fc"},
          std::pair{"feed_forward.down", "mlp.c_proj"}}) {
      file.matrix(from + ours + ".weight", to + theirs + ".weight");
      file.copy(from + ours + ".bias", to + theirs + ".bias");
    }
    file.add(to + "attn.bias", Tensor::zeros(Shape{1, 1, positions, positions}));  // the mask of older files
  }
  file.norm("decoder.norm", prefix + "ln_f");
  if (file.has("output.weight")) file.copy("output.weight", "lm_head.weight");
  if (twice) file.copy("embedder.tokens.weight", "lm_head.weight");
  return file.encode();
}

DecoderOnly write_gpt2_folder(const Path& folder) {
  const auto tokenizer = train_byte_pair(verse(20000, 1), {.size = 300});
  const BytePairFiles files = byte_pair_files(*tokenizer);
  Rng rng(3);
  DecoderOnly model(small_gpt2(), tokenizer->size(), attention_factory("softmax"), rng);
  io::make_directories(folder);
  io::write(folder / "config.json", gpt2_json(tokenizer->size()).dump(1));
  io::write(folder / "model.safetensors", gpt2_file(model));
  io::write(folder / "vocab.json", files.vocabulary);
  io::write(folder / "merges.txt", files.merges);
  return model;
}

}  // namespace heed

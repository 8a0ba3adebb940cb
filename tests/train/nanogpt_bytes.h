// Checkpoints of nanoGPT, written as its train.py and torch.save write them.
#pragma once

#include <functional>

#include "heed/core/io/pickle.h"
#include "heed/data/formats/zip.h"
#include "heed/tests/train/gpt2_folder.h"
#include "heed/tests/train/model_numbers.h"

namespace heed {

inline constexpr int64_t nanogpt_tokens = 19;  ///< tokens of the models here

/// Settings of a small GPT-2 of nanoGPT, with or without biases.
inline TransformerConfig small_nanogpt(bool has_biases = true) {
  TransformerConfig config = small_gpt2();
  config.d_ff = 4 * config.d_model;
  config.activation = Activation::gelu;
  config.attention_bias = config.feed_forward_bias = config.norm_bias = has_biases;
  return config;
}

/// A tensor of a state_dict in the making; a test changes one to make it lie.
struct SavedTensor {
  std::string name;
  std::vector<int64_t> shape, strides;
  std::string key;  ///< key of its storage
  int64_t count;    ///< numbers of its storage
  int64_t offset = 0;
  std::string storage = "FloatStorage";
  bool is_parameter = false;  ///< whether it is saved as a parameter, not as the tensor alone
};

/// A checkpoint in the making.
struct NanogptBytes {
  std::vector<SavedTensor> tensors;
  std::map<std::string, std::string> storages;  ///< bytes by key
  std::vector<std::pair<std::string, int64_t>> counts{
      {"n_layer", 2}, {"n_head", 2}, {"n_embd", 16}, {"block_size", 24}, {"vocab_size", 19}};
  bool has_biases = true;
  std::string prefix;  ///< before each name: "_orig_mod."

  /// The tensors of a model of small_nanogpt().
  explicit NanogptBytes(DecoderOnly& model) {
    const auto numbers = numbers_of(model);
    has_biases = numbers.contains("decoder.norm.bias");
    const auto add = [&](const std::string& name, const std::vector<std::string>& parts,
                         std::vector<int64_t> shape) {
      std::vector<float> all;
      for (const std::string& part : parts)
        all.insert(all.end(), numbers.at(part).begin(), numbers.at(part).end());
      const std::string key = text(storages.size());
      storages[key] = NumberBytes().floats(all).bytes;
      const std::vector<int64_t> strides =
          shape.size() == 2 ? std::vector<int64_t>{shape[1], 1} : std::vector<int64_t>{1};
      tensors.push_back({name, shape, strides, key, static_cast<int64_t>(all.size())});
    };
    const auto layer_of = [&](const std::string& name, const std::vector<std::string>& parts, int64_t out,
                              int64_t in, const char* weight) {
      std::vector<std::string> weights, biases;
      for (const std::string& part : parts) {
        weights.push_back(part + weight);
        biases.push_back(part + ".bias");
      }
      add(name + ".weight", weights, in > 0 ? std::vector<int64_t>{out, in} : std::vector<int64_t>{out});
      if (has_biases) add(name + ".bias", biases, {out});
    };
    add("transformer.wte.weight", {"embedder.tokens.weight"}, {nanogpt_tokens, 16});
    add("transformer.wpe.weight", {"embedder.position.table"}, {24, 16});
    for (int64_t layer = 0; layer < 2; ++layer) {
      const std::string to = text("transformer.h.", layer, "."), from = text("decoder.blocks.", layer, ".");
      layer_of(to + "ln_1", {from + "attention_norm"}, 16, 0, ".gain");
      layer_of(to + "attn.c_attn",
               {from + "attention.query", from + "attention.key", from + "attention.value"}, 48, 16,
               ".weight");
      layer_of(to + "attn.c_proj", {from + "attention.output"}, 16, 16, ".weight");
      layer_of(to + "ln_2", {from + "forward_norm"}, 16, 0, ".gain");
      layer_of(to + "mlp.c_fc", {from + "feed_forward.up"}, 64, 16, ".weight");
      layer_of(to + "mlp.c_proj", {from + "feed_forward.down"}, 16, 64, ".weight");
    }
    layer_of("transformer.ln_f", {"decoder.norm"}, 16, 0, ".gain");
    tensors.push_back(tensors[0]);
    tensors.back().name = "lm_head.weight";
  }

  /// data.pkl. `more` adds members of the checkpoint, `more_arguments` members of model_args.
  std::string pickle(const std::function<void(PickleWriter&)>& more = {},
                     const std::function<void(PickleWriter&)>& more_arguments = {}) const {
    PickleWriter out;
    out.dict().text("model").global("collections", "OrderedDict").begin_tuple().end_tuple().call();
    for (const SavedTensor& one : tensors) {
      out.text(prefix + one.name);
      put(out, one);
      out.set();
    }
    out.set().text("model_args").dict();
    for (const auto& [key, value] : counts) out.text(key).integer(value).set();
    out.text("bias").boolean(has_biases).set().text("dropout").real(0.25).set();
    if (more_arguments) more_arguments(out);
    out.set();
    if (more) more(out);
    return out.finish();
  }
  /// Writes a tensor as torch.save does.
  static void put(PickleWriter& out, const SavedTensor& one) {
    if (one.is_parameter) out.global("torch._utils", "_rebuild_parameter").begin_tuple();
    out.global("torch._utils", "_rebuild_tensor_v2").begin_tuple().begin_tuple().text("storage");
    out.global("torch", one.storage).text(one.key).text("cuda:0").integer(one.count).end_tuple().persistent();
    out.integer(one.offset).begin_tuple();
    for (const int64_t extent : one.shape) out.integer(extent);
    out.end_tuple().begin_tuple();
    for (const int64_t stride : one.strides) out.integer(stride);
    out.end_tuple().boolean(false).global("collections", "OrderedDict").begin_tuple().end_tuple().call();
    out.end_tuple().call();
    if (!one.is_parameter) return;
    out.boolean(true).global("collections", "OrderedDict").begin_tuple().end_tuple().call();
    out.end_tuple().call();
  }
  /// The archive with this data.pkl, or pickle().
  std::string bytes(const std::string& given = "") const {
    const std::string main = given.empty() ? pickle() : given;
    std::vector<StoredEntry> entries{{"ckpt/data.pkl", main}, {"ckpt/byteorder", "little"}};
    for (const auto& [key, content] : storages) entries.push_back({"ckpt/data/" + key, content});
    entries.push_back({"ckpt/version", "3\n"});
    return stored_zip(entries);
  }
};

}  // namespace heed

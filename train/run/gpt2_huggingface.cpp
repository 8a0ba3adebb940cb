// The table of GPT-2's layers, by which its tensors are renamed, transposed, split and joined.
#include "heed/train/run/gpt2_huggingface.h"

#include <list>

#include "heed/train/run/model_settings.h"
#include "heed/train/run/tensor_conversion.h"

namespace heed {
namespace {

/// A part of the model by its names there and here.
struct Gpt2Part {
  std::string gpt2, heed;
};

/// A linear layer. GPT-2 stores its weight as [in, out], Heed as [out, in].
struct Gpt2Linear {
  std::string gpt2, heed;
  int64_t in, out;
};

/// The norms of a model, behind "transformer." there.
std::vector<Gpt2Part> norms_of(const Gpt2Config& config) {
  std::vector<Gpt2Part> out{{"ln_f", "decoder.norm"}};
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string gpt2 = text("h.", layer, "."), heed = text("decoder.blocks.", layer, ".");
    out.push_back({gpt2 + "ln_1", heed + "attention_norm"});
    out.push_back({gpt2 + "ln_2", heed + "forward_norm"});
  }
  return out;
}

/// The linear layers that are one layer in both.
std::vector<Gpt2Linear> linears_of(const Gpt2Config& config) {
  const int64_t width = config.width, hidden = config.hidden;
  std::vector<Gpt2Linear> out;
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string gpt2 = text("h.", layer, "."), heed = text("decoder.blocks.", layer, ".");
    out.push_back({gpt2 + "attn.c_proj", heed + "attention.output", width, width});
    out.push_back({gpt2 + "mlp.c_fc", heed + "feed_forward.up", width, hidden});
    out.push_back({gpt2 + "mlp.c_proj", heed + "feed_forward.down", hidden, width});
  }
  return out;
}

/// The layers that are query, key and value in one there, and three here.
std::vector<Gpt2Part> joint_layers_of(const Gpt2Config& config) {
  std::vector<Gpt2Part> out;
  for (int64_t layer = 0; layer < config.layers; ++layer)
    out.push_back({text("h.", layer, ".attn.c_attn"), text("decoder.blocks.", layer, ".attention.")});
  return out;
}

constexpr const char* projections[] = {"query", "key", "value"};
constexpr std::string_view optional_prefix = "transformer.";

/// Part `index` of a tensor that is split along its first axis into parts of `extent`.
FloatTensor part_of(const FloatTensor& x, int64_t index, int64_t extent) {
  const int64_t part_size = extent * (static_cast<int64_t>(x.numbers.size()) / x.shape[0]);
  const auto begin = x.numbers.begin() + index * part_size;
  FloatTensor out{.shape = x.shape, .numbers = {begin, begin + part_size}};
  out.shape[0] = extent;
  return out;
}

/// Whether a tensor is the causal mask or the score of masked keys: constants that older files hold.
bool is_mask(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

}  // namespace

Gpt2Config parse_gpt2_config(const Json& json, const std::string& name) {
  const ModelSettings members(json, name);
  members.demand("model_type", "gpt2", "other models have other parts");
  members.demand("activation_function", "gelu_new", "the GELU by tanh is that of GPT-2");
  members.demand("scale_attn_weights", true, "scores are divided by the root of a head's width");
  members.demand("scale_attn_by_inverse_layer_idx", false, "all layers scale scores alike");
  members.demand("add_cross_attention", false, "a language model has no second input");
  Gpt2Config out{.vocabulary = members.count("vocab_size"),
                 .positions = members.count("n_positions"),
                 .width = members.count("n_embd"),
                 .layers = members.count("n_layer"),
                 .heads = members.count("n_head"),
                 .norm_epsilon = members.fraction("layer_norm_epsilon", 1e-5),
                 .dropout = members.fraction("resid_pdrop", 0.1),
                 .attention_dropout = members.fraction("attn_pdrop", 0.1)};
  out.hidden = members.count("n_inner", 4 * out.width);
  return out;
}

std::vector<std::pair<std::string, std::string>> gpt2_settings(const Gpt2Config& config, bool tied) {
  return {{"model.d_model", text(config.width)},
          {"model.heads", text(config.heads)},
          {"model.d_ff", text(config.hidden)},
          {"model.layers", text(config.layers)},
          {"model.max_length", text(config.positions)},
          {"model.dropout", text(config.dropout)},
          {"model.attention_dropout", text(config.attention_dropout)},
          {"model.activation", "gelu_tanh"},
          {"model.norm_epsilon", text(config.norm_epsilon)},
          {"model.tie_embeddings", tied ? "output" : "none"},
          {"model.attention_bias", "true"},
          {"model.feed_forward_bias", "true"},
          {"model.norm_bias", "true"},
          {"model.output_bias", "false"},
          {"data.tokenizer", "byte_pair"},
          {"train.batch_size", "4"},
          {"train.learning_rate", "5e-5"}};
}

Gpt2Weights gpt2_weights(const SafeTensors& file, const Gpt2Config& config) {
  TensorConversion conversion(file, "a GPT-2 of that config.json");
  conversion.leave_out(is_mask);
  std::string prefix;
  for (const TensorEntry& entry : file.entries()) {
    if (entry.name.starts_with(optional_prefix)) prefix = optional_prefix;
  }
  const int64_t width = config.width;
  FloatTensor embedding = conversion.take(prefix + "wte.weight", {config.vocabulary, width});
  Gpt2Weights out;
  if (conversion.has("lm_head.weight")) {
    FloatTensor head = conversion.take("lm_head.weight", embedding.shape);
    out.tied = head.numbers == embedding.numbers;
    if (!out.tied) conversion.put("output.weight", std::move(head));
  }
  conversion.put("embedder.tokens.weight", std::move(embedding));
  conversion.put("embedder.position.table",
                 conversion.take(prefix + "wpe.weight", {config.positions, width}));
  for (const auto& [gpt2, heed] : norms_of(config)) {
    conversion.put(heed + ".gain", conversion.take(prefix + gpt2 + ".weight", {width}));
    conversion.put(heed + ".bias", conversion.take(prefix + gpt2 + ".bias", {width}));
  }
  for (const auto& [gpt2, heed, in, count] : linears_of(config)) {
    conversion.put(heed + ".weight", transposed(conversion.take(prefix + gpt2 + ".weight", {in, count})));
    conversion.put(heed + ".bias", conversion.take(prefix + gpt2 + ".bias", {count}));
  }
  for (const auto& [gpt2, heed] : joint_layers_of(config)) {
    const FloatTensor weight = transposed(conversion.take(prefix + gpt2 + ".weight", {width, 3 * width}));
    const FloatTensor bias = conversion.take(prefix + gpt2 + ".bias", {3 * width});
    int64_t index = 0;
    for (const char* projection : projections) {
      conversion.put(heed + projection + ".weight", part_of(weight, index, width));
      conversion.put(heed + projection + ".bias", part_of(bias, index++, width));
    }
  }
  out.bytes = conversion.encode();
  return out;
}

namespace {

/// The sizes of a model that is written; fails for the first setting that GPT-2 does not have.
Gpt2Config sizes_of(const ExportedModel& model) {
  const TransformerConfig& config = model.config;
  const auto demand = [](bool holds, const std::string& setting) {
    demand_setting(holds, "a GPT-2", setting);
  };
  demand_shared_shape(model, "a GPT-2");
  demand(config.activation == Activation::gelu_tanh, "model.activation = gelu_tanh");
  demand(config.norm_scale == kernel::NormScale::variance, "model.norm_scale = variance");
  demand(config.norm_bias, "model.norm_bias = true");
  demand(config.position == PositionKind::learned, "model.position = learned");
  demand(static_cast<bool>(config.attention_bias), "model.attention_bias = true");
  demand(config.feed_forward_bias, "model.feed_forward_bias = true");
  demand(config.kv_heads == 0 || config.kv_heads == config.heads, "model.kv_heads = 0");
  demand(config.head_dim == 0 || config.head_dim * config.heads == config.d_model, "model.head_dim = 0");
  return {.vocabulary = model.tokenizer.size(),
          .positions = config.max_length,
          .width = config.d_model,
          .layers = config.layers,
          .heads = config.heads,
          .hidden = config.d_ff,
          .norm_epsilon = config.norm_epsilon,
          .dropout = config.dropout,
          .attention_dropout = config.dropout_of_weights()};
}

Json config_of(const Gpt2Config& sizes, const ExportedModel& model, bool tied) {
  Json out = Json::object({{"architectures", Json::List{"GPT2LMHeadModel"}},
                           {"model_type", "gpt2"},
                           {"activation_function", "gelu_new"},
                           {"vocab_size", sizes.vocabulary},
                           {"n_positions", sizes.positions},
                           {"n_embd", sizes.width},
                           {"n_layer", sizes.layers},
                           {"n_head", sizes.heads},
                           {"n_inner", sizes.hidden},
                           {"layer_norm_epsilon", sizes.norm_epsilon},
                           {"resid_pdrop", sizes.dropout},
                           {"embd_pdrop", model.config.dropout_of_embeddings()},
                           {"attn_pdrop", sizes.attention_dropout},
                           {"tie_word_embeddings", tied},
                           {"torch_dtype", "float32"}});
  const Json end = model.tokenizer.end() >= 0 ? Json(model.tokenizer.end()) : Json();
  return out.set("bos_token_id", end).set("eos_token_id", end);
}

/// The numbers of query, key and value one after the other.
FloatTensor joined(const ExportedModel& model, const std::string& prefix, const std::string& suffix,
                   const std::vector<int64_t>& shape) {
  FloatTensor out{.shape = shape, .numbers = {}};
  for (const char* projection : projections) {
    const std::vector<float> numbers = exported_numbers(model, prefix + projection + suffix, shape);
    out.numbers.insert(out.numbers.end(), numbers.begin(), numbers.end());
  }
  out.shape[0] *= 3;
  return out;
}

}  // namespace

Gpt2Files encode_gpt2(const ExportedModel& model) {
  const Gpt2Config sizes = sizes_of(model);
  const bool tied = model.config.tie_embeddings == Tie::output;
  std::list<std::pair<std::string, FloatTensor>> made;
  const auto put = [&](std::string name, FloatTensor tensor) {
    made.emplace_back(std::move(name), std::move(tensor));
  };
  const auto copy = [&](const std::string& heed, const std::string& name, const std::vector<int64_t>& shape) {
    put(name, {shape, exported_numbers(model, heed, shape)});
  };
  const std::string prefix(optional_prefix);
  copy("embedder.tokens.weight", prefix + "wte.weight", {sizes.vocabulary, sizes.width});
  copy("embedder.position.table", prefix + "wpe.weight", {sizes.positions, sizes.width});
  if (!tied) copy("output.weight", "lm_head.weight", {sizes.vocabulary, sizes.width});
  for (const auto& [gpt2, heed] : norms_of(sizes)) {
    copy(heed + ".gain", prefix + gpt2 + ".weight", {sizes.width});
    copy(heed + ".bias", prefix + gpt2 + ".bias", {sizes.width});
  }
  for (const auto& [gpt2, heed, in, count] : linears_of(sizes)) {
    const std::vector<int64_t> shape{count, in};
    put(prefix + gpt2 + ".weight", transposed({shape, exported_numbers(model, heed + ".weight", shape)}));
    copy(heed + ".bias", prefix + gpt2 + ".bias", {count});
  }
  for (const auto& [gpt2, heed] : joint_layers_of(sizes)) {
    put(prefix + gpt2 + ".weight", transposed(joined(model, heed, ".weight", {sizes.width, sizes.width})));
    put(prefix + gpt2 + ".bias", joined(model, heed, ".bias", {sizes.width}));
  }
  std::vector<TensorBytes> list;
  for (const auto& [name, tensor] : made)
    list.push_back({name, "F32", tensor.shape, std::as_bytes(std::span(tensor.numbers))});
  return {.config = config_of(sizes, model, tied), .weights = encode_safetensors(list, {{"format", "pt"}})};
}

}  // namespace heed

// The table of GPT-2's layers, by which its tensors are renamed, transposed, split and joined.
#include "heed/train/run/gpt2_shape.h"

namespace heed {
namespace {

/// A part of the model by its names there and here.
struct Gpt2Part {
  std::string gpt2, heed;
};

/// A linear layer. Heed stores its weight as [out, in].
struct Gpt2Linear {
  std::string gpt2, heed;
  int64_t in, out;
};

/// The norms of a model.
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

const char* word_of(bool value) { return value ? "true" : "false"; }

}  // namespace

std::vector<std::pair<std::string, std::string>> gpt2_settings(const Gpt2Config& config, bool tied) {
  return {{"model.d_model", text(config.width)},
          {"model.heads", text(config.heads)},
          {"model.d_ff", text(config.hidden)},
          {"model.layers", text(config.layers)},
          {"model.max_length", text(config.positions)},
          {"model.dropout", text(config.dropout)},
          {"model.attention_dropout", text(config.attention_dropout)},
          {"model.activation", config.activation == Activation::gelu ? "gelu" : "gelu_tanh"},
          {"model.norm_epsilon", text(config.norm_epsilon)},
          {"model.tie_embeddings", tied ? "output" : "none"},
          {"model.attention_bias", word_of(config.has_biases)},
          {"model.feed_forward_bias", word_of(config.has_biases)},
          {"model.norm_bias", word_of(config.has_biases)},
          {"model.output_bias", "false"},
          {"data.tokenizer", "byte_pair"},
          {"train.batch_size", "4"},
          {"train.learning_rate", "5e-5"}};
}

bool convert_gpt2(TensorConversion& conversion, const Gpt2Config& config, const Gpt2Spelling& spelling) {
  if (config.layers > conversion.count())
    fail(Fault::data, conversion.file(), ": its settings give ", config.layers, " layers, and it has ",
         conversion.count(), " tensors. Give the file of a whole model.");
  conversion.leave_out(is_mask);
  const std::string& prefix = spelling.prefix;
  const int64_t width = config.width;
  const auto matrix = [&](const std::string& name, int64_t in, int64_t count) {
    return spelling.is_in_out ? transposed(conversion.take(prefix + name, {in, count}))
                              : conversion.take(prefix + name, {count, in});
  };
  FloatTensor embedding = conversion.take(prefix + "wte.weight", {config.vocabulary, width});
  bool is_tied = true;
  if (conversion.has("lm_head.weight")) {
    FloatTensor head = conversion.take("lm_head.weight", embedding.shape);
    is_tied = head.numbers == embedding.numbers;
    if (!is_tied) conversion.put("output.weight", std::move(head));
  }
  conversion.put("embedder.tokens.weight", std::move(embedding));
  conversion.put("embedder.position.table",
                 conversion.take(prefix + "wpe.weight", {config.positions, width}));
  for (const auto& [gpt2, heed] : norms_of(config)) {
    conversion.put(heed + ".gain", conversion.take(prefix + gpt2 + ".weight", {width}));
    if (config.has_biases) conversion.put(heed + ".bias", conversion.take(prefix + gpt2 + ".bias", {width}));
  }
  for (const auto& [gpt2, heed, in, count] : linears_of(config)) {
    conversion.put(heed + ".weight", matrix(gpt2 + ".weight", in, count));
    if (config.has_biases) conversion.put(heed + ".bias", conversion.take(prefix + gpt2 + ".bias", {count}));
  }
  for (const auto& [gpt2, heed] : joint_layers_of(config)) {
    const FloatTensor weight = matrix(gpt2 + ".weight", width, 3 * width);
    const FloatTensor bias =
        config.has_biases ? conversion.take(prefix + gpt2 + ".bias", {3 * width}) : FloatTensor{};
    int64_t index = 0;
    for (const char* projection : projections) {
      conversion.put(heed + projection + ".weight", part_of(weight, index, width));
      if (config.has_biases) conversion.put(heed + projection + ".bias", part_of(bias, index, width));
      ++index;
    }
  }
  return is_tied;
}

Gpt2Config gpt2_sizes(const ExportedModel& model, const Gpt2Demands& demands) {
  const TransformerConfig& config = model.config;
  const auto demand = [&](bool holds, const std::string& setting) {
    demand_setting(holds, demands.name, setting);
  };
  demand_shared_shape(model, demands.name);
  demand(config.activation == demands.activation,
         demands.activation == Activation::gelu ? "model.activation = gelu" : "model.activation = gelu_tanh");
  demand(config.norm_scale == kernel::NormScale::variance, "model.norm_scale = variance");
  demand(config.position == PositionKind::learned, "model.position = learned");
  const ProjectionBiases& bias = config.attention_bias;
  const bool has_none = !bias.query && !bias.key && !bias.value && !bias.output && !config.norm_bias &&
                        !config.feed_forward_bias;
  const std::string or_none =
      demands.may_lack_biases ? " (or this, model.norm_bias and model.feed_forward_bias = false)" : "";
  if (!demands.may_lack_biases || !has_none) {
    demand(config.norm_bias, "model.norm_bias = true" + or_none);
    demand(static_cast<bool>(bias), "model.attention_bias = true" + or_none);
    demand(config.feed_forward_bias, "model.feed_forward_bias = true" + or_none);
  }
  demand(config.kv_heads == 0 || config.kv_heads == config.heads, "model.kv_heads = 0");
  demand(config.head_dim == 0 || config.head_dim * config.heads == config.d_model, "model.head_dim = 0");
  if (demands.is_strict) {
    demand(config.d_ff == 4 * config.d_model, text("model.d_ff = ", 4 * config.d_model));
    demand(static_cast<float>(config.norm_epsilon) == 1e-5f, "model.norm_epsilon = 1e-5");
    demand(config.tie_embeddings == Tie::output, "model.tie_embeddings = output");
  }
  return {.vocabulary = model.tokenizer.size(),
          .positions = config.max_length,
          .width = config.d_model,
          .layers = config.layers,
          .heads = config.heads,
          .hidden = config.d_ff,
          .norm_epsilon = config.norm_epsilon,
          .dropout = config.dropout,
          .attention_dropout = config.dropout_of_weights(),
          .activation = config.activation,
          .has_biases = !has_none};
}

namespace {

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

std::list<std::pair<std::string, FloatTensor>> gpt2_tensors(const ExportedModel& model,
                                                            const Gpt2Config& sizes,
                                                            const Gpt2Spelling& spelling) {
  std::list<std::pair<std::string, FloatTensor>> made;
  const auto put = [&](std::string name, FloatTensor tensor) {
    made.emplace_back(std::move(name), std::move(tensor));
  };
  const auto copy = [&](const std::string& heed, const std::string& name, const std::vector<int64_t>& shape) {
    put(name, {shape, exported_numbers(model, heed, shape)});
  };
  const auto put_matrix = [&](const std::string& name, FloatTensor matrix) {
    put(name, spelling.is_in_out ? transposed(matrix) : std::move(matrix));
  };
  const std::string& prefix = spelling.prefix;
  const std::vector<int64_t> table{sizes.vocabulary, sizes.width};
  copy("embedder.tokens.weight", prefix + "wte.weight", table);
  copy("embedder.position.table", prefix + "wpe.weight", {sizes.positions, sizes.width});
  if (model.config.tie_embeddings != Tie::output) copy("output.weight", "lm_head.weight", table);
  for (const auto& [gpt2, heed] : norms_of(sizes)) {
    copy(heed + ".gain", prefix + gpt2 + ".weight", {sizes.width});
    if (sizes.has_biases) copy(heed + ".bias", prefix + gpt2 + ".bias", {sizes.width});
  }
  for (const auto& [gpt2, heed, in, count] : linears_of(sizes)) {
    const std::vector<int64_t> shape{count, in};
    put_matrix(prefix + gpt2 + ".weight", {shape, exported_numbers(model, heed + ".weight", shape)});
    if (sizes.has_biases) copy(heed + ".bias", prefix + gpt2 + ".bias", {count});
  }
  for (const auto& [gpt2, heed] : joint_layers_of(sizes)) {
    put_matrix(prefix + gpt2 + ".weight", joined(model, heed, ".weight", {sizes.width, sizes.width}));
    if (sizes.has_biases) put(prefix + gpt2 + ".bias", joined(model, heed, ".bias", {sizes.width}));
  }
  return made;
}

}  // namespace heed

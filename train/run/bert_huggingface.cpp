// The table of BERT's tensors, by which they are renamed, and its settings in config.json.
#include "heed/train/run/bert_huggingface.h"

#include <list>

#include "heed/nn/init.h"
#include "heed/train/run/model_settings.h"
#include "heed/train/run/tensor_conversion.h"

namespace heed {
namespace {

/// A tensor by its names there and here. That of the encoder may begin with bert_prefix.
struct BertTensor {
  std::string huggingface, heed;
  std::vector<int64_t> shape;
};

constexpr std::string_view bert_prefix = "bert.";
constexpr const char* word_table = "embeddings.word_embeddings.weight";
constexpr const char* decoder_weight = "cls.predictions.decoder.weight";
constexpr const char* output_bias = "cls.predictions.bias";
constexpr const char* decoder_bias = "cls.predictions.decoder.bias";
constexpr const char* types_here = "types.weight";
constexpr double head_deviation = 0.02;  // a new head is drawn so, as BERT was

/// The two tensors of a layer [out, in], or of a norm [width].
void add_layer(std::vector<BertTensor>& out, const std::string& huggingface, const std::string& heed,
               const std::vector<int64_t>& shape) {
  out.push_back({huggingface + ".weight", heed + (shape.size() == 1 ? ".gain" : ".weight"), shape});
  out.push_back({huggingface + ".bias", heed + ".bias", {shape[0]}});
}

/// The tensors of embeddings and encoder.
std::vector<BertTensor> encoder_tensors(const BertConfig& config) {
  const int64_t width = config.width;
  const std::vector<int64_t> square{width, width}, norm{width};
  std::vector<BertTensor> out{
      {word_table, "embedder.tokens.weight", {config.vocabulary, width}},
      {"embeddings.position_embeddings.weight", "embedder.position.table", {config.positions, width}},
      {"embeddings.token_type_embeddings.weight", types_here, {config.token_types, width}}};
  add_layer(out, "embeddings.LayerNorm", "embedding_norm", norm);
  for (int64_t block = 0; block < config.layers; ++block) {
    const std::string there = text("encoder.layer.", block, "."), here = text("encoder.blocks.", block, ".");
    for (const char* role : {"query", "key", "value"})
      add_layer(out, text(there, "attention.self.", role), text(here, "attention.", role), square);
    add_layer(out, there + "attention.output.dense", here + "attention.output", square);
    add_layer(out, there + "attention.output.LayerNorm", here + "attention_norm", norm);
    add_layer(out, there + "intermediate.dense", here + "feed_forward.up", {config.hidden, width});
    add_layer(out, there + "output.dense", here + "feed_forward.down", {width, config.hidden});
    add_layer(out, there + "output.LayerNorm", here + "forward_norm", norm);
  }
  return out;
}

/// The tensors of the head of masked language modelling.
std::vector<BertTensor> head_tensors(const BertConfig& config) {
  std::vector<BertTensor> out;
  add_layer(out, "cls.predictions.transform.dense", "head", {config.width, config.width});
  add_layer(out, "cls.predictions.transform.LayerNorm", "head_norm", {config.width});
  if (!config.tied) out.push_back({decoder_weight, "output.weight", {config.vocabulary, config.width}});
  out.push_back({output_bias, "output.bias", {config.vocabulary}});
  return out;
}

/// An activation by its words there and here.
struct BertActivation {
  const char* huggingface;
  const char* heed;
  Activation activation;
};
constexpr BertActivation bert_activations[] = {{"gelu", "gelu", Activation::gelu},
                                               {"gelu_new", "gelu_tanh", Activation::gelu_tanh},
                                               {"gelu_pytorch_tanh", "gelu_tanh", Activation::gelu_tanh},
                                               {"relu", "relu", Activation::relu},
                                               {"silu", "silu", Activation::silu},
                                               {"swish", "silu", Activation::silu}};

}  // namespace

BertConfig parse_bert_config(const Json& json, const std::string& name) {
  const ModelSettings members(json, name);
  members.demand("model_type", "bert", "other models have other parts");
  members.demand("position_embedding_type", "absolute", "positions have vectors, and distances have none");
  members.demand("is_decoder", false, "tokens are guessed from both sides");
  members.demand("add_cross_attention", false, "an encoder has no second input");
  std::vector<std::string> words;
  for (const BertActivation& one : bert_activations) words.emplace_back(one.huggingface);
  const std::string activation = members.word("hidden_act", words);
  BertConfig out{.vocabulary = members.count("vocab_size"),
                 .width = members.count("hidden_size"),
                 .layers = members.count("num_hidden_layers"),
                 .heads = members.count("num_attention_heads"),
                 .hidden = members.count("intermediate_size"),
                 .positions = members.count("max_position_embeddings"),
                 .token_types = members.count("type_vocab_size", 2),
                 .activation = {},
                 .norm_epsilon = members.positive("layer_norm_eps", 1e-12),
                 .dropout = members.fraction("hidden_dropout_prob", 0.1),
                 .attention_dropout = members.fraction("attention_probs_dropout_prob", 0.1),
                 .tied = members.flag("tie_word_embeddings", true)};
  for (const BertActivation& one : bert_activations)
    if (activation == one.huggingface) out.activation = one.heed;
  if (out.width % out.heads != 0)
    fail(Fault::data, name, ": num_attention_heads is ", out.heads, ", which does not divide hidden_size, ",
         out.width, ".");
  if (out.layers > max_tensors / 16)  // each has 16
    fail(Fault::data, name, ": num_hidden_layers is ", out.layers, ", and a file has at most ", max_tensors,
         " tensors.");
  return out;
}

std::vector<std::pair<std::string, std::string>> bert_settings(const BertConfig& config) {
  return {{"model.d_model", text(config.width)},
          {"model.heads", text(config.heads)},
          {"model.d_ff", text(config.hidden)},
          {"model.layers", text(config.layers)},
          {"model.max_length", text(config.positions)},
          {"model.token_types", text(config.token_types)},
          {"model.dropout", text(config.dropout)},
          {"model.attention_dropout", text(config.attention_dropout)},
          {"model.activation", config.activation},
          {"model.norm", "post"},
          {"model.norm_epsilon", text(static_cast<float>(config.norm_epsilon))},
          {"model.position", "learned"},
          {"model.tie_embeddings", config.tied ? "output" : "none"},
          {"model.tied_output_bias", config.tied ? "true" : "false"},
          {"model.output_bias", "true"},
          {"model.scale_embedding", "false"},
          {"model.attention_bias", "true"},
          {"data.tokenizer", "wordpiece"},
          {"train.batch_size", "4"},
          {"train.learning_rate", "5e-5"}};
}

namespace {

/// The name that the file has for a tensor: norms of the first BERT have gamma and beta.
std::string name_in(const TensorConversion& file, std::string name) {
  const auto renamed = [&](std::string_view from, std::string_view to) {
    std::string other = name;
    if (!other.ends_with(from)) return;
    other.replace(other.size() - from.size(), from.size(), to);
    if (!file.has(name) && file.has(other)) name = other;
  };
  renamed("LayerNorm.weight", "LayerNorm.gamma");
  renamed("LayerNorm.bias", "LayerNorm.beta");
  return name;
}

/// Leaves out tensors whose names begin so, and says so by `note`.
void leave_out(TensorConversion& conversion, BertWeights& out, const std::string& beginning,
               const char* note) {
  const int64_t before = conversion.count();
  conversion.leave_out([&](std::string_view name) { return name.starts_with(beginning); });
  if (conversion.count() < before) out.notes.emplace_back(note);
}

/// A new head: small random weights, gains of 1 and biases of 0.
void add_new_head(TensorConversion& conversion, const BertConfig& config) {
  const NoGrad no_grad;
  const DefaultDevice on_host(Device::cpu);
  Rng rng(1);
  for (const BertTensor& one : head_tensors(config)) {
    FloatTensor tensor{.shape = one.shape, .numbers = {}};
    if (one.shape.size() == 2)
      tensor.numbers = normal_parameter(Shape{one.shape[0], one.shape[1]}, head_deviation, rng).to_host();
    else
      tensor.numbers.assign(static_cast<size_t>(one.shape[0]), one.heed.ends_with(".gain") ? 1.0F : 0.0F);
    conversion.put(one.heed, tensor);
  }
}

}  // namespace

BertWeights bert_weights(const TensorFiles& files, const BertConfig& config) {
  TensorConversion conversion(files, "a BERT of that config.json");
  const std::string prefix(conversion.has_prefix(bert_prefix) ? bert_prefix : "");
  BertWeights out;
  leave_out(conversion, out, prefix + "pooler.",
            "The pooler is left out: a masked language model and the mean of tokens do without it.");
  leave_out(conversion, out, "cls.seq_relationship.",
            "The classifier of pairs of sentences (cls.seq_relationship) is left out.");
  conversion.leave_out([&](std::string_view name) { return name == prefix + "embeddings.position_ids"; });
  std::vector<float> words;  // the table of words, which the output layer may repeat
  for (const BertTensor& one : encoder_tensors(config)) {
    FloatTensor tensor = conversion.take(name_in(conversion, prefix + one.huggingface), one.shape);
    conversion.put(one.heed, tensor);
    if (one.huggingface == word_table) words = std::move(tensor.numbers);
  }
  const std::vector<BertTensor> head = head_tensors(config);
  if (!conversion.has(head[0].huggingface)) {
    add_new_head(conversion, config);
    std::string names;
    for (const BertTensor& one : head) names += (names.empty() ? "" : ", ") + one.heed;
    out.notes.push_back("The folder has no head that guesses tokens, so these tensors are new: " + names +
                        ".");
    out.bytes = conversion.encode();
    return out;
  }
  // Transformers adds the decoder's bias, which is the other one where tables are tied.
  const char* bias = conversion.has(decoder_bias) && (!config.tied || !conversion.has(output_bias))
                         ? decoder_bias
                         : output_bias;
  for (const BertTensor& one : head) {
    const std::string name = one.huggingface == output_bias ? bias : name_in(conversion, one.huggingface);
    conversion.put(one.heed, conversion.take(name, one.shape));
  }
  conversion.leave_out([](std::string_view name) { return name == decoder_bias || name == output_bias; });
  if (config.tied && conversion.has(decoder_weight)) {
    if (conversion.take(decoder_weight, {config.vocabulary, config.width}).numbers != words)
      fail(Fault::data, files.name, ": tensor ", decoder_weight, " differs from ", prefix, word_table,
           ", and tie_word_embeddings says that they are one. Give the config.json of these weights.");
  }
  out.bytes = conversion.encode();
  return out;
}

namespace {

/// The settings of a model that is written; fails for the first one that BERT does not have.
BertConfig bert_config_of(const ExportedModel& model) {
  const TransformerConfig& config = model.config;
  const auto demand = [](bool holds, const std::string& setting) {
    demand_setting(holds, "a BERT", setting);
  };
  demand(model.tokenizer.kind() == "wordpiece",
         text("data.tokenizer = wordpiece, and this run's is of the kind ", model.tokenizer.kind()));
  demand(model.attention == "softmax", text("attention.encoder = softmax, not ", model.attention));
  demand_common_parts(config, "a BERT");
  std::string activation;
  for (const BertActivation& one : bert_activations)
    if (activation.empty() && one.activation == config.activation) activation = one.huggingface;
  demand(!activation.empty(), "model.activation = gelu, gelu_tanh, relu or silu");
  demand(config.norm == NormPlace::post, "model.norm = post");
  demand(config.norm_scale == kernel::NormScale::variance, "model.norm_scale = variance");
  demand(config.norm_bias, "model.norm_bias = true");
  demand(config.position == PositionKind::learned, "model.position = learned");
  demand(!config.scale_embedding, "model.scale_embedding = false");
  demand(static_cast<bool>(config.attention_bias), "model.attention_bias = true");
  demand(config.feed_forward_bias, "model.feed_forward_bias = true");
  demand(config.kv_heads == 0 || config.kv_heads == config.heads, "model.kv_heads = 0");
  demand(config.head_dim == 0 || config.head_dim * config.heads == config.d_model, "model.head_dim = 0");
  const bool tied = config.tie_embeddings != Tie::none;
  demand(tied ? config.tied_output_bias : config.output_bias,
         tied ? "model.tied_output_bias = true" : "model.output_bias = true");
  return {.vocabulary = model.tokenizer.size(),
          .width = config.d_model,
          .layers = config.layers,
          .heads = config.heads,
          .hidden = config.d_ff,
          .positions = config.max_length,
          .token_types = model.weights.at(types_here).shape.at(0),
          .activation = activation,
          .norm_epsilon = config.norm_epsilon,
          .dropout = config.dropout,
          .attention_dropout = config.dropout_of_weights(),
          .tied = tied};
}

Json bert_config_json(const BertConfig& config, const Tokenizer& tokenizer) {
  const Json pad = tokenizer.pad() >= 0 ? Json(tokenizer.pad()) : Json();
  return Json::object({{"architectures", Json::List{"BertForMaskedLM"}},
                       {"model_type", "bert"},
                       {"hidden_act", config.activation},
                       {"vocab_size", config.vocabulary},
                       {"hidden_size", config.width},
                       {"num_hidden_layers", config.layers},
                       {"num_attention_heads", config.heads},
                       {"intermediate_size", config.hidden},
                       {"max_position_embeddings", config.positions},
                       {"type_vocab_size", config.token_types},
                       {"layer_norm_eps", config.norm_epsilon},
                       {"hidden_dropout_prob", config.dropout},
                       {"attention_probs_dropout_prob", config.attention_dropout},
                       {"position_embedding_type", "absolute"},
                       {"tie_word_embeddings", config.tied},
                       {"is_decoder", false},
                       {"pad_token_id", pad},
                       {"torch_dtype", "float32"}});
}

}  // namespace

BertFiles encode_bert(const ExportedModel& model) {
  const BertConfig config = bert_config_of(model);
  std::list<std::vector<float>> numbers;
  std::vector<TensorBytes> tensors;
  const auto put = [&](const std::string& name, const BertTensor& one) {
    numbers.push_back(exported_numbers(model, one.heed, one.shape));
    tensors.push_back({name, "F32", one.shape, std::as_bytes(std::span(numbers.back()))});
  };
  for (const BertTensor& one : encoder_tensors(config)) put(std::string(bert_prefix) + one.huggingface, one);
  for (const BertTensor& one : head_tensors(config)) {
    put(one.huggingface, one);
    if (one.huggingface == output_bias && !config.tied) put(decoder_bias, one);
  }
  return {.config = bert_config_json(config, model.tokenizer),
          .weights = encode_safetensors(tensors, {{"format", "pt"}})};
}

}  // namespace heed

// The table of Marian's tensors, by which they are renamed, and its settings in config.json.
#include "heed/train/run/marian_huggingface.h"

#include <cmath>
#include <list>

#include "heed/data/tokenizers/marian.h"
#include "heed/train/run/model_settings.h"
#include "heed/train/run/tensor_conversion.h"

namespace heed {
namespace {

/// A tensor by its names there and here.
struct MarianTensor {
  std::string huggingface, heed;
  std::vector<int64_t> shape;
};

/// A layer of a block by its names there and here; its tensors are a weight, or a gain, and a bias.
struct MarianLayer {
  const char *huggingface, *heed;
  std::vector<int64_t> shape;  // [out, in] of a weight, [width] of a gain
  bool in_decoder_only = false;
};

constexpr const char* shared_table = "model.shared.weight";
constexpr const char* other_tables[] = {"model.encoder.embed_tokens.weight",
                                        "model.decoder.embed_tokens.weight", "lm_head.weight"};
constexpr const char* position_tables[] = {"model.encoder.embed_positions.weight",
                                           "model.decoder.embed_positions.weight"};
constexpr const char* heed_table = "source.tokens.weight";
constexpr const char* final_bias = "final_logits_bias";  // [1, vocabulary]; here [vocabulary]
constexpr const char* heed_bias = "output.bias";
constexpr double marian_epsilon = 1e-5;  // epsilon of every norm: config.json has none

/// The layers of a block.
std::vector<MarianLayer> marian_layers(const MarianConfig& config) {
  const int64_t width = config.width, hidden = config.hidden;
  const std::vector<int64_t> square{width, width}, norm{width};
  return {{"self_attn.q_proj", "attention.query", square},
          {"self_attn.k_proj", "attention.key", square},
          {"self_attn.v_proj", "attention.value", square},
          {"self_attn.out_proj", "attention.output", square},
          {"self_attn_layer_norm", "attention_norm", norm},
          {"encoder_attn.q_proj", "cross.query", square, true},
          {"encoder_attn.k_proj", "cross.key", square, true},
          {"encoder_attn.v_proj", "cross.value", square, true},
          {"encoder_attn.out_proj", "cross.output", square, true},
          {"encoder_attn_layer_norm", "cross_norm", norm, true},
          {"fc1", "feed_forward.up", {hidden, width}},
          {"fc2", "feed_forward.down", {width, hidden}},
          {"final_layer_norm", "forward_norm", norm}};
}

/// The tensors of all blocks.
std::vector<MarianTensor> block_tensors(const MarianConfig& config) {
  std::vector<MarianTensor> out;
  for (const std::string stack : {"encoder", "decoder"}) {
    for (int64_t block = 0; block < config.layers; ++block) {
      for (const MarianLayer& layer : marian_layers(config)) {
        if (layer.in_decoder_only && stack != "decoder") continue;
        const std::string there = text("model.", stack, ".layers.", block, ".", layer.huggingface),
                          here = text(stack, ".blocks.", block, ".", layer.heed);
        const bool is_norm = layer.shape.size() == 1;
        out.push_back({there + ".weight", here + (is_norm ? ".gain" : ".weight"), layer.shape});
        out.push_back({there + ".bias", here + ".bias", {layer.shape[0]}});
      }
    }
  }
  return out;
}

/// An activation by its words there and here.
struct MarianActivation {
  const char* huggingface;
  const char* heed;
  Activation activation;
};
constexpr MarianActivation activations[] = {{"swish", "silu", Activation::silu},
                                            {"silu", "silu", Activation::silu},
                                            {"relu", "relu", Activation::relu},
                                            {"gelu", "gelu", Activation::gelu},
                                            {"gelu_new", "gelu_tanh", Activation::gelu_tanh}};

std::string activation_of(const ModelSettings& members) {
  std::vector<std::string> words;
  for (const MarianActivation& one : activations) words.emplace_back(one.huggingface);
  const std::string found = members.word("activation_function", words);
  for (const MarianActivation& one : activations)
    if (found == one.huggingface) return one.heed;
  return {};
}

/// Fails for members that say what Heed's translators do not have.
void demand_shape(const ModelSettings& members, const MarianConfig& config) {
  members.demand("model_type", "marian", "other models have other parts");
  const char* alike = "encoder and decoder have blocks of one size, and as many";
  members.demand("decoder_layers", config.layers, alike);
  members.demand("decoder_attention_heads", config.heads, alike);
  members.demand("decoder_ffn_dim", config.hidden, alike);
  const char* one_table = "source, target and output layer share one table";
  members.demand("share_encoder_decoder_embeddings", true, one_table);
  members.demand("tie_word_embeddings", true, one_table);
  members.demand("decoder_vocab_size", config.vocabulary, one_table);
  members.demand("normalize_before", false, "norms stand behind the branches");
  members.demand("normalize_embedding", false, "embeddings have no norm");
  members.demand("add_final_layer_norm", false, "no norm stands behind the last block");
  members.demand("static_position_embeddings", true, "positions are sinusoids");
  members.demand("decoder_start_token_id", config.pad, "translations start with pad_token_id");
}

}  // namespace

MarianConfig parse_marian_config(const Json& json, const std::string& name) {
  const ModelSettings members(json, name);
  MarianConfig out{.vocabulary = members.count("vocab_size"),
                   .width = members.count("d_model"),
                   .layers = members.count("encoder_layers"),
                   .heads = members.count("encoder_attention_heads"),
                   .hidden = members.count("encoder_ffn_dim"),
                   .positions = members.count("max_position_embeddings"),
                   .activation = activation_of(members),
                   .scales_embedding = members.flag("scale_embedding", false),
                   .dropout = members.fraction("dropout", 0.1),
                   .attention_dropout = members.fraction("attention_dropout", 0)};
  out.pad = static_cast<int32_t>(members.index("pad_token_id", out.vocabulary));
  out.end = static_cast<int32_t>(members.index("eos_token_id", out.vocabulary));
  for (const char* key : {"decoder_layers", "decoder_attention_heads", "decoder_ffn_dim"}) members.count(key);
  members.index("decoder_start_token_id", out.vocabulary);
  demand_shape(members, out);
  if (out.width % out.heads != 0)
    fail(Fault::data, name, ": encoder_attention_heads is ", out.heads, ", which does not divide d_model, ",
         out.width, ".");
  if (out.layers > max_tensors)
    fail(Fault::data, name, ": encoder_layers is ", out.layers, ", and a file has at most ", max_tensors,
         " tensors.");
  return out;
}

std::vector<std::pair<std::string, std::string>> marian_settings(const MarianConfig& config,
                                                                 const Json& generation,
                                                                 const std::string& name) {
  const ModelSettings beams(generation, name);
  beams.demand("early_stopping", false, "the search ends when its best unfinished hypothesis is behind");
  beams.demand("bad_words_ids", Json::List{Json::List{config.pad}}, "padding alone is never written");
  return {{"model.d_model", text(config.width)},
          {"model.heads", text(config.heads)},
          {"model.d_ff", text(config.hidden)},
          {"model.layers", text(config.layers)},
          {"model.max_length", text(config.positions)},
          {"model.dropout", text(config.dropout)},
          {"model.attention_dropout", text(config.attention_dropout)},
          {"model.activation", config.activation},
          {"model.norm", "post"},
          {"model.norm_epsilon", text(marian_epsilon)},
          {"model.position", "sinusoid_halves"},
          {"model.tie_embeddings", "all"},
          {"model.tied_output_bias", "true"},
          {"model.scale_embedding", config.scales_embedding ? "true" : "false"},
          {"model.attention_bias", "true"},
          {"data.tokenizer", "unigram"},
          {"data.vocabulary", text(config.vocabulary)},
          {"train.learning_rate", "5e-5"},
          {"decode.beam_size", text(beams.count("num_beams", 1))},
          {"decode.length_penalty", text(beams.number("length_penalty", 1))},
          {"decode.beam_rules",
           beams.flag("renormalize_logits", false) ? "transformers_renormalized" : "transformers"},
          {"decode.max_extra_tokens", text(config.positions)},
          {"decode.allow_unknown", "true"}};
}

namespace {

/// The table of all embeddings, under the first of its names; the others must be the same.
FloatTensor take_table(TensorConversion& conversion, const MarianConfig& config) {
  const std::vector<int64_t> shape{config.vocabulary, config.width};
  std::string name = shared_table;
  for (const char* other : other_tables)
    if (!conversion.has(name)) name = other;
  FloatTensor table = conversion.take(conversion.has(name) ? name : shared_table, shape);
  for (const char* other : other_tables) {
    if (conversion.has(other) && conversion.take(other, shape).numbers != table.numbers)
      fail(Fault::data, conversion.file(), ": tensor ", other, " differs from ", name,
           ", and only models whose source, target and output layer share one table can be read.");
  }
  return table;
}

/// Fails unless the tables of positions, which older files hold, are the sinusoids.
void check_positions(TensorConversion& conversion, const MarianConfig& config) {
  constexpr float max_difference = 2e-3F;  // half of the last place of f16 and of bf16 at 1
  std::vector<float> waves;
  for (const char* name : position_tables) {
    if (!conversion.has(name)) continue;
    const FloatTensor table = conversion.take(name, {config.positions, config.width});
    if (waves.empty()) {
      Rng rng(1);
      const DefaultDevice on_host(Device::cpu);
      const Position position(PositionKind::sinusoid_halves, config.positions, config.width, rng);
      waves = position(Tensor::zeros(Shape{1, config.positions, config.width}), 0).to_host();
    }
    for (size_t i = 0; i < waves.size(); ++i) {
      if (!(std::abs(waves[i] - table.numbers[i]) <= max_difference))
        fail(Fault::data, conversion.file(), ": tensor ", name, " has ", table.numbers[i], " at ", i,
             ", where sinusoids have ", waves[i], ". Only models with positions by sinusoids can be read.");
    }
  }
}

}  // namespace

std::string marian_weights(const TensorFiles& files, const MarianConfig& config) {
  TensorConversion conversion(files, "a Marian of that config.json");
  conversion.put(heed_table, take_table(conversion, config));
  check_positions(conversion, config);
  FloatTensor bias{.shape = {config.vocabulary}, .numbers = {}};
  bias.numbers.resize(static_cast<size_t>(config.vocabulary));
  if (conversion.has(final_bias)) bias.numbers = conversion.take(final_bias, {1, config.vocabulary}).numbers;
  conversion.put(heed_bias, std::move(bias));
  for (const MarianTensor& one : block_tensors(config))
    conversion.put(one.heed, conversion.take(one.huggingface, one.shape));
  return conversion.encode();
}

namespace {

/// The settings of a model that is written; fails for the first one that Marian does not have.
MarianConfig marian_config_of(const ExportedModel& model, const ExportedTranslator& translator) {
  const TransformerConfig& config = model.config;
  const auto demand = [](bool holds, const std::string& setting) {
    demand_setting(holds, "a Marian", setting);
  };
  for (const Tokenizer* one : {&model.tokenizer, &translator.target})
    demand(one->kind() == "marian",
           text("the tokenizers of an imported Marian, and this run's are of the kind ", one->kind()));
  for (const std::string* attention :
       {&translator.encoder_attention, &model.attention, &translator.cross_attention})
    demand(*attention == "softmax",
           text("attention.encoder, attention.decoder and attention.cross = softmax, not ", *attention));
  demand_common_parts(config, "a Marian");
  std::string activation;
  for (const MarianActivation& one : activations)
    if (activation.empty() && one.activation == config.activation) activation = one.huggingface;
  demand(!activation.empty(), "model.activation = silu, relu, gelu or gelu_tanh");
  demand(config.norm == NormPlace::post, "model.norm = post");
  demand(config.norm_scale == kernel::NormScale::variance, "model.norm_scale = variance");
  demand(std::abs(config.norm_epsilon - marian_epsilon) < 1e-12,
         text("model.norm_epsilon = ", marian_epsilon));
  demand(config.norm_bias, "model.norm_bias = true");
  demand(config.position == PositionKind::sinusoid_halves, "model.position = sinusoid_halves");
  demand(config.tie_embeddings == Tie::all, "model.tie_embeddings = all");
  demand(static_cast<bool>(config.attention_bias), "model.attention_bias = true");
  demand(config.feed_forward_bias, "model.feed_forward_bias = true");
  demand(config.kv_heads == 0 || config.kv_heads == config.heads, "model.kv_heads = 0");
  demand(config.head_dim == 0 || config.head_dim * config.heads == config.d_model, "model.head_dim = 0");
  return {.vocabulary = model.tokenizer.size(),
          .width = config.d_model,
          .layers = config.layers,
          .heads = config.heads,
          .hidden = config.d_ff,
          .positions = config.max_length,
          .activation = activation,
          .scales_embedding = config.scale_embedding,
          .dropout = config.dropout,
          .attention_dropout = config.dropout_of_weights(),
          .pad = model.tokenizer.pad(),
          .end = model.tokenizer.end()};
}

Json marian_config_json(const MarianConfig& config) {
  return Json::object({{"architectures", Json::List{"MarianMTModel"}},
                       {"model_type", "marian"},
                       {"activation_function", config.activation},
                       {"vocab_size", config.vocabulary},
                       {"decoder_vocab_size", config.vocabulary},
                       {"d_model", config.width},
                       {"encoder_layers", config.layers},
                       {"decoder_layers", config.layers},
                       {"encoder_attention_heads", config.heads},
                       {"decoder_attention_heads", config.heads},
                       {"encoder_ffn_dim", config.hidden},
                       {"decoder_ffn_dim", config.hidden},
                       {"max_position_embeddings", config.positions},
                       {"scale_embedding", config.scales_embedding},
                       {"dropout", config.dropout},
                       {"attention_dropout", config.attention_dropout},
                       {"activation_dropout", 0.0},
                       {"share_encoder_decoder_embeddings", true},
                       {"tie_word_embeddings", true},
                       {"is_encoder_decoder", true},
                       {"normalize_before", false},
                       {"normalize_embedding", false},
                       {"static_position_embeddings", true},
                       {"pad_token_id", config.pad},
                       {"eos_token_id", config.end},
                       {"decoder_start_token_id", config.pad},
                       {"forced_eos_token_id", Json()},
                       {"torch_dtype", "float32"}});
}

Json marian_generation_json(const MarianConfig& config, const ExportedTranslator& translator) {
  return Json::object({{"pad_token_id", config.pad},
                       {"eos_token_id", config.end},
                       {"decoder_start_token_id", config.pad},
                       {"forced_eos_token_id", Json()},
                       {"bad_words_ids", Json::List{Json::List{config.pad}}},
                       {"max_length", config.positions},
                       {"num_beams", translator.beam_size},
                       {"length_penalty", translator.length_penalty},
                       {"renormalize_logits", translator.is_renormalized}});
}

}  // namespace

MarianFiles encode_marian(const ExportedModel& model) {
  const ExportedTranslator& translator = *model.translator;
  const MarianConfig config = marian_config_of(model, translator);
  std::list<std::vector<float>> numbers;
  std::vector<TensorBytes> tensors;
  const auto put = [&](std::string name, std::vector<int64_t> shape, std::vector<float> values) {
    numbers.push_back(std::move(values));
    tensors.push_back({std::move(name), "F32", std::move(shape), std::as_bytes(std::span(numbers.back()))});
  };
  const std::vector<int64_t> table{config.vocabulary, config.width};
  put(shared_table, table, exported_numbers(model, heed_table, table));
  put(final_bias, {1, config.vocabulary},
      model.config.tied_output_bias ? exported_numbers(model, heed_bias, {config.vocabulary})
                                    : std::vector<float>(static_cast<size_t>(config.vocabulary)));
  for (const MarianTensor& one : block_tensors(config))
    put(one.huggingface, one.shape, exported_numbers(model, one.heed, one.shape));
  return {.config = marian_config_json(config),
          .generation = marian_generation_json(config, translator),
          .weights = encode_safetensors(tensors, {{"format", "pt"}})};
}

}  // namespace heed

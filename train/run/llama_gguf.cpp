// Names, shapes and settings of LLaMA models in GGUF files.
#include "heed/train/run/llama_gguf.h"

#include <list>
#include <set>

#include "heed/core/io/safetensors.h"
#include "heed/data/tokenizers/byte_pair.h"
#include "heed/train/run/model_settings.h"

namespace heed {
namespace {

/// The sizes of a model; comments name the keys of GGUF behind "llama.".
struct LlamaSizes {
  int64_t vocabulary = 0;   // rows of token_embd.weight
  int64_t width = 0;        // embedding_length
  int64_t layers = 0;       // block_count
  int64_t hidden = 0;       // feed_forward_length
  int64_t heads = 0;        // attention.head_count
  int64_t kv_heads = 0;     // attention.head_count_kv
  int64_t head_width = 0;   // attention.key_length; width / heads where it is missing
  int64_t max_length = 0;   // context_length
  double norm_epsilon = 0;  // attention.layer_norm_rms_epsilon
  double rope_base = 0;     // rope.freq_base
};

LlamaSizes sizes_of(const GgufFile& file) {
  const ModelSettings settings(file.metadata(), file.name());
  settings.demand("general.architecture", "llama", "other models have other parts");
  settings.demand("llama.rope.scaling.type", "none", "positions are not scaled");
  settings.demand("llama.expert_count", 0, "a block has one feed-forward network");
  const GgufTensor* table = file.find("token_embd.weight");
  if (table == nullptr || table->shape.size() != 2)
    fail(Fault::data, file.name(),
         ": there is no table token_embd.weight [tokens, width]. Give a whole model.");
  LlamaSizes out{.vocabulary = table->shape[0],
                 .width = settings.count("llama.embedding_length"),
                 .layers = settings.count("llama.block_count"),
                 .hidden = settings.count("llama.feed_forward_length"),
                 .heads = settings.count("llama.attention.head_count"),
                 .max_length = settings.count("llama.context_length"),
                 .norm_epsilon = settings.fraction("llama.attention.layer_norm_rms_epsilon", 1e-5),
                 .rope_base = settings.positive("llama.rope.freq_base", 10000)};
  out.kv_heads = settings.count("llama.attention.head_count_kv", out.heads);
  out.head_width = settings.count("llama.attention.key_length", std::max<int64_t>(out.width / out.heads, 1));
  if (out.layers > max_tensors)
    fail(Fault::data, file.name(), ": llama.block_count is ", out.layers, ", and a file has at most ",
         max_tensors, " tensors.");
  settings.demand("llama.attention.value_length", out.head_width, "keys and values are equally wide");
  settings.demand("llama.rope.dimension_count", out.head_width, "a head is rotated as a whole");
  return out;
}

/// A tensor by its names in GGUF and in a DecoderOnly, with its shape.
struct NamedShape {
  std::string gguf, heed;
  std::vector<int64_t> shape;
};

/// All tensors of a model.
std::vector<NamedShape> tensors_of(const LlamaSizes& sizes, bool tied) {
  const int64_t width = sizes.width, queries = sizes.heads * sizes.head_width,
                keys = sizes.kv_heads * sizes.head_width;
  std::vector<NamedShape> out{{"token_embd.weight", "embedder.tokens.weight", {sizes.vocabulary, width}},
                              {"output_norm.weight", "decoder.norm.gain", {width}}};
  if (!tied) out.push_back({"output.weight", "output.weight", {sizes.vocabulary, width}});
  const NamedShape in_block[] = {
      {"attn_norm.weight", "attention_norm.gain", {width}},
      {"attn_q.weight", "attention.query.weight", {queries, width}},
      {"attn_k.weight", "attention.key.weight", {keys, width}},
      {"attn_v.weight", "attention.value.weight", {keys, width}},
      {"attn_output.weight", "attention.output.weight", {width, queries}},
      {"ffn_norm.weight", "forward_norm.gain", {width}},
      {"ffn_gate.weight", "feed_forward.gate.weight", {sizes.hidden, width}},
      {"ffn_up.weight", "feed_forward.up.weight", {sizes.hidden, width}},
      {"ffn_down.weight", "feed_forward.down.weight", {width, sizes.hidden}},
  };
  for (int64_t layer = 0; layer < sizes.layers; ++layer) {
    for (const auto& [gguf, heed, shape] : in_block)
      out.push_back({text("blk.", layer, ".", gguf), text("decoder.blocks.", layer, ".", heed), shape});
  }
  return out;
}

/// The bytes of a safetensors file with the tensors by their names here. Fails where one is missing or of
/// another shape, or where the file has one that is none of these.
std::string converted(const GgufFile& file, const std::vector<NamedShape>& tensors) {
  const auto shape_text = [](const std::vector<int64_t>& shape) {
    return Json(Json::List(shape.begin(), shape.end())).dump();
  };
  std::set<std::string_view> known;
  std::list<std::vector<float>> numbers;
  std::vector<TensorBytes> out;
  for (const auto& [gguf, heed, shape] : tensors) {
    known.insert(gguf);
    const GgufTensor* found = file.find(gguf);
    if (found == nullptr)
      fail(Fault::data, file.name(), ": tensor ", gguf, " is missing. Give a whole model.");
    if (found->shape != shape)
      fail(Fault::data, file.name(), ": tensor ", gguf, " has shape ", shape_text(found->shape),
           ", and the settings give ", shape_text(shape), ".");
    numbers.push_back(file.values(*found));
    out.push_back({heed, "f32", shape, std::as_bytes(std::span(numbers.back()))});
  }
  for (const GgufTensor& one : file.tensors()) {
    if (!known.contains(one.name))
      fail(Fault::data, file.name(), ": tensor ", shown(one.name),
           " is none of a LLaMA without biases, experts and scaled positions. Such a model cannot be read.");
  }
  return encode_safetensors(out);
}

/// The texts of a list in the metadata.
std::vector<std::string> texts_of(const GgufFile& file, const char* key) {
  const Json* found = file.metadata().find(key);
  if (found == nullptr || !found->is_list())
    fail(Fault::data, file.name(), ": there is no list ", key, ". Give a file with its tokenizer.");
  std::vector<std::string> out;
  for (const Json& one : found->list()) {
    if (!one.is_text()) fail(Fault::data, file.name(), ": ", key, " holds something that is no text.");
    out.push_back(one.text());
  }
  return out;
}

std::unique_ptr<Tokenizer> tokenizer_of(const GgufFile& file) {
  const Json* pre = file.metadata().find("tokenizer.ggml.pre");
  const std::string words = pre != nullptr && pre->is_text() ? pre->text() : "";
  ModelSettings(file.metadata(), file.name())
      .demand("tokenizer.ggml.model", "gpt2", "other tokenizers are not byte pairs");
  if (words != "gpt-2" && words != "smollm")
    fail(Fault::data, file.name(), ": tokenizer.ggml.pre is '", shown(words),
         "', and only gpt-2 and smollm can be read: words end elsewhere in others.");
  return byte_pair_of(texts_of(file, "tokenizer.ggml.tokens"), texts_of(file, "tokenizer.ggml.merges"),
                      words == "smollm" ? PreTokenizer::individual_digits : PreTokenizer::gpt2, file.name());
}

}  // namespace

ImportedModel llama_model(const GgufFile& file) {
  const LlamaSizes sizes = sizes_of(file);
  ImportedModel out{.architecture = "LLaMA", .run_name = "llama"};
  out.tokenizer = tokenizer_of(file);
  if (out.tokenizer->size() != sizes.vocabulary)
    fail(Fault::data, file.name(), ": its tokenizer has ", out.tokenizer->size(),
         " tokens, and token_embd.weight ", sizes.vocabulary, " rows.");
  const bool tied = file.find("output.weight") == nullptr;
  out.settings = {{"model.d_model", text(sizes.width)},
                  {"model.heads", text(sizes.heads)},
                  {"model.kv_heads", text(sizes.kv_heads)},
                  {"model.head_dim", text(sizes.head_width)},
                  {"model.d_ff", text(sizes.hidden)},
                  {"model.layers", text(sizes.layers)},
                  {"model.max_length", text(sizes.max_length)},
                  {"model.dropout", "0"},
                  {"model.attention_dropout", "0"},
                  {"model.activation", "swiglu"},
                  {"model.norm_scale", "rms"},
                  {"model.norm_epsilon", text(static_cast<float>(sizes.norm_epsilon))},
                  {"model.position", "rope_interleaved"},
                  {"model.position_base", text(static_cast<float>(sizes.rope_base))},
                  {"model.tie_embeddings", tied ? "output" : "none"},
                  {"model.scale_embedding", "false"},
                  {"model.attention_bias", "false"},
                  {"model.feed_forward_bias", "false"},
                  {"model.output_bias", "false"},
                  {"data.tokenizer", "byte_pair"},
                  {"train.batch_size", "4"},
                  {"train.learning_rate", "5e-5"}};
  out.weights = converted(file, tensors_of(sizes, tied));
  return out;
}

namespace {

/// Fails for the first setting that GGUF's llama does not have.
void check_is_llama(const ExportedModel& model) {
  const TransformerConfig& config = model.config;
  const auto demand = [](bool holds, const std::string& setting) {
    if (!holds)
      fail("export: a LLaMA in a GGUF file needs ", setting,
           ". Train a model with it, or export the run without --as.");
  };
  demand(model.attention == "softmax", text("attention.decoder = softmax, not ", model.attention));
  demand(model.tokenizer.kind() == "byte_pair",
         text("data.tokenizer = byte_pair, and this run's is of the kind ", model.tokenizer.kind()));
  demand(config.activation == Activation::swiglu && config.d_ff > 0, "model.activation = swiglu");
  demand(config.norm == NormPlace::pre, "model.norm = pre");
  demand(config.norm_scale == kernel::NormScale::rms, "model.norm_scale = rms");
  demand(is_rotary(config.position), "model.position = rope or rope_interleaved");
  demand(config.tie_embeddings != Tie::all, "model.tie_embeddings = output or none");
  const ProjectionBiases& bias = config.attention_bias;
  demand(!bias.query && !bias.key && !bias.value && !bias.output, "model.attention_bias = false");
  demand(!config.feed_forward_bias, "model.feed_forward_bias = false");
  demand(!config.output_bias || config.tie_embeddings == Tie::output, "model.output_bias = false");
  demand(!config.scale_embedding, "model.scale_embedding = false");
  demand(config.logit_scale == 1 && config.base_width == 0, "model.logit_scale = 1 and model.base_width = 0");
  demand(config.short_convolution == 0, "model.short_convolution = 0");
  const Modifiers& modifiers = config.modifiers;
  demand(modifiers.qk_norm == QkNorm::none && modifiers.softcap == 0 && modifiers.sink == Sink::none,
         "model.qk_norm = none, model.softcap = 0 and model.sink = none");
}

LlamaSizes sizes_of(const TransformerConfig& config, int64_t vocabulary) {
  const int64_t head_width = config.head_dim > 0 ? config.head_dim : config.d_model / config.heads;
  return {.vocabulary = vocabulary,
          .width = config.d_model,
          .layers = config.layers,
          .hidden = config.d_ff,
          .heads = config.heads,
          .kv_heads = config.kv_heads > 0 ? config.kv_heads : config.heads,
          .head_width = head_width,
          .max_length = config.max_length,
          .norm_epsilon = config.norm_epsilon,
          .rope_base = config.modifiers.position_base};
}

Json metadata_of(const ExportedModel& model, const LlamaSizes& sizes) {
  Json out = Json::object({{"general.architecture", "llama"},
                           {"general.type", "model"},
                           {"general.name", model.name},
                           {"general.file_type", 0},
                           {"llama.vocab_size", sizes.vocabulary},
                           {"llama.context_length", sizes.max_length},
                           {"llama.embedding_length", sizes.width},
                           {"llama.block_count", sizes.layers},
                           {"llama.feed_forward_length", sizes.hidden},
                           {"llama.attention.head_count", sizes.heads},
                           {"llama.attention.head_count_kv", sizes.kv_heads},
                           {"llama.attention.key_length", sizes.head_width},
                           {"llama.attention.value_length", sizes.head_width},
                           {"llama.rope.dimension_count", sizes.head_width},
                           {"llama.rope.freq_base", sizes.rope_base},
                           {"llama.attention.layer_norm_rms_epsilon", sizes.norm_epsilon}});
  const BytePairLists pairs = byte_pair_lists(model.tokenizer);
  Json::List kinds;  // 1: normal, 3: control, which no text becomes
  for (const std::string& token : pairs.tokens)
    kinds.push_back(token.size() > 2 && token.starts_with("<|") && token.ends_with("|>") ? 3 : 1);
  out.set("tokenizer.ggml.model", "gpt2");
  out.set("tokenizer.ggml.pre", pairs.pre_tokenizer == PreTokenizer::individual_digits ? "smollm" : "gpt-2");
  out.set("tokenizer.ggml.tokens", Json::List(pairs.tokens.begin(), pairs.tokens.end()));
  out.set("tokenizer.ggml.token_type", std::move(kinds));
  out.set("tokenizer.ggml.merges", Json::List(pairs.merges.begin(), pairs.merges.end()));
  out.set("tokenizer.ggml.add_bos_token", false);
  if (model.tokenizer.end() >= 0) {
    out.set("tokenizer.ggml.bos_token_id", model.tokenizer.end());
    out.set("tokenizer.ggml.eos_token_id", model.tokenizer.end());
  }
  return out;
}

/// Moves the rows of each head, so that numbers i and i + d / 2, which are rotated together, become
/// neighbours 2 i and 2 i + 1.
std::vector<float> interleaved(const std::vector<float>& rows, int64_t head_width, int64_t width) {
  std::vector<float> out(rows.size());
  const auto heads = static_cast<int64_t>(rows.size()) / (head_width * width);
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t row = 0; row < head_width; ++row) {
      const int64_t from = head * head_width + row % 2 * (head_width / 2) + row / 2;
      std::copy_n(rows.begin() + from * width, width, out.begin() + (head * head_width + row) * width);
    }
  }
  return out;
}

}  // namespace

std::string encode_llama(const ExportedModel& model) {
  check_is_llama(model);
  const LlamaSizes sizes = sizes_of(model.config, model.tokenizer.size());
  std::list<std::vector<float>> numbers;
  std::vector<GgufFloats> tensors;
  for (const auto& [gguf, heed, shape] : tensors_of(sizes, model.config.tie_embeddings == Tie::output)) {
    const TensorEntry& entry = model.weights.at(heed);
    if (entry.dtype != "f32" || entry.shape != shape)
      fail(Fault::data, model.weights.name(), ": tensor ", heed, " is ", entry.dtype,
           ", or of another shape than config.toml gives. Weights must be f32.");
    numbers.push_back(model.weights.array(heed).values<float>());
    const bool is_rotated = gguf.ends_with("attn_q.weight") || gguf.ends_with("attn_k.weight");
    if (is_rotated && model.config.position == PositionKind::rope)
      numbers.back() = interleaved(numbers.back(), sizes.head_width, sizes.width);
    tensors.push_back({gguf, shape, numbers.back()});
  }
  return encode_gguf(metadata_of(model, sizes), tensors);
}

}  // namespace heed

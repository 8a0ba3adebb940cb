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
                      words == "smollm" ? WordSplit::single_digits : WordSplit::gpt2, file.name());
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

}  // namespace heed

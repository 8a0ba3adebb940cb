// Names, shapes and settings of LLaMA models in GGUF files.
#include "heed/train/run/llama_gguf.h"

#include <list>

#include "heed/data/tokenizers/byte_pair.h"
#include "heed/train/run/llama_shape.h"
#include "heed/train/run/model_settings.h"
#include "heed/train/run/tensor_conversion.h"

namespace heed {
namespace {

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
                 .rope_base = settings.positive("llama.rope.freq_base", 10000),
                 .tied = file.find("output.weight") == nullptr};
  out.kv_heads = settings.count("llama.attention.head_count_kv", out.heads);
  out.head_width = settings.count("llama.attention.key_length", std::max<int64_t>(out.width / out.heads, 1));
  if (out.layers > max_tensors)
    fail(Fault::data, file.name(), ": llama.block_count is ", out.layers, ", and a file has at most ",
         max_tensors, " tensors.");
  settings.demand("llama.attention.value_length", out.head_width, "keys and values are equally wide");
  settings.demand("llama.rope.dimension_count", out.head_width, "a head is rotated as a whole");
  return out;
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
  ModelSettings(file.metadata(), file.name())
      .demand("tokenizer.ggml.add_bos_token", false, "texts begin with no start token");
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
  out.settings = llama_settings(sizes, PositionKind::rope_interleaved);
  TensorConversion conversion(file, "a LLaMA without biases, experts and scaled positions");
  for (const LlamaTensor& one : llama_tensors(sizes))
    conversion.put(one.heed, conversion.take(one.gguf, one.shape));
  out.weights = conversion.encode();
  return out;
}

namespace {

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
  Json::List kinds(pairs.tokens.size(), 1);  // 1: normal, 3: control, which no text becomes
  for (const auto& [id, content] : pairs.special) kinds[static_cast<size_t>(id)] = 3;
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

}  // namespace

std::string encode_llama(const ExportedModel& model) {
  demand_byte_pairs(model, "a LLaMA in a GGUF file");
  const LlamaSizes sizes = llama_sizes(model, "a GGUF file");
  std::list<std::vector<float>> numbers;
  std::vector<GgufFloats> tensors;
  for (const LlamaTensor& one : llama_tensors(sizes)) {
    numbers.push_back(llama_numbers(model, one, sizes, PositionKind::rope_interleaved));
    tensors.push_back({one.gguf, one.shape, numbers.back()});
  }
  return encode_gguf(metadata_of(model, sizes), tensors);
}

}  // namespace heed

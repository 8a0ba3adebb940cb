// config.json and model.safetensors of a LLaMA.
#include "heed/train/run/llama_huggingface.h"

#include <algorithm>
#include <list>

#include "heed/train/run/model_settings.h"
#include "heed/train/run/tensor_conversion.h"

namespace heed {

LlamaSizes parse_llama_config(const Json& json, const std::string& name) {
  const ModelSettings members(json, name);
  members.demand("model_type", "llama", "other models have other parts");
  members.demand("hidden_act", "silu", "the feed-forward network is SwiGLU");
  members.demand("attention_bias", false, "the projections have no biases");
  members.demand("mlp_bias", false, "the feed-forward network has no biases");
  LlamaSizes out{.vocabulary = members.count("vocab_size"),
                 .width = members.count("hidden_size"),
                 .layers = members.count("num_hidden_layers"),
                 .hidden = members.count("intermediate_size"),
                 .heads = members.count("num_attention_heads"),
                 .max_length = members.count("max_position_embeddings"),
                 .norm_epsilon = members.fraction("rms_norm_eps", 1e-6)};
  out.kv_heads = members.count("num_key_value_heads", out.heads);
  out.head_width = members.count("head_dim", std::max<int64_t>(out.width / out.heads, 1));
  const Json* tied = json.find("tie_word_embeddings");
  out.tied = tied != nullptr && !tied->is_null() && tied->boolean();
  // Transformers 5 keeps the base of positions in an object of its own, older versions beside the sizes.
  const Json* nested = json.find("rope_parameters");
  const bool is_nested = nested != nullptr && nested->is_object();
  const std::string place = is_nested ? name + ": rope_parameters" : name;
  const ModelSettings positions(is_nested ? *nested : json, place);
  if (is_nested) positions.demand("rope_type", "default", "positions are not scaled");
  out.rope_base = positions.positive("rope_theta", members.positive("rope_theta", 10000));
  const Json* scaling = json.find("rope_scaling");
  if (scaling != nullptr && !scaling->is_null()) {
    const std::string where = name + ": rope_scaling";
    const ModelSettings scaled(*scaling, where);
    scaled.demand("rope_type", "default", "positions are not scaled");
    scaled.demand("type", "default", "positions are not scaled");
  }
  if (out.layers > max_tensors)
    fail(Fault::data, name, ": num_hidden_layers is ", out.layers, ", and a file has at most ", max_tensors,
         " tensors.");
  return out;
}

std::string llama_weights(const TensorFiles& files, const LlamaSizes& sizes) {
  TensorConversion conversion(files, "a LLaMA of that config.json");
  // Older files hold the angles of positions, which follow from the base.
  conversion.leave_out([](std::string_view name) { return name.ends_with(".rotary_emb.inv_freq"); });
  if (sizes.tied) conversion.leave_out([](std::string_view name) { return name == "lm_head.weight"; });
  for (const LlamaTensor& one : llama_tensors(sizes))
    conversion.put(one.heed, conversion.take(one.huggingface, one.shape));
  return conversion.encode();
}

LlamaFiles encode_llama_folder(const ExportedModel& model) {
  constexpr const char* place = "a folder of Hugging Face's Transformers";
  demand_folder_tokenizer(model, text("a LLaMA in ", place));
  const LlamaSizes sizes = llama_sizes(model, place);
  std::list<std::vector<float>> numbers;
  std::vector<TensorBytes> tensors;
  for (const LlamaTensor& one : llama_tensors(sizes)) {
    numbers.push_back(llama_numbers(model, one, sizes, PositionKind::rope));
    tensors.push_back({one.huggingface, "F32", one.shape, std::as_bytes(std::span(numbers.back()))});
  }
  Json config = Json::object({
      {"architectures", Json::List{"LlamaForCausalLM"}},
      {"model_type", "llama"},
      {"hidden_act", "silu"},
      {"vocab_size", sizes.vocabulary},
      {"hidden_size", sizes.width},
      {"intermediate_size", sizes.hidden},
      {"num_hidden_layers", sizes.layers},
      {"num_attention_heads", sizes.heads},
      {"num_key_value_heads", sizes.kv_heads},
      {"head_dim", sizes.head_width},
      {"max_position_embeddings", sizes.max_length},
      {"rms_norm_eps", sizes.norm_epsilon},
      {"rope_theta", sizes.rope_base},  // Transformers 4 reads this one.
      {"rope_parameters", Json::object({{"rope_type", "default"}, {"rope_theta", sizes.rope_base}})},
      {"attention_bias", false},
      {"mlp_bias", false},
      {"tie_word_embeddings", sizes.tied},
      {"torch_dtype", "float32"},
  });
  set_token_ids(config, model.tokenizer);
  return {.config = std::move(config), .weights = encode_safetensors(tensors, {{"format", "pt"}})};
}

}  // namespace heed

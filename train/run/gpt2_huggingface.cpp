// config.json and model.safetensors of a GPT-2.
#include "heed/train/run/gpt2_huggingface.h"

#include "heed/train/run/model_settings.h"

namespace heed {
namespace {

constexpr std::string_view optional_prefix = "transformer.";

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

Gpt2Weights gpt2_weights(const TensorFiles& files, const Gpt2Config& config) {
  TensorConversion conversion(files, "a GPT-2 of that config.json");
  Gpt2Spelling spelling;
  if (conversion.has_prefix(optional_prefix)) spelling.prefix = optional_prefix;
  Gpt2Weights out;
  out.tied = convert_gpt2(conversion, config, spelling);
  out.bytes = conversion.encode();
  return out;
}

namespace {

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
  set_token_ids(out, model.tokenizer);
  return out;
}

}  // namespace

Gpt2Files encode_gpt2(const ExportedModel& model) {
  demand_folder_tokenizer(model, "a GPT-2");
  const Gpt2Config sizes = gpt2_sizes(model, {.name = "a GPT-2"});
  const auto made = gpt2_tensors(model, sizes, {.prefix = std::string(optional_prefix)});
  std::vector<TensorBytes> list;
  for (const auto& [name, tensor] : made)
    list.push_back({name, "F32", tensor.shape, std::as_bytes(std::span(tensor.numbers))});
  return {.config = config_of(sizes, model, model.config.tie_embeddings == Tie::output),
          .weights = encode_safetensors(list, {{"format", "pt"}})};
}

}  // namespace heed

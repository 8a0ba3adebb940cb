// What every format of another program asks of a model.
#include "heed/train/run/exported_model.h"

namespace heed {

void demand_setting(bool holds, const std::string& model, const std::string& setting) {
  if (!holds)
    fail("export: ", model, " needs ", setting, ". Train a model with it, or export the run without --as.");
}

void demand_byte_pairs(const ExportedModel& exported, const std::string& model) {
  demand_setting(
      exported.tokenizer.kind() == "byte_pair", model,
      text("data.tokenizer = byte_pair, and this run's is of the kind ", exported.tokenizer.kind()));
}

void demand_folder_tokenizer(const ExportedModel& exported, const std::string& model) {
  const std::string kind = exported.tokenizer.kind();
  demand_setting(kind == "byte_pair" || kind == "tokenizer_json", model,
                 text("data.tokenizer = byte_pair or tokenizer_json, and this run's is of the kind ", kind));
}

void demand_common_parts(const TransformerConfig& config, const std::string& model) {
  const auto demand = [&](bool holds, const std::string& setting) { demand_setting(holds, model, setting); };
  demand(config.d_ff > 0, "model.d_ff above 0");
  demand(config.logit_scale == 1 && config.base_width == 0, "model.logit_scale = 1 and model.base_width = 0");
  demand(config.short_convolution == 0, "model.short_convolution = 0");
  const Modifiers& modifiers = config.modifiers;
  demand(modifiers.qk_norm == QkNorm::none && modifiers.softcap == 0 && modifiers.sink == Sink::none,
         "model.qk_norm = none, model.softcap = 0 and model.sink = none");
}

void demand_shared_shape(const ExportedModel& exported, const std::string& model) {
  const TransformerConfig& config = exported.config;
  const auto demand = [&](bool holds, const std::string& setting) { demand_setting(holds, model, setting); };
  demand(exported.attention == "softmax" || !exported.attention_code.is_null(),
         text("attention.decoder = softmax (linear and fastmax: --as huggingface --code), not ",
              exported.attention));
  demand(config.norm == NormPlace::pre, "model.norm = pre");
  demand(config.tie_embeddings != Tie::all, "model.tie_embeddings = output or none");
  demand(!config.output_bias || config.tie_embeddings == Tie::output, "model.output_bias = false");
  demand(!config.tied_output_bias, "model.tied_output_bias = false");
  demand(!config.scale_embedding, "model.scale_embedding = false");
  demand_common_parts(config, model);
}

void set_token_ids(Json& config, const Tokenizer& tokenizer) {
  const auto id_or_null = [](int32_t id) { return id >= 0 ? Json(id) : Json(); };
  config.set("bos_token_id", id_or_null(tokenizer.start() >= 0 ? tokenizer.start() : tokenizer.end()));
  config.set("eos_token_id", id_or_null(tokenizer.end()));
}

std::vector<float> exported_numbers(const ExportedModel& model, const std::string& tensor,
                                    const std::vector<int64_t>& shape) {
  const TensorEntry& entry = model.weights.at(tensor);
  if (entry.dtype != "f32" || entry.shape != shape)
    fail(Fault::data, model.weights.name(), ": tensor ", tensor, " is ", entry.dtype,
         ", or of another shape than config.toml gives. Weights must be f32.");
  return model.weights.floats(entry);
}

}  // namespace heed

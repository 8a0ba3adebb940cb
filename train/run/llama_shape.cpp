// The table of LLaMA's tensors, its settings, and what a model must be to be written as one.
#include "heed/train/run/llama_shape.h"

#include <algorithm>

namespace heed {

std::vector<LlamaTensor> llama_tensors(const LlamaSizes& sizes) {
  const int64_t width = sizes.width, queries = sizes.heads * sizes.head_width,
                keys = sizes.kv_heads * sizes.head_width;
  const std::vector<int64_t> table{sizes.vocabulary, width};
  std::vector<LlamaTensor> out{
      {"token_embd.weight", "model.embed_tokens.weight", "embedder.tokens.weight", table},
      {"output_norm.weight", "model.norm.weight", "decoder.norm.gain", {width}}};
  if (!sizes.tied) out.push_back({"output.weight", "lm_head.weight", "output.weight", table});
  const LlamaTensor in_block[] = {
      {"attn_norm.weight", "input_layernorm.weight", "attention_norm.gain", {width}},
      {"attn_q.weight", "self_attn.q_proj.weight", "attention.query.weight", {queries, width}},
      {"attn_k.weight", "self_attn.k_proj.weight", "attention.key.weight", {keys, width}},
      {"attn_v.weight", "self_attn.v_proj.weight", "attention.value.weight", {keys, width}},
      {"attn_output.weight", "self_attn.o_proj.weight", "attention.output.weight", {width, queries}},
      {"ffn_norm.weight", "post_attention_layernorm.weight", "forward_norm.gain", {width}},
      {"ffn_gate.weight", "mlp.gate_proj.weight", "feed_forward.gate.weight", {sizes.hidden, width}},
      {"ffn_up.weight", "mlp.up_proj.weight", "feed_forward.up.weight", {sizes.hidden, width}},
      {"ffn_down.weight", "mlp.down_proj.weight", "feed_forward.down.weight", {width, sizes.hidden}},
  };
  for (int64_t layer = 0; layer < sizes.layers; ++layer) {
    for (const auto& [gguf, huggingface, heed, shape] : in_block)
      out.push_back({text("blk.", layer, ".", gguf), text("model.layers.", layer, ".", huggingface),
                     text("decoder.blocks.", layer, ".", heed), shape});
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> llama_settings(const LlamaSizes& sizes,
                                                                PositionKind position) {
  return {{"model.d_model", text(sizes.width)},
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
          {"model.position", position == PositionKind::rope ? "rope" : "rope_interleaved"},
          {"model.position_base", text(static_cast<float>(sizes.rope_base))},
          {"model.tie_embeddings", sizes.tied ? "output" : "none"},
          {"model.scale_embedding", "false"},
          {"model.attention_bias", "false"},
          {"model.feed_forward_bias", "false"},
          {"model.output_bias", "false"},
          {"data.tokenizer", "byte_pair"},
          {"train.batch_size", "4"},
          {"train.learning_rate", "5e-5"}};
}

LlamaSizes llama_sizes(const ExportedModel& model, const std::string& format) {
  const TransformerConfig& config = model.config;
  const std::string name = "a LLaMA in " + format;
  const auto demand = [&](bool holds, const std::string& setting) { demand_setting(holds, name, setting); };
  demand_shared_shape(model, name);
  demand(config.activation == Activation::swiglu, "model.activation = swiglu");
  demand(config.norm_scale == kernel::NormScale::rms, "model.norm_scale = rms");
  demand(is_rotary(config.position), "model.position = rope or rope_interleaved");
  const ProjectionBiases& bias = config.attention_bias;
  demand(!bias.query && !bias.key && !bias.value && !bias.output, "model.attention_bias = false");
  demand(!config.feed_forward_bias, "model.feed_forward_bias = false");
  return {.vocabulary = model.tokenizer.size(),
          .width = config.d_model,
          .layers = config.layers,
          .hidden = config.d_ff,
          .heads = config.heads,
          .kv_heads = config.kv_heads > 0 ? config.kv_heads : config.heads,
          .head_width = config.head_dim > 0 ? config.head_dim : config.d_model / config.heads,
          .max_length = config.max_length,
          .norm_epsilon = config.norm_epsilon,
          .rope_base = config.modifiers.position_base,
          .tied = config.tie_embeddings == Tie::output};
}

std::vector<float> llama_numbers(const ExportedModel& model, const LlamaTensor& tensor,
                                 const LlamaSizes& sizes, PositionKind position) {
  const std::vector<float> rows = exported_numbers(model, tensor.heed, tensor.shape);
  const bool is_rotated = tensor.gguf.ends_with("attn_q.weight") || tensor.gguf.ends_with("attn_k.weight");
  if (!is_rotated || model.config.position == position) return rows;
  // Numbers i and i + d / 2 of a head are rotated together by rope, 2 i and 2 i + 1 by rope_interleaved.
  const bool to_halves = position == PositionKind::rope;
  const int64_t half = sizes.head_width / 2;
  std::vector<float> out(rows.size());
  for (int64_t at = 0; at < tensor.shape[0]; ++at) {
    const int64_t row = at % sizes.head_width, head = at - row;
    const int64_t from = head + (to_halves ? row % half * 2 + row / half : row % 2 * half + row / 2);
    std::copy_n(rows.begin() + from * sizes.width, sizes.width, out.begin() + at * sizes.width);
  }
  return out;
}

}  // namespace heed

// TransformerConfig: its settings and their checks.
#include "heed/nn/transformer.h"

#include "heed/core/settings_in_errors.h"

namespace heed {
namespace {

constexpr int64_t max_taps = 16;  // limit of model.short_convolution

}  // namespace

void TransformerConfig::fields(Fields& f) {
  f("d_model", d_model, {1, max_width}, "width of the model: of embeddings and of the outputs of all blocks");
  f("heads", heads, {1, max_width}, "attention heads; must divide d_model, unless head_dim is given");
  f("kv_heads", kv_heads, {0, max_width},
    "key-value heads, each shared by a group of heads; must divide heads; 0: as many as heads");
  f("head_dim", head_dim, {0, max_width},
    "width of the queries, keys and values of one head; 0: d_model / heads");
  f("d_ff", d_ff, {0, max_positions},
    "hidden width of the feed-forward network; 0: blocks without one, as in the preset mqar");
  f("layers", layers, {1, max_layers}, "blocks in each stack");
  f("max_length", max_length, {1, max_positions}, "maximum input length in tokens");
  f("dropout", dropout, "on residual branches and the feed-forward network");
  f("attention_dropout", attention_dropout, {"dropout", dropout},
    "on attention weights; unless set: dropout");
  f("embedding_dropout", embedding_dropout, {"dropout", dropout}, "on embeddings; unless set: dropout");
  f("activation", Choice(activation, {"relu", "gelu", "gelu_tanh", "silu", "swiglu", "geglu"}),
    "activation function of the feed-forward network; swiglu and geglu add a gate, a third layer");
  f("norm", Choice(norm, {"pre", "post"}), "where a block normalises");
  f("norm_scale", Choice(norm_scale, {"variance", "deviation", "rms"}),
    "divide by sqrt(variance + eps), or by sample deviation + eps; rms: by sqrt(mean of squares + eps), and "
    "no mean is subtracted (RMS norm)");
  f("norm_epsilon", norm_epsilon, "epsilon inside the norm");
  f("position",
    Choice(position, {"none", "sinusoid", "sinusoid_halves", "learned", "rope", "rope_interleaved", "alibi",
                      "t5", "shaw", "shaw_keys"}),
    "position encoding: added to embeddings, or (from rope on) inside self-attention; sinusoid_halves: sines "
    "in the first half of the features, cosines in the second");
  f("position_base", modifiers.position_base, "rope: the slowest pair takes about this many positions");
  f("position_buckets", modifiers.position_buckets, {2, max_width}, "t5: number of distance buckets");
  f("position_span", modifiers.position_span, {1, max_distance},
    "t5 and shaw: distances from here on are treated alike");
  f("qk_norm", Choice(modifiers.qk_norm, {"none", "rms", "l2"}),
    "normalise queries and keys, with a trained gain");
  f("softcap", modifiers.softcap, "cap on scores s: cap * tanh(s / cap); 0: none");
  f("sink", Choice(modifiers.sink, {"none", "zero", "learned"}),
    "extra score in each softmax, without a value");
  f("init", Choice(init, {"xavier", "normal", "fan_in", "xavier_fan_in"}),
    "initial weights; fan_in draws biases, too, as PyTorch does by default; xavier_fan_in draws only these "
    "so");
  f("identity_projections", identity_projections,
    "start the query, key and value projections of all attentions as the identity matrix");
  f("tie_embeddings", Choice(tie_embeddings, {"none", "output", "all"}),
    "share the output layer with the decoder embedding, or with both embeddings");
  f("scale_embedding", scale_embedding, "multiply embeddings by sqrt(d_model)");
  f("embedding_std", embedding_std, "standard deviation of the initial token embeddings; 0: as init says");
  f("position_deviation", position_deviation, "standard deviation of initial learned positions");
  f("attention_bias",
    WordSet({{"query", attention_bias.query},
             {"key", attention_bias.key},
             {"value", attention_bias.value},
             {"output", attention_bias.output}}),
    "bias on the attention projections: true for all, or some, as query,key,value");
  f("feed_forward_bias", feed_forward_bias, "bias in the feed-forward network");
  f("norm_bias", norm_bias, "bias in the norms; no effect with norm_scale = rms, which has none");
  f("output_bias", output_bias, "bias of an output layer of its own");
  f("tied_output_bias", tied_output_bias, "bias of an output layer that shares its table with an embedding");
  f("logit_scale", logit_scale, "multiplies the logits; above 0");
  f("base_width", base_width, {0, max_width},
    "width at which the learning rate was tuned: it then fits d_model, too (mu-P); needs init = normal, and "
    "the head_dim of that width; 0: off");
  f("short_convolution", short_convolution, {0, max_taps},
    "taps of a depthwise convolution on the input of each self-attention, up to the token in decoders and "
    "around it in encoders; 0: none");
}

const TransformerConfig& TransformerConfig::check() const {
  TransformerConfig copy = *this;  // fields() needs a mutable object
  check_ranges(copy, "model.");
  if (head_dim == 0 && d_model % heads != 0) {
    const int64_t below = d_model / heads * heads;
    fail("model.heads = ", heads, " does not divide model.d_model = ", d_model,
         ". Use a divisor of it, or d_model ", below > 0 ? text(below, " or ") : std::string(), below + heads,
         ", or give each head a size: model.head_dim.");
  }
  const Modifiers& m = modifiers;
  if (kv_heads > 0 && heads % kv_heads != 0) {
    fail("model.kv_heads = ", kv_heads, " does not divide model.heads = ", heads,
         ". Use a divisor of it, or 0 for as many.");
  }
  if (!(m.position_base > 1)) fail("model.position_base = ", m.position_base, ". It must be above 1.");
  if (m.position_buckets % 2 != 0)
    fail("model.position_buckets = ", m.position_buckets, ". It must be even.");
  if (position == PositionKind::t5 && m.position_span <= m.position_buckets / 2) {
    fail("model.position_span = ", m.position_span,
         ". It must be above half of position_buckets = ", m.position_buckets,
         ", or nothing is left to share.");
  }
  if (!(m.softcap >= 0)) fail("model.softcap = ", m.softcap, ". It must be above 0, or 0 for none.");
  const auto probability = [](const char* name, double value) {
    if (!(value >= 0 && value < 1))
      fail("model.", name, " = ", value, ". It must be at least 0 and below 1.");
  };
  probability("dropout", dropout);
  probability("attention_dropout", dropout_of_weights());
  probability("embedding_dropout", dropout_of_embeddings());
  if (!(embedding_std >= 0))
    fail("model.embedding_std = ", embedding_std, ". It must be above 0, or 0 for init's.");
  if (!(position_deviation >= 0 && position_deviation < 1e3))
    fail("model.position_deviation = ", position_deviation, ". It must be at least 0, such as 0.02 or 1.");
  if (!(norm_epsilon > 0)) fail("model.norm_epsilon = ", norm_epsilon, ". It must be above 0, such as 1e-5.");
  if (!(logit_scale > 0))
    fail("model.logit_scale = ", logit_scale, ". It must be above 0; 1 changes nothing.");
  if (tied_output_bias && tie_embeddings == Tie::none)
    fail(
        "model.tied_output_bias = true needs model.tie_embeddings = output or all. With none, the bias is "
        "model.output_bias.");
  if (base_width > 0 && (init != Init::normal || identity_projections))
    fail("model.base_width = ", base_width,
         " needs model.init = normal and no model.identity_projections: the other ones depend on the width.");
  return *this;
}

LayerNorm::Options TransformerConfig::norm_options() const {
  const bool has_bias = norm_bias && norm_scale != kernel::NormScale::rms;
  return {.bias = has_bias, .epsilon = norm_epsilon, .scale = norm_scale};
}

AttentionConfig TransformerConfig::attention_config() const {
  return {.d_model = d_model,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = head_dim,
          .max_length = max_length,
          .dropout = dropout_of_weights(),
          .query_bias = attention_bias.query,
          .key_bias = attention_bias.key,
          .value_bias = attention_bias.value,
          .output_bias = attention_bias.output,
          .init = init,
          .modifiers = modifiers};
}

}  // namespace heed

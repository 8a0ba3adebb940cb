// Transformer configuration, embedder, stack of blocks, and encoder-decoder.
#include "heed/nn/transformer.h"

#include <cmath>

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
  f("d_ff", d_ff, {1, max_positions}, "hidden width of the feed-forward network");
  f("layers", layers, {1, max_layers}, "blocks in each stack");
  f("max_length", max_length, {1, max_positions}, "maximum input length in tokens");
  f("dropout", dropout, "on embeddings, residual branches and the feed-forward network");
  f("attention_dropout", attention_dropout, {"dropout", dropout},
    "on attention weights; unless set: dropout");
  f("activation", Choice(activation, {"relu", "gelu", "gelu_tanh", "silu", "swiglu", "geglu"}),
    "activation function of the feed-forward network; swiglu and geglu add a gate, a third layer");
  f("norm", Choice(norm, {"pre", "post"}), "where a block normalises");
  f("norm_scale", Choice(norm_scale, {"variance", "deviation", "rms"}),
    "divide by sqrt(variance + eps), or by sample deviation + eps; rms: by sqrt(mean of squares + eps), and "
    "no mean is subtracted (RMS norm)");
  f("norm_epsilon", norm_epsilon, "epsilon inside the norm");
  f("position",
    Choice(position,
           {"none", "sinusoid", "learned", "rope", "rope_interleaved", "alibi", "t5", "shaw", "shaw_keys"}),
    "position encoding: added to embeddings, or (from rope on) inside self-attention");
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
  f("logit_scale", logit_scale, "multiplies the logits; above 0");
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
  if (!(embedding_std >= 0))
    fail("model.embedding_std = ", embedding_std, ". It must be above 0, or 0 for init's.");
  if (!(position_deviation >= 0 && position_deviation < 1e3))
    fail("model.position_deviation = ", position_deviation, ". It must be at least 0, such as 0.02 or 1.");
  if (!(norm_epsilon > 0)) fail("model.norm_epsilon = ", norm_epsilon, ". It must be above 0, such as 1e-5.");
  if (!(logit_scale > 0))
    fail("model.logit_scale = ", logit_scale, ". It must be above 0; 1 changes nothing.");
  return *this;
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

namespace {

LayerNorm::Options norm_options(const TransformerConfig& c) {
  const bool has_bias = c.norm_bias && c.norm_scale != kernel::NormScale::rms;
  return {.bias = has_bias, .epsilon = c.norm_epsilon, .scale = c.norm_scale};
}

BlockOptions block_options(const TransformerConfig& c, double out_gain, bool causal) {
  return {.width = c.d_model,
          .feed_forward = c.d_ff,
          .dropout = c.dropout,
          .norm_place = c.norm,
          .norm = norm_options(c),
          .forward = {.activation = c.activation,
                      .dropout = c.dropout,
                      .bias = c.feed_forward_bias,
                      .init = c.init,
                      .out_gain = out_gain},
          .short_convolution = c.short_convolution,
          .causal = causal};
}

}  // namespace

Embedder::Embedder(int64_t vocabulary, const TransformerConfig& config, Rng& rng)
    : tokens(vocabulary, config.check().d_model, config.init, rng, config.embedding_std),
      position(config.position, config.max_length, config.d_model, rng, config.position_deviation),
      scale_(config.scale_embedding ? std::sqrt(static_cast<double>(config.d_model)) : 1),
      dropout_(config.dropout) {}

Tensor Embedder::operator()(const Tensor& ids, int64_t first, Rng* rng) const {
  const ModuleScope within(this);
  return dropout(position(vectors(ids), first), dropout_, rng);
}

Tensor Embedder::packed(const Tensor& ids, const Packing& packing, Rng* rng) const {
  const ModuleScope within(this);
  const Tensor tokens_of_ids = packing.packed(reshape(ids, Shape{ids.extent(0), ids.extent(1), 1}));
  const Tensor x = vectors(reshape(tokens_of_ids, Shape{1, -1}));
  return dropout(position.at(x, packing), dropout_, rng, packing.places);
}

Tensor Embedder::vectors(const Tensor& ids, const Tensor& more) const {
  const Tensor x = more ? embedding(concat(std::vector<Tensor>{tokens.weight, more}, 0), ids) : tokens(ids);
  return scale_ == 1 ? x : x * scale_;
}

void Embedder::fields(Fields& f) {
  f("tokens", tokens);
  f("position", position);
}

TransformerStack::TransformerStack(const TransformerConfig& config, Role role, const AttentionFactory& self,
                                   const AttentionFactory& cross, Rng& rng) {
  config.check();
  // GPT-2 initialises the last layer of each residual branch smaller, so that their sum keeps its scale.
  const int64_t branches = config.layers * (role.cross ? 3 : 2);
  const double out_gain = config.init == Init::normal ? 1 / std::sqrt(static_cast<double>(branches)) : 1;
  const auto shared_by_self = std::make_shared<SharedByLayers>(),
             shared_by_cross = std::make_shared<SharedByLayers>();
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    AttentionConfig attention = config.attention_config();
    attention.causal = role.causal;
    attention.layer = layer;
    attention.layers = config.layers;
    attention.output_gain = out_gain;
    attention.shared = shared_by_self;
    if (inside_attention(config.position)) attention.modifiers.position = config.position;
    auto self_attention = self(attention, rng);
    attention.causal = false;
    attention.cross = true;
    attention.shared = shared_by_cross;
    attention.modifiers.position = PositionKind::none;  // positions in two sequences have no distance
    auto cross_attention = role.cross ? cross(attention, rng) : nullptr;
    if (config.identity_projections) {
      set_identity_projections(*self_attention);
      if (cross_attention) set_identity_projections(*cross_attention);
    }
    blocks.push_back(std::make_unique<Block>(block_options(config, out_gain, role.causal),
                                             std::move(self_attention), std::move(cross_attention), rng));
  }
  if (config.norm == NormPlace::pre) norm = std::make_unique<LayerNorm>(config.d_model, norm_options(config));
}

Tensor TransformerStack::operator()(const Tensor& input, const Mask& mask, const Tensor& encoded,
                                    const Mask& encoded_mask, std::vector<BlockCache>* cache,
                                    const ForwardContext& context) const {
  const ModuleScope within(this);
  if (cache != nullptr && cache->size() != blocks.size())
    fail("decode: a state with ", cache->size(), " caches for a model of ", blocks.size(),
         " blocks. Begin with start() of the model.");
  Tensor x = input;
  for (size_t i = 0; i < blocks.size(); ++i) {
    x = (*blocks[i])(x, mask, encoded, encoded_mask, cache != nullptr ? &(*cache)[i] : nullptr, context);
  }
  return norm ? (*norm)(x) : x;
}

std::vector<Tensor> TransformerStack::outputs(const Tensor& input, const Mask& mask, const Tensor& encoded,
                                              const Mask& encoded_mask, const ForwardContext& context) const {
  const ModuleScope within(this);
  const auto finished = [&](const Tensor& x) { return norm ? (*norm)(x) : x; };
  Tensor x = input;
  std::vector<Tensor> out{finished(x)};
  for (const auto& block : blocks) {
    x = (*block)(x, mask, encoded, encoded_mask, nullptr, context);
    out.push_back(finished(x));
  }
  return out;
}

std::vector<BlockCache> TransformerStack::new_cache() const {
  std::vector<BlockCache> cache;
  for (const auto& block : blocks) cache.push_back(block->new_cache());
  return cache;
}

void TransformerStack::fields(Fields& f) {
  f("blocks", blocks);
  f("norm", norm);
}

void Decoding::reorder(const std::vector<int32_t>& order) {
  const Tensor index = Tensor::of<int32_t>(order, Shape{static_cast<int64_t>(order.size())});
  for (BlockCache& block : cache) {
    for (AttentionCache* one : {block.self.get(), block.cross.get(), block.convolution.get()})
      if (one != nullptr) heed::reorder(*one, index);
  }
  for (Tensor& tensor : tensors)
    if (tensor) tensor = rows_in_order(tensor, index);
  if (encoded) encoded = rows_in_order(encoded, index);
  if (source.key_lengths()) {
    std::vector<int32_t> lengths;
    const std::vector<double> old = source.key_lengths().to_doubles();
    for (int32_t i : order) lengths.push_back(static_cast<int32_t>(old.at(static_cast<size_t>(i))));
    source = Mask::lengths(Tensor::of<int32_t>(lengths, index.shape(), source.key_lengths().device()));
  }
}

Decoding AutoregressiveModel::start() const {
  fail(
      "start(): this model has no state of its own to start from. Give one, such as start(encoded, lengths) "
      "of "
      "a translator; a model of your own overrides start().");
}

Tensor TranslationModel::decode_at(const Tensor& target, const Tensor& encoded, const Tensor& lengths,
                                   const Tensor& places, const ForwardContext& context) const {
  const Tensor hidden = decode(target, encoded, lengths, context);
  return embedding(reshape(hidden, Shape{-1, hidden.extent(-1)}), places);
}

std::unique_ptr<Linear> tie_tables(const TransformerConfig& config, Embedder& source, Embedder& target,
                                   Rng& rng) {
  const int64_t words = target.tokens.weight.extent(0);
  if (config.tie_embeddings == Tie::all) {
    if (source.tokens.weight.extent(0) != words) {
      fail("model.tie_embeddings = all needs one vocabulary, but the source has ",
           source.tokens.weight.extent(0), " tokens and the target ", words, ". Use a joint vocabulary",
           advice(" (--tokenizer unigram)", ""), " or model.tie_embeddings = output.");
    }
    source.tokens.weight = target.tokens.weight;
  }
  if (config.tie_embeddings != Tie::none) return nullptr;
  return std::make_unique<Linear>(config.d_model, words, rng,
                                  LinearOptions{.bias = config.output_bias, .init = config.init});
}

Tensor output_logits(const std::unique_ptr<Linear>& output, const Embedder& embedder, const Tensor& hidden,
                     double scale) {
  const Tensor logits = output ? (*output)(hidden) : linear(hidden, embedder.tokens.weight, {});
  return scale == 1 ? logits : logits * scale;
}

Tensor last_position(const Tensor& hidden) {
  const int64_t length = hidden.extent(1);
  return reshape(slice(hidden, 1, length - 1, length), Shape{hidden.extent(0), -1});
}

EncoderDecoder::EncoderDecoder(const TransformerConfig& config, int64_t source_vocabulary,
                               int64_t target_vocabulary, const Attentions& attentions, Rng& rng)
    : source(source_vocabulary, config, rng),
      target(target_vocabulary, config, rng),
      encoder(config, {}, attentions.encoder, {}, rng),
      decoder(config, {.causal = true, .cross = true}, attentions.decoder, attentions.cross, rng),
      output(tie_tables(config, source, target, rng)),
      max_length_(config.max_length),
      logit_scale_(config.logit_scale) {}

Tensor EncoderDecoder::encode(const Tensor& ids, const Tensor& lengths, const ForwardContext& context) const {
  if (const auto packing = context.packing(lengths, ids.extent(1))) {
    const Tensor x = source.packed(ids, *packing, context.rng);
    return packing->padded(encoder(x, Mask::packed(packing), {}, {}, nullptr, context));
  }
  return encoder(source(ids, 0, context.rng), Mask::lengths(lengths), {}, {}, nullptr, context);
}

Tensor EncoderDecoder::decode(const Tensor& ids, const Tensor& encoded, const Tensor& lengths,
                              const ForwardContext& context) const {
  return decoder(target(ids, 0, context.rng), Mask::causal(), encoded, Mask::lengths(lengths), nullptr,
                 context);
}

Tensor EncoderDecoder::decode_at(const Tensor& ids, const Tensor& encoded, const Tensor& lengths,
                                 const Tensor& places, const ForwardContext& context) const {
  const auto targets = Packing::of_places(places, ids.extent(0), ids.extent(1));
  if (!targets || !context.packing(targets->lengths, ids.extent(1)))
    return TranslationModel::decode_at(ids, encoded, lengths, places, context);
  const auto sources = context.packing(lengths, encoded.extent(1));
  const Mask cross = Mask::packed(targets, sources);
  const Tensor hidden =
      decoder(target.packed(ids, *targets, context.rng), Mask::packed(targets) & Mask::causal(),
              sources ? sources->packed(encoded) : encoded, sources ? cross : cross & Mask::lengths(lengths),
              nullptr, context);
  return reshape(hidden, Shape{targets->num_tokens(), hidden.extent(2)});
}

Tensor EncoderDecoder::logits(const Tensor& hidden) const {
  return output_logits(output, target, hidden, logit_scale_);
}

Decoding EncoderDecoder::start(const Tensor& encoded, const Tensor& lengths) const {
  return {.cache = decoder.new_cache(), .source = Mask::lengths(lengths), .encoded = encoded};
}

Tensor EncoderDecoder::next(const Tensor& ids, Decoding& state) const {
  const Tensor hidden = decoder(target(ids, state.length, nullptr), Mask::causal(), state.encoded,
                                state.source, &state.cache, {.editor = state.editor});
  state.encoded = Tensor();
  state.length += ids.extent(1);
  return logits(last_position(hidden));
}

std::vector<Tensor> EncoderDecoder::layer_logits(const Tensor& ids, const Tensor& encoded,
                                                 const Tensor& lengths) const {
  std::vector<Tensor> out =
      decoder.outputs(target(ids, 0, nullptr), Mask::causal(), encoded, Mask::lengths(lengths), {});
  for (Tensor& x : out) x = logits(x);
  return out;
}

void EncoderDecoder::fields(Fields& f) {
  f("source", source);
  f("target", target);
  f("encoder", encoder);
  f("decoder", decoder);
  f("output", output);
}

DecoderOnly::DecoderOnly(const TransformerConfig& config, int64_t vocabulary,
                         const AttentionFactory& attention, Rng& rng)
    : embedder(vocabulary, config, rng),
      decoder(config, {.causal = true}, attention, {}, rng),
      output(tie_tables(config, embedder, embedder, rng)),
      max_length_(config.max_length),
      logit_scale_(config.logit_scale) {}

Tensor DecoderOnly::operator()(const Tensor& ids, const ForwardContext& context) const {
  const Tensor hidden = decoder(embedder(ids, 0, context.rng), Mask::causal(), {}, {}, nullptr, context);
  return output_logits(output, embedder, hidden, logit_scale_);
}

std::vector<Tensor> DecoderOnly::layer_logits(const Tensor& ids) const {
  std::vector<Tensor> out = decoder.outputs(embedder(ids, 0, nullptr), Mask::causal(), {}, {}, {});
  for (Tensor& x : out) x = output_logits(output, embedder, x, logit_scale_);
  return out;
}

Decoding DecoderOnly::start() const {
  Decoding state;
  state.cache = decoder.new_cache();
  return state;
}

Tensor DecoderOnly::next(const Tensor& ids, Decoding& state) const {
  const Tensor hidden = decoder(embedder(ids, state.length, nullptr), Mask::causal(), {}, {}, &state.cache,
                                {.editor = state.editor});
  state.length += ids.extent(1);
  return output_logits(output, embedder, last_position(hidden), logit_scale_);
}

void DecoderOnly::fields(Fields& f) {
  f("embedder", embedder);
  f("decoder", decoder);
  f("output", output);
}

}  // namespace heed

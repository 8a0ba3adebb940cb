// Encoder, decoder, encoder-decoder.
#include "nn/transformer.h"

#include <cmath>

namespace heed {

void TransformerConfig::fields(Fields& f) {
  f("width", width, "model width");
  f("heads", heads, "attention heads; must divide width, unless head_width is given");
  f("key_heads", key_heads,
    "heads of keys and values, shared by groups of heads; must divide heads; 0: heads");
  f("head_width", head_width, "of the queries, keys and values of one head; 0: width / heads");
  f("feed_forward", feed_forward, "hidden width of the feed-forward network");
  f("layers", layers, "blocks in each stack");
  f("max_length", max_length, "longest input in tokens");
  f("dropout", dropout, "on embeddings, residual branches and the feed-forward network");
  f("attention_dropout", attention_dropout, {"dropout", dropout},
    "on attention weights; unless set: dropout");
  f("activation", Choice(activation, {"relu", "gelu", "gelu_tanh", "silu"}), "of the feed-forward network");
  f("norm", Choice(norm, {"pre", "post"}), "where a block normalises");
  f("norm_scale", Choice(norm_scale, {"variance", "deviation"}),
    "divide by sqrt(variance + eps), or by sample deviation + eps");
  f("norm_epsilon", norm_epsilon, "keeps the norm's division finite");
  f("position",
    Choice(position,
           {"none", "sinusoid", "learned", "rope", "rope_interleaved", "alibi", "t5", "shaw", "shaw_keys"}),
    "what tells positions apart: added to embeddings, or (from rope on) inside self-attention");
  f("position_base", modifiers.position_base, "of rope: the slowest pair takes about this many positions");
  f("position_buckets", modifiers.position_buckets,
    "of t5: distances that have a bias of their own or share one");
  f("position_span", modifiers.position_span, "of t5 and shaw: distances from here on are alike");
  f("qk_norm", Choice(modifiers.qk_norm, {"none", "rms", "l2"}),
    "queries and keys normalised, with a trained gain");
  f("softcap", modifiers.softcap, "scores stay between minus and plus this, by tanh; 0: as they are");
  f("sink", Choice(modifiers.sink, {"none", "zero", "learned"}),
    "one more score in each softmax, without a value");
  f("init", Choice(init, {"xavier", "normal", "fan_in"}), "initial weights");
  f("tie", Choice(tie, {"none", "output", "all"}),
    "tables that are one: output layer and decoder embedding, or all three");
  f("scale_embedding", scale_embedding, "multiply embeddings by sqrt(width)");
  f("embedding_deviation", embedding_deviation, "deviation of the initial token embeddings; 0: as init says");
  f("position_deviation", position_deviation, "deviation of initial learned positions");
  f("attention_bias", attention_bias, "bias on the attention projections");
  f("feed_forward_bias", feed_forward_bias, "bias in the feed-forward network");
  f("norm_bias", norm_bias, "bias in the norms");
  f("output_bias", output_bias, "bias of an output layer of its own");
}

const TransformerConfig& TransformerConfig::check() const {
  const auto positive = [](const char* name, int64_t value) {
    if (value < 1) fail("model.", name, " = ", value, ". It must be at least 1.");
  };
  positive("width", width);
  positive("heads", heads);
  positive("feed_forward", feed_forward);
  // Each is made before memory can tell that they are too many.
  if (layers < 1 || layers > 10000) fail("model.layers = ", layers, ". It must be 1 to 10000.");
  positive("max_length", max_length);
  if (head_width < 0) {
    fail("model.head_width = ", head_width, ". It must be at least 1, or 0 for model.width / model.heads.");
  }
  if (head_width == 0 && width % heads != 0) {
    const int64_t below = width / heads * heads;
    fail("model.heads = ", heads, " does not divide model.width = ", width,
         ". Use a divisor of it, or width ", below > 0 ? text(below, " or ") : std::string(), below + heads,
         ", or give each head a width: model.head_width.");
  }
  const Modifiers& m = modifiers;
  if (key_heads < 0 || (key_heads > 0 && heads % key_heads != 0)) {
    fail("model.key_heads = ", key_heads, " does not divide model.heads = ", heads,
         ". Use a divisor of it, or 0 for as many.");
  }
  if (!(m.position_base > 1)) fail("model.position_base = ", m.position_base, ". It must be above 1.");
  if (m.position_buckets < 2 || m.position_buckets % 2 != 0)
    fail("model.position_buckets = ", m.position_buckets, ". It must be even and at least 2.");
  if (m.position_span < 1 || (position == PositionKind::t5 && m.position_span <= m.position_buckets / 2)) {
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
  if (!(embedding_deviation >= 0))
    fail("model.embedding_deviation = ", embedding_deviation, ". It must be above 0, or 0 for init's.");
  if (!(position_deviation >= 0 && position_deviation < 1e3))
    fail("model.position_deviation = ", position_deviation, ". It must be at least 0, such as 0.02 or 1.");
  if (!(norm_epsilon > 0)) fail("model.norm_epsilon = ", norm_epsilon, ". It must be above 0, such as 1e-5.");
  return *this;
}

namespace {

LayerNorm::Options norm_options(const TransformerConfig& c) {
  return {.bias = c.norm_bias, .epsilon = c.norm_epsilon, .scale = c.norm_scale};
}

BlockOptions block_options(const TransformerConfig& c, double out_gain) {
  return {.width = c.width,
          .feed_forward = c.feed_forward,
          .dropout = c.dropout,
          .norm_place = c.norm,
          .norm = norm_options(c),
          .forward = {.activation = c.activation,
                      .dropout = c.dropout,
                      .bias = c.feed_forward_bias,
                      .init = c.init,
                      .out_gain = out_gain}};
}

}  // namespace

Embedder::Embedder(int64_t vocabulary, const TransformerConfig& config, Rng& rng)
    : tokens(vocabulary, config.check().width, config.init, rng, config.embedding_deviation),
      position(config.position, config.max_length, config.width, rng, config.position_deviation),
      scale_(config.scale_embedding ? std::sqrt(static_cast<double>(config.width)) : 1),
      dropout_(config.dropout) {}

Tensor Embedder::operator()(const Tensor& ids, int64_t first, Rng* noise) const {
  const Within within(this);
  return dropout(position(vectors(ids), first), dropout_, noise);
}

Tensor Embedder::vectors(const Tensor& ids, const Tensor& more) const {
  const Tensor x = more ? embedding(concat(std::vector<Tensor>{tokens.weight, more}, 0), ids) : tokens(ids);
  return scale_ == 1 ? x : x * scale_;
}

void Embedder::fields(Fields& f) {
  f("tokens", tokens);
  f("position", position);
}

Stack::Stack(const TransformerConfig& config, Role role, const AttentionFactory& self,
             const AttentionFactory& cross, Rng& rng) {
  config.check();
  // GPT-2 starts the last layer of each residual branch smaller, so that their sum keeps its size.
  const int64_t branches = config.layers * (role.cross ? 3 : 2);
  const double out_gain = config.init == Init::normal ? 1 / std::sqrt(static_cast<double>(branches)) : 1;
  const auto of_own = std::make_shared<SharedByLayers>(), of_cross = std::make_shared<SharedByLayers>();
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    AttentionConfig attention{.width = config.width,
                              .heads = config.heads,
                              .key_heads = config.key_heads,
                              .head_width = config.head_width,
                              .causal = role.causal,
                              .max_length = config.max_length,
                              .layer = layer,
                              .layers = config.layers,
                              .dropout = config.dropout_of_weights(),
                              .input_bias = config.attention_bias,
                              .output_bias = config.attention_bias,
                              .init = config.init,
                              .output_gain = out_gain,
                              .modifiers = config.modifiers,
                              .shared = of_own};
    if (inside_attention(config.position)) attention.modifiers.position = config.position;
    auto own = self(attention, rng);
    attention.causal = false;
    attention.cross = true;
    attention.shared = of_cross;
    attention.modifiers.position = PositionKind::none;  // places in two inputs have no distance
    auto across = role.cross ? cross(attention, rng) : nullptr;
    blocks.push_back(
        std::make_unique<Block>(block_options(config, out_gain), std::move(own), std::move(across), rng));
  }
  if (config.norm == NormPlace::pre) norm = std::make_unique<LayerNorm>(config.width, norm_options(config));
}

Tensor Stack::operator()(const Tensor& input, const Mask& mask, const Tensor& encoded,
                         const Mask& encoded_mask, std::vector<BlockMemory>* memory, const Pass& pass) const {
  const Within within(this);
  Tensor x = input;
  for (size_t i = 0; i < blocks.size(); ++i) {
    x = (*blocks[i])(x, mask, encoded, encoded_mask, memory != nullptr ? &(*memory)[i] : nullptr, pass);
  }
  return norm ? (*norm)(x) : x;
}

std::vector<BlockMemory> Stack::start() const {
  std::vector<BlockMemory> memory;
  for (const auto& block : blocks) memory.push_back(block->start());
  return memory;
}

void Stack::fields(Fields& f) {
  f("blocks", blocks);
  f("norm", norm);
}

void Decoding::reorder(const std::vector<int32_t>& order) {
  const Tensor index = Tensor::of<int32_t>(order, Shape{static_cast<int64_t>(order.size())});
  for (BlockMemory& block : memory) {
    heed::reorder(*block.self, index);
    if (block.cross) heed::reorder(*block.cross, index);
  }
  if (encoded) {
    const Tensor rows = embedding(reshape(encoded, Shape{encoded.extent(0), -1}), index.to(encoded.device()));
    encoded = reshape(rows, Shape{index.size(), encoded.extent(1), encoded.extent(2)});
  }
  if (source.key_lengths()) {
    std::vector<int32_t> lengths;
    const std::vector<double> old = source.key_lengths().to_doubles();
    for (int32_t i : order) lengths.push_back(static_cast<int32_t>(old.at(static_cast<size_t>(i))));
    source = Mask::lengths(Tensor::of<int32_t>(lengths, index.shape(), source.key_lengths().device()));
  }
}

std::unique_ptr<Linear> tie_tables(const TransformerConfig& config, Embedder& source, Embedder& target,
                                   Rng& rng) {
  const int64_t words = target.tokens.weight.extent(0);
  if (config.tie == Tie::all) {
    if (source.tokens.weight.extent(0) != words) {
      fail("model.tie = all needs one vocabulary, but the source has ", source.tokens.weight.extent(0),
           " tokens and the target ", words,
           ". Use a joint vocabulary (--tokenizer unigram) or model.tie = output.");
    }
    source.tokens.weight = target.tokens.weight;
  }
  if (config.tie != Tie::none) return nullptr;
  return std::make_unique<Linear>(config.width, words, rng,
                                  LinearOptions{.bias = config.output_bias, .init = config.init});
}

EncoderDecoder::EncoderDecoder(const TransformerConfig& config, int64_t source_vocabulary,
                               int64_t target_vocabulary, const Attentions& attentions, Rng& rng)
    : source(source_vocabulary, config, rng),
      target(target_vocabulary, config, rng),
      encoder(config, {}, attentions.encoder, {}, rng),
      decoder(config, {.causal = true, .cross = true}, attentions.decoder, attentions.cross, rng),
      output(tie_tables(config, source, target, rng)) {}

Tensor EncoderDecoder::encode(const Tensor& ids, const Tensor& lengths, const Pass& pass) const {
  return encoder(source(ids, 0, pass.noise), Mask::lengths(lengths), {}, {}, nullptr, pass);
}

Tensor EncoderDecoder::decode(const Tensor& ids, const Tensor& encoded, const Tensor& lengths,
                              const Pass& pass) const {
  return decoder(target(ids, 0, pass.noise), Mask::causal(), encoded, Mask::lengths(lengths), nullptr, pass);
}

Tensor EncoderDecoder::logits(const Tensor& hidden) const {
  return output ? (*output)(hidden) : linear(hidden, target.tokens.weight, {});
}

Decoding EncoderDecoder::start(const Tensor& encoded, const Tensor& lengths) const {
  return {.memory = decoder.start(), .source = Mask::lengths(lengths), .encoded = encoded};
}

Tensor EncoderDecoder::next(const Tensor& ids, Decoding& state) const {
  const Tensor hidden = decoder(target(ids, state.length, nullptr), Mask::causal(), state.encoded,
                                state.source, &state.memory, {});
  state.encoded = Tensor();
  state.length += ids.extent(1);
  const Tensor last = slice(hidden, 1, ids.extent(1) - 1, ids.extent(1));
  return logits(reshape(last, Shape{ids.extent(0), -1}));
}

void EncoderDecoder::fields(Fields& f) {
  f("source", source);
  f("target", target);
  f("encoder", encoder);
  f("decoder", decoder);
  f("output", output);
}

}  // namespace heed

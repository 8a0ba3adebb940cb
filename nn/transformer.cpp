// Embedder, stack of blocks, encoder-decoder and language model.
#include "heed/nn/transformer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/autograd/autocast.h"
#include "heed/autograd/in_place.h"
#include "heed/core/settings_in_errors.h"

namespace heed {

namespace {

BlockOptions block_options(const TransformerConfig& c, double out_gain, bool causal) {
  return {.width = c.d_model,
          .feed_forward = c.d_ff,
          .dropout = c.dropout,
          .norm_place = c.norm,
          .norm = c.norm_options(),
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
      scale_(config.scale_embedding ? std::sqrt(config.width_ratio() * static_cast<double>(config.d_model))
                                    : 1),
      dropout_(config.dropout_of_embeddings()) {}

Tensor Embedder::operator()(const Tensor& ids, int64_t first, Rng* rng) const {
  const ModuleScope within(this);
  return narrowed_dropout(position(vectors(ids), first), dropout_, rng);
}

Tensor Embedder::packed(const Tensor& ids, const Packing& packing, Rng* rng) const {
  const ModuleScope within(this);
  return narrowed_dropout(position.at(vectors(ids), packing), dropout_, rng, packing.places);
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
  if (config.norm == NormPlace::pre)
    norm = std::make_unique<LayerNorm>(config.d_model, config.norm_options());
  if (config.base_width > 0)
    for (const Named& one : hidden_matrices(*this)) scale_(*one.tensor, std::sqrt(config.width_ratio()));
}

Tensor TransformerStack::operator()(const Tensor& input, const Mask& mask, const Tensor& encoded,
                                    const Mask& encoded_mask, std::vector<BlockCache>* cache,
                                    const ForwardContext& context) const {
  const ModuleScope within(this);
  if (cache != nullptr && cache->size() != blocks.size())
    fail("decode: a state with ", cache->size(), " caches for a model of ", blocks.size(),
         " blocks. Begin with start() of the model.");
  // Caches of keys stay in f32.
  const auto activations = [&](const Tensor& x) { return x && cache == nullptr ? narrowed(x) : x; };
  const Tensor keys = activations(encoded);
  ResidualStream stream(activations(input), mask, context);
  const auto edit = [&](size_t layer) {
    if (context.editor != nullptr)
      stream.replace(context.editor->edit_stream(*this, static_cast<int64_t>(layer), stream.x()));
  };
  for (size_t i = 0; i < blocks.size(); ++i) {
    edit(i);
    blocks[i]->add_to(stream, mask, keys, encoded_mask, cache != nullptr ? &(*cache)[i] : nullptr, context);
  }
  edit(blocks.size());
  return norm ? stream.normalised(*norm) : stream.x();
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
  const Tensor hidden = widened(decode(target, encoded, lengths, context));
  return embedding(reshape(hidden, Shape{-1, hidden.extent(-1)}), places);
}

Tensor TranslationModel::token_loss(const Tensor& hidden, const Tensor& targets, double smoothing,
                                    int32_t ignore) const {
  return cross_entropy(logits(hidden), targets, smoothing, ignore);
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
  if (config.tie_embeddings != Tie::none) {
    if (!config.tied_output_bias) return nullptr;
    auto output = std::make_unique<Linear>();
    output->weight = target.tokens.weight;
    output->bias = init_bias(words, config.d_model, config.init, rng);
    return output;
  }
  return std::make_unique<Linear>(config.d_model, words, rng,
                                  LinearOptions{.bias = config.output_bias, .init = config.init});
}

Tensor output_logits(const std::unique_ptr<Linear>& output, const Embedder& embedder, const Tensor& hidden,
                     double scale) {
  const Tensor& table = embedder.tokens.weight;
  const Tensor logits =
      output ? (*output)(hidden, output->weight.dtype()) : linear(hidden, table, {}, table.dtype());
  return scale == 1 ? logits : logits * scale;
}

Tensor output_cross_entropy(const std::unique_ptr<Linear>& output, const Embedder& embedder,
                            const Tensor& hidden, const Tensor& targets, double smoothing, int32_t ignore,
                            double scale) {
  const Tensor x = scale == 1 ? hidden : widened(hidden) * scale;
  if (!output) return linear_cross_entropy(x, embedder.tokens.weight, {}, targets, smoothing, ignore);
  const ModuleScope within(output.get());
  const Tensor bias = scale == 1 || !output->bias ? output->bias : output->bias * scale;
  return linear_cross_entropy(x, output->weight, bias, targets, smoothing, ignore);
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
      logit_scale_(config.logit_scale * config.width_ratio()) {}

Tensor EncoderDecoder::encode(const Tensor& ids, const Tensor& lengths, const ForwardContext& context) const {
  if (const auto packing = context.packing(lengths, ids.extent(1))) {
    const Tensor x = source.packed(packing->packed_ids(ids), *packing, context.rng);
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
  const auto targets = context.target_packing(places, ids.extent(0), ids.extent(1));
  if (!targets) return TranslationModel::decode_at(ids, encoded, lengths, places, context);
  const auto sources = context.packing(lengths, encoded.extent(1));
  const Mask cross = Mask::packed(targets, sources);
  const Tensor hidden =
      decoder(target.packed(targets->packed_ids(ids), *targets, context.rng),
              Mask::packed(targets) & Mask::causal(), sources ? sources->packed(encoded) : encoded,
              sources ? cross : cross & Mask::lengths(lengths), nullptr, context);
  return reshape(hidden, Shape{targets->num_tokens(), hidden.extent(2)});
}

Tensor EncoderDecoder::logits(const Tensor& hidden) const {
  return output_logits(output, target, hidden, logit_scale_);
}

Tensor EncoderDecoder::token_loss(const Tensor& hidden, const Tensor& targets, double smoothing,
                                  int32_t ignore) const {
  return output_cross_entropy(output, target, hidden, targets, smoothing, ignore, logit_scale_);
}

Decoding EncoderDecoder::start(const Tensor& encoded, const Tensor& lengths) const {
  return {.cache = decoder.new_cache(), .source = Mask::lengths(lengths), .encoded = widened(encoded)};
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
  f.boundary("output", output);
}

DecoderOnly::DecoderOnly(const TransformerConfig& config, int64_t vocabulary,
                         const AttentionFactory& attention, Rng& rng)
    : embedder(vocabulary, config, rng),
      decoder(config, {.causal = true}, attention, {}, rng),
      output(tie_tables(config, embedder, embedder, rng)),
      max_length_(config.max_length),
      logit_scale_(config.logit_scale * config.width_ratio()) {}

Tensor DecoderOnly::hidden(const Tensor& ids, const ForwardContext& context) const {
  return decoder(embedder(ids, 0, context.rng), Mask::causal(), {}, {}, nullptr, context);
}

Tensor DecoderOnly::logits(const Tensor& hidden) const {
  return output_logits(output, embedder, hidden, logit_scale_);
}

Tensor DecoderOnly::token_loss(const Tensor& hidden, const Tensor& targets, double smoothing) const {
  return output_cross_entropy(output, embedder, hidden, targets, smoothing, /*ignore=*/-1, logit_scale_);
}

Tensor DecoderOnly::operator()(const Tensor& ids, const ForwardContext& context) const {
  return logits(hidden(ids, context));
}

namespace {

/// The packing of documents in one row: ids [1, N], lengths i32 [D]. Fails unless these fit each other.
Packing packing_of_documents(const Tensor& ids, const Tensor& lengths) {
  const std::vector<double> all = lengths.to_doubles();
  const double sum = std::accumulate(all.begin(), all.end(), 0.0);
  const double longest = all.empty() ? 0 : *std::max_element(all.begin(), all.end());
  const bool has_empty =
      all.empty() || std::any_of(all.begin(), all.end(), [](double length) { return length < 1; });
  if (ids.rank() != 2 || ids.extent(0) != 1 || sum != static_cast<double>(ids.extent(1)) || has_empty)
    fail("documents: ids ", ids.shape(), " of documents with ", sum,
         " tokens in all. Ids must be [1, N], each length at least 1, and N their sum.");
  return Packing::of(lengths.to(Device::cpu), static_cast<int64_t>(longest)).to(ids.device());
}

}  // namespace

Tensor DecoderOnly::hidden_of_documents(const Tensor& ids, const Tensor& lengths,
                                        const ForwardContext& context) const {
  const auto packing = std::make_shared<const Packing>(
      context.packing_table ? Packing::of_table(context.packing_table, lengths.size(), max_length_)
                            : packing_of_documents(ids, lengths));
  return decoder(embedder.packed(ids, *packing, context.rng), Mask::packed(packing) & Mask::causal(), {}, {},
                 nullptr, context);
}

Tensor DecoderOnly::documents(const Tensor& ids, const Tensor& lengths, const ForwardContext& context) const {
  return logits(hidden_of_documents(ids, lengths, context));
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
  f.boundary("output", output);
}

}  // namespace heed

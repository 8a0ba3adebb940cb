// The language model and the classifier.
#include "nn/transformer.h"

namespace heed {

DecoderOnly::DecoderOnly(const TransformerConfig& config, int64_t vocabulary,
                         const AttentionFactory& attention, Rng& rng)
    : embedder(vocabulary, config, rng), decoder(config, {.causal = true}, attention, {}, rng) {
  if (config.tie == Tie::none) {
    output = std::make_unique<Linear>(config.width, vocabulary, rng,
                                      LinearOptions{.bias = config.output_bias, .init = config.init});
  }
}

Tensor DecoderOnly::logits(const Tensor& hidden) const {
  return output ? (*output)(hidden) : linear(hidden, embedder.tokens.weight, {});
}

Tensor DecoderOnly::operator()(const Tensor& ids, const Pass& pass) const {
  return logits(decoder(embedder(ids, 0, pass.noise), Mask::causal(), {}, {}, nullptr, pass));
}

Decoding DecoderOnly::start() const {
  Decoding state;
  state.memory = decoder.start();
  return state;
}

Tensor DecoderOnly::next(const Tensor& ids, Decoding& state) const {
  const Tensor hidden =
      decoder(embedder(ids, state.length, nullptr), Mask::causal(), {}, {}, &state.memory, {});
  state.length += ids.extent(1);
  const Tensor last = slice(hidden, 1, ids.extent(1) - 1, ids.extent(1));
  return logits(reshape(last, Shape{ids.extent(0), -1}));
}

void DecoderOnly::fields(Fields& f) {
  f("embedder", embedder);
  f("decoder", decoder);
  f("output", output);
}

namespace {

LinearOptions plain(const TransformerConfig& config) { return {.init = config.init}; }

}  // namespace

Classifier::Classifier(const TransformerConfig& config, const Options& options,
                       const AttentionFactory& attention, Rng& rng)
    : options_(options),
      dropout_(config.check().dropout),
      embedder_(options.vocabulary > 0 ? std::make_unique<Embedder>(options.vocabulary, config, rng)
                                       : nullptr),
      patches_(embedder_ ? nullptr
                         : std::make_unique<Linear>(options.features, config.width, rng, plain(config))),
      position_(embedder_ ? PositionKind::none : config.position, config.max_length, config.width, rng),
      first_(options.pool == Pool::first ? normal_parameter(Shape{1, 1, config.width}, 0.02, rng) : Tensor()),
      encoder_(config, {.causal = options.causal}, attention, {}, rng),
      hidden_(options.head_hidden > 0
                  ? std::make_unique<Linear>(config.width, options.head_hidden, rng, plain(config))
                  : nullptr),
      classes_(options.head_hidden > 0 ? options.head_hidden : config.width, options.classes, rng,
               plain(config)) {
  if (options.vocabulary < 1 && options.features < 1) {
    fail("classifier: neither a vocabulary nor features are given. Set the one that fits the input.");
  }
  if (first_ && embedder_)
    fail("classifier: a first token goes with vectors as input. Use pool = mean for token ids.");
}

Tensor Classifier::operator()(const Tensor& input, const Tensor& lengths, const Pass& pass) const {
  const Within within(this);
  Tensor x;
  if (embedder_) {
    x = (*embedder_)(input, 0, pass.noise);
  } else {
    x = (*patches_)(cast(input, patches_->weight.dtype()));
    if (first_) x = concat(std::vector<Tensor>{expand(first_, Shape{x.extent(0), 1, x.extent(2)}), x}, 1);
    x = dropout(position_(x, 0), dropout_, pass.noise);
  }
  if (options_.pool != Pool::mean && lengths) fail("classifier: lengths are for pool = mean.");
  Mask mask = lengths ? Mask::lengths(lengths) : Mask::none();
  if (options_.causal) mask = mask & Mask::causal();
  x = encoder_(x, mask, {}, {}, nullptr, pass);
  const int64_t width = x.extent(2);
  if (first_) {
    x = slice(x, 1, 0, 1);
  } else if (options_.pool == Pool::last) {
    x = slice(x, 1, x.extent(1) - 1, x.extent(1));
  } else if (lengths) {
    const Tensor kept =
        transpose(mask.kept(reshape(x, Shape{x.extent(0), 1, x.extent(1), width}), 0), 1, 2);  // [B, T, 1, 1]
    const Tensor ones = reshape(kept, Shape{x.extent(0), x.extent(1), 1});
    const Tensor count = sum(ones, 1);
    x = sum(x * ones, 1) / maximum(count, Tensor::full(count.shape(), 1, count.dtype(), count.device()));
  } else {
    x = mean(x, 1);
  }
  x = reshape(x, Shape{x.extent(0), width});
  if (hidden_) x = relu((*hidden_)(x));
  return classes_(x);
}

void Classifier::fields(Fields& f) {
  f("embedder", embedder_);
  f("patches", patches_);
  f("position", position_);
  f("first", first_);
  f("encoder", encoder_);
  f("hidden", hidden_);
  f("classes", classes_);
}

}  // namespace heed

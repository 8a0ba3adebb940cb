// The forward pass of the autoencoder of sequences.
#include "heed/train/tasks/synthetic/sequence_autoencoder.h"

#include "heed/autograd/autocast.h"

namespace heed {
namespace {

LayerNorm::Options decoder_norm(const TransformerConfig& config) {
  return {.bias = config.norm_bias && config.norm_scale != kernel::NormScale::rms,
          .epsilon = config.norm_epsilon,
          .scale = config.norm_scale};
}

}  // namespace

SequenceAutoencoder::Layer::Layer(const TransformerConfig& config, const LayerNorm::Options& norm_options,
                                  Rng& rng)
    : norm(config.d_model, norm_options),
      linear(config.d_model, config.d_model, rng, {.bias = true, .init = config.init}) {}

Tensor SequenceAutoencoder::Layer::operator()(const Tensor& x) const { return gelu(linear(norm(x))); }

void SequenceAutoencoder::Layer::fields(Fields& f) {
  f("norm", norm);
  f("linear", linear);
}

SequenceAutoencoder::SequenceAutoencoder(const TransformerConfig& config, int64_t vocabulary,
                                         const AttentionFactory& attention, Rng& rng)
    : embedder_(vocabulary, config, rng),
      encoder_(config, {.causal = true}, attention, {}, rng),
      position_(PositionKind::sinusoid, config.max_length, config.d_model, rng),
      first_(config, decoder_norm(config), rng),
      second_(config, decoder_norm(config), rng),
      norm_(config.d_model, decoder_norm(config)),
      output_(tie_tables(config, embedder_, embedder_, rng)),
      logit_scale_(config.logit_scale) {
  encoder_.norm.reset();
}

Tensor SequenceAutoencoder::hidden(const Tensor& ids, const ForwardContext& context) const {
  const ModuleScope within(this);
  const Tensor encoded = encoder_(embedder_(ids, 0, context.rng), Mask::causal(), {}, {}, nullptr, context);
  const int64_t sequences = ids.extent(0), length = ids.extent(1), width = encoded.extent(2);
  const Tensor state = widened(slice(encoded, 1, length - 1, length));
  const Tensor everywhere = expand(state, Shape{sequences, length, width});
  return norm_(second_(first_(position_(everywhere, 0))));
}

Tensor SequenceAutoencoder::logits(const Tensor& hidden) const {
  return output_logits(output_, embedder_, hidden, logit_scale_);
}

Tensor SequenceAutoencoder::token_loss(const Tensor& hidden, const Tensor& targets, double smoothing) const {
  return output_cross_entropy(output_, embedder_, hidden, targets, smoothing, /*ignore=*/-1, logit_scale_);
}

void SequenceAutoencoder::fields(Fields& f) {
  f("embedder", embedder_);
  f("encoder", encoder_);
  f("position", position_);
  f("first", first_);
  f("second", second_);
  f("norm", norm_);
  f("output", output_);
}

}  // namespace heed

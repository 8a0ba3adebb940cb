// Embeddings with types, the encoder, and the head of masked language modelling.
#include "heed/nn/masked_language_model.h"

namespace heed {

MaskedLanguageModel::MaskedLanguageModel(const TransformerConfig& config, const Options& options,
                                         const AttentionFactory& attention, Rng& rng)
    : EncoderModel(config, {.vocabulary = options.vocabulary, .embedding_norm = true}, attention, rng),
      activation_(config.activation),
      output_scale_(config.logit_scale * config.width_ratio()),
      types_(options.token_types, config.d_model, config.init, rng, config.embedding_std),
      head_(config.d_model, config.d_model, rng, {.init = config.init}),
      head_norm_(config.d_model, config.norm_options()),
      output_(tie_tables(config, embedder(), embedder(), rng)) {}

Tensor MaskedLanguageModel::hidden(const Tensor& ids, const Tensor& lengths,
                                   const ForwardContext& context) const {
  const ModuleScope within(this);
  const auto packing = context.packing(lengths, ids.extent(1));
  const Tensor x = vectors(without_padding(ids, packing)) + slice(types_.weight, 0, 0, 1);
  const Tensor out = encoded(x, lengths, context, {}, packing);
  return packing ? packing->padded(out) : out;
}

Tensor MaskedLanguageModel::head(const Tensor& hidden) const {
  return head_norm_(activate(activation_, head_(hidden)));
}

Tensor MaskedLanguageModel::logits(const Tensor& hidden) const {
  const ModuleScope within(this);
  return output_logits(output_, embedder(), head(hidden), output_scale_);
}

Tensor MaskedLanguageModel::token_loss(const Tensor& hidden, const Tensor& targets, double smoothing) const {
  const ModuleScope within(this);
  return output_cross_entropy(output_, embedder(), head(hidden), targets, smoothing, /*ignore=*/-1,
                              output_scale_);
}

void MaskedLanguageModel::fields(Fields& f) {
  EncoderModel::fields(f);
  f("types", types_);
  f("head", head_);
  f("head_norm", head_norm_);
  f.boundary("output", output_);
}

}  // namespace heed

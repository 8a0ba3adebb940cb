// The model of masked language modelling: an encoder that predicts hidden tokens of its input.
#pragma once

#include "heed/nn/encoder_models.h"

namespace heed {

/// BERT, without its second objective. Devlin et al. 2019, arXiv 1810.04805. Embeddings of tokens, types and
/// positions are added and normalised; the encoder follows; the head is a layer with the activation of the
/// blocks, a norm, and the output layer, which config.tie_embeddings may share with the token embeddings.
class MaskedLanguageModel final : public EncoderModel {
 public:
  /// The tables of embeddings.
  struct Options {
    int64_t vocabulary = 0;   ///< number of token ids, that of the mask included
    int64_t token_types = 1;  ///< rows of the table of token types; every token here is of type 0
  };
  /// Fails for an attention that cannot look both ways, and for fewer than one type.
  MaskedLanguageModel(const TransformerConfig& config, const Options& options,
                      const AttentionFactory& attention, Rng& rng);
  /// The encoder's output: ids i32 [B, T], lengths i32 [B] or empty -> [B, T, width]. Rows of padding have no
  /// meaning.
  Tensor hidden(const Tensor& ids, const Tensor& lengths, const ForwardContext& context) const;
  /// The logits of tokens, by the head: hidden [..., width] -> [..., vocabulary].
  Tensor logits(const Tensor& hidden) const;
  /// cross_entropy(logits(hidden), targets, smoothing) at targets i32 [...], without storing the logits of
  /// all rows where these would be large: see linear_cross_entropy().
  Tensor token_loss(const Tensor& hidden, const Tensor& targets, double smoothing = 0) const;
  void fields(Fields& f) override;

 private:
  /// The input of the output layer: hidden [..., width] -> [..., width].
  Tensor head(const Tensor& hidden) const;

  Activation activation_;
  double output_scale_;
  Embedding types_;  // [token_types, width]
  Linear head_;
  LayerNorm head_norm_;
  std::unique_ptr<Linear> output_;  // null when tied to the embedding, without a bias
};

}  // namespace heed

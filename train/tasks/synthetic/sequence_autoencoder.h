// SequenceAutoencoder: the state of the last token alone must give back all tokens of a sequence.
#pragma once

#include "heed/nn/transformer.h"

namespace heed {

/// The model of MAD's compression task (athms/mad-lab, mad/model/auto_encoder.py with global_pool = 'last'):
/// causal blocks without a norm behind the last one; the last token's state plus the sinusoid of each place;
/// norm, linear, gelu, norm, linear, gelu, norm, all of the width of the model; the output layer. The
/// sinusoids are Heed's, interleaved, where MAD has sines first and then cosines, with slightly other
/// frequencies.
class SequenceAutoencoder final : public Module {
 public:
  /// Fails for an attention that cannot be causal.
  SequenceAutoencoder(const TransformerConfig& config, int64_t vocabulary, const AttentionFactory& attention,
                      Rng& rng);
  /// The input of the output layer: ids i32 [B, T] -> [B, T, width].
  Tensor hidden(const Tensor& ids, const ForwardContext& context) const;
  Tensor logits(const Tensor& hidden) const;  ///< [..., width] -> logits [..., V]
  /// cross_entropy(logits(hidden), targets, smoothing) at targets i32 [...].
  Tensor token_loss(const Tensor& hidden, const Tensor& targets, double smoothing = 0) const;
  void fields(Fields& f) override;

 private:
  /// A norm, a linear layer and gelu: [..., width] -> [..., width].
  struct Layer final : Module {
    Layer(const TransformerConfig& config, const LayerNorm::Options& norm_options, Rng& rng);
    Tensor operator()(const Tensor& x) const;
    void fields(Fields& f) override;

    LayerNorm norm;
    Linear linear;
  };

  Embedder embedder_;
  TransformerStack encoder_;
  Position position_;
  Layer first_, second_;
  LayerNorm norm_;
  std::unique_ptr<Linear> output_;
  double logit_scale_;
};

}  // namespace heed

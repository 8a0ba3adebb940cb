// Transformer encoders: the classifier, and the token predictor of masked language modelling.
#pragma once

#include "heed/nn/transformer.h"

namespace heed {

/// How a classifier pools its tokens into one vector.
enum class Pool { mean, first, last };

/// The features of a pair of inputs u and v: none (single inputs), [u, v] with one more hidden layer of half
/// the width (Long Range Arena), or [u, v, u v, u - v] (Nystromformer and later work).
enum class Pairing { none, concat, products };

/// A transformer encoder over token ids or vectors: the base of classifiers and token predictors, and the
/// part that pretraining passes on.
class EncoderModel : public Module {
 public:
  /// The kind of inputs, the token before them, and whether the encoder is causal.
  struct Options {
    int64_t vocabulary = 0;       ///< number of token ids; 0: the inputs are vectors
    int64_t features = 0;         ///< extent of input vectors
    bool first = false;           ///< prepend a learned token
    bool causal = false;          ///< no token attends to later ones
    bool embedding_norm = false;  ///< normalise embeddings with their positions, before dropout
  };
  /// Loads the encoder's tensors by name from a saved model, ignoring its other tensors. Fails (Fault::data)
  /// when one is missing or has another shape.
  void load_encoder(const std::string& bytes, const std::string& name = "model.safetensors");
  void fields(Fields& f) override;

 protected:
  /// Builds embedder or linear input layer, position encoding and encoder; called by derived models.
  EncoderModel(const TransformerConfig& config, const Options& options, const AttentionFactory& attention,
               Rng& rng);
  /// The mask of self-attention. `lengths` i32 [B] include the prepended token; empty: no padding.
  Mask mask(const Tensor& lengths) const;
  /// The input of vectors() without its padding: x itself without `packing`, and where a token is prepended,
  /// whose place encoded() makes first.
  Tensor without_padding(const Tensor& x, const std::shared_ptr<const Packing>& packing) const;
  /// Embedded tokens [B, T, width] -> encoded [B, T, width], or [B, T + 1, width] with the prepended token;
  /// with `packing` those of without_padding() -> [1, N, width]. `positions` i32 [B, T] or [B, T + 1]:
  /// positions of the tokens; empty: 0, 1, 2, ...
  Tensor encoded(const Tensor& vectors, const Tensor& lengths, const ForwardContext& context,
                 const Tensor& positions, const std::shared_ptr<const Packing>& packing) const;
  /// Embeds x, i32 [B, T] or float [B, T, features], without positions -> [B, T, width].
  Tensor vectors(const Tensor& x) const;
  const Embedder& embedder() const { return *embedder_; }  ///< embeds token ids; not to be called for vectors
  Embedder& embedder() { return *embedder_; }  ///< gives the embedder that output layers are tied to
  /// Logits times config.logit_scale and config.width_ratio().
  Tensor scaled(const Tensor& logits) const { return logit_scale_ == 1 ? logits : logits * logit_scale_; }
  /// True with the prepended token of Options::first.
  bool has_first() const { return static_cast<bool>(first_); }

 private:
  bool causal_;
  double dropout_, logit_scale_;
  std::unique_ptr<Embedder> embedder_;
  std::unique_ptr<Linear> patches_;
  Position position_;
  Tensor first_;  // [1, 1, width]
  std::unique_ptr<LayerNorm> embedding_norm_;
  TransformerStack encoder_;
};

/// Encodes, pools and classifies each input, or each pair of inputs.
class Classifier final : public EncoderModel {
 public:
  /// The form of the inputs, the pooling and the head.
  struct Options {
    int64_t vocabulary = 0;           ///< number of token ids; 0: the inputs are vectors
    int64_t features = 0;             ///< extent of input vectors
    int64_t classes = 2;              ///< logits of an example
    Pool pool = Pool::mean;           ///< first: of a prepended learned token; last: of the last real token
    bool causal = false;              ///< no token attends to later ones
    int64_t head_hidden = 0;          ///< units of a hidden ReLU layer before the classes; 0: none
    int64_t mean_over = 0;            ///< Pool::mean: divisor of the sum over real tokens; 0: their number
    bool mean_of_all = false;         ///< Pool::mean: of all tokens, past the lengths, too
    Pairing pairing = Pairing::none;  ///< otherwise inputs i and B/2 + i form a pair
  };
  /// Fails where options give neither a vocabulary nor features.
  Classifier(const TransformerConfig& config, const Options& options, const AttentionFactory& attention,
             Rng& rng);
  /// x: i32 [B, T] or float [B, T, features]; lengths i32 [B], including the token of Pool::first, or empty;
  /// positions i32 [B, T], or [B, T + 1] with that token, or empty for 0, 1, 2, ... -> logits [B, classes];
  /// with pairs [B/2, classes].
  Tensor operator()(const Tensor& x, const Tensor& lengths, const ForwardContext& context,
                    const Tensor& positions = {}) const;
  void fields(Fields& f) override;

 private:
  Tensor pooled(const Tensor& x, const Tensor& lengths) const;
  Tensor pooled(const Tensor& x, const Packing& packing) const;
  int64_t head_width(const TransformerConfig& config) const;

  Options options_;
  std::unique_ptr<Linear> hidden_, second_;
  Linear classes_;
};

/// Predicts tokens of its input for pretraining: masked tokens from all others, or each token from earlier
/// ones. A classifier of the same inputs can start from its encoder (Amos et al. 2023, arXiv 2310.02980).
class TokenPredictor final : public EncoderModel {
 public:
  /// `options` have a vocabulary: tokens are predicted, not vectors.
  TokenPredictor(const TransformerConfig& config, const EncoderModel::Options& options,
                 const AttentionFactory& attention, Rng& rng);
  /// ids i32 [B, T], where id `vocabulary` is a masked token; rows i32 [n]: the positions to predict, as
  /// indices b T + t; lengths i32 [B] and positions i32 [B, T], or empty -> logits [n, vocabulary].
  Tensor operator()(const Tensor& ids, const Tensor& lengths, const Tensor& rows,
                    const ForwardContext& context, const Tensor& positions = {}) const;
  void fields(Fields& f) override;

 private:
  Tensor hidden_;  // [1, width], the embedding of a masked token; empty when causal
  Linear tokens_;
};

}  // namespace heed

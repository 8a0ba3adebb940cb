// Transformer models: the encoder-decoder and the language model. Classifiers: nn/encoder_models.h.
#pragma once

#include "heed/nn/block.h"
#include "heed/nn/embedding.h"
#include "heed/nn/position.h"

namespace heed {

/// Which matrices are shared: `output`: the decoder's embedding and the output layer; `all`: the encoder's
/// embedding too.
enum class Tie { none, output, all };

/// Which projections of an attention add a bias. `true` stands for all of them, `false` for none.
struct ProjectionBiases {
  bool query = false;            ///< the query projection adds one
  bool key = false;              ///< the key projection adds one
  bool value = false;            ///< the value projection adds one
  bool output = false;           ///< the output projection adds one
  ProjectionBiases() = default;  ///< none
  ProjectionBiases(bool all) : query(all), key(all), value(all), output(all) {}  ///< all or none
  /// True where all projections add one.
  explicit operator bool() const { return query && key && value && output; }
};

/// The configuration of a transformer; every field is a setting of the command line and of config.toml.
struct TransformerConfig {
  int64_t d_model = 256;     ///< width of embeddings and of all blocks' outputs
  int64_t heads = 8;         ///< attention heads; divide d_model unless head_dim is given
  int64_t kv_heads = 0;      ///< heads of keys and values; 0: as many as heads
  int64_t head_dim = 0;      ///< width of one head's queries, keys and values; 0: d_model / heads
  int64_t d_ff = 1024;       ///< hidden width of the feed-forward network; 0: blocks have none
  int64_t layers = 1;        ///< blocks in each stack
  int64_t max_length = 512;  ///< maximum input length in tokens
  double dropout = 0.1;      ///< on residual branches and the feed-forward network
  std::optional<double> attention_dropout = {};  ///< on attention weights; empty: same as `dropout`
  std::optional<double> embedding_dropout = {};  ///< on embeddings; empty: same as `dropout`
  Activation activation = Activation::relu;      ///< activation of the feed-forward network
  NormPlace norm = NormPlace::pre;               ///< where a block normalises
  kernel::NormScale norm_scale = kernel::NormScale::variance;  ///< divisor of the norms
  double norm_epsilon = 1e-5;                                  ///< inside the norms
  PositionKind position = PositionKind::sinusoid;              ///< position encoding
  Modifiers modifiers = {};  ///< for all attentions; `position` replaces theirs, except in cross-attention
  Init init = Init::xavier;  ///< initialisation of all weights, but those that have a deviation of their own
  Tie tie_embeddings = Tie::none;        ///< which matrices are shared
  bool scale_embedding = true;           ///< multiply embeddings by sqrt(width)
  bool identity_projections = false;     ///< W^Q, W^K and W^V of all attentions start as the identity matrix
  double embedding_std = 0;              ///< standard deviation of initial token embeddings; 0: as `init`
  double position_deviation = 0.02;      ///< standard deviation of initial learned positions
  ProjectionBiases attention_bias = {};  ///< on projections of all attentions
  bool feed_forward_bias = true;         ///< in both layers of the feed-forward network
  bool norm_bias = true;                 ///< in all norms, but RMS norms have none
  bool output_bias = true;               ///< an untied output layer adds a bias
  bool tied_output_bias = false;         ///< a tied output layer adds a bias
  double logit_scale = 1;                ///< multiplies the logits
  /// The width at which a learning rate was tuned; 0: rates are not transferred. Else the model begins, and
  /// scales its logits and embeddings, so that the best rate stays that of this width, where matrices between
  /// hidden states train with width_ratio() times the rate (OptimizerOptions::hidden_rate): maximal update
  /// parametrization, Yang et al. 2022, arXiv 2203.03466, table 8 for Adam. It needs init = normal; heads
  /// grow in number with the width, at one head_dim.
  int64_t base_width = 0;
  /// Taps of a depthwise convolution on the input of each self-attention (nn/short_convolution.h); 0: none.
  int64_t short_convolution = 0;
  void fields(Fields& f);  ///< names every field with its help: the [model] settings
  /// base_width / d_model; 1 without a base_width.
  double width_ratio() const {
    return base_width > 0 ? static_cast<double>(base_width) / static_cast<double>(d_model) : 1;
  }
  /// The dropout in effect on attention weights.
  double dropout_of_weights() const { return attention_dropout.value_or(dropout); }
  /// The dropout in effect on embeddings.
  double dropout_of_embeddings() const { return embedding_dropout.value_or(dropout); }
  /// Returns *this. Fails on an illegal value, naming it and the legal ones.
  const TransformerConfig& check() const;
  /// The part of an attention's configuration that all attentions of the model share.
  AttentionConfig attention_config() const;
  LayerNorm::Options norm_options() const;  ///< the options of all norms
};

/// Token embedding, position encoding and dropout: ids i32 [B, T] -> [B, T, width].
class Embedder final : public Module {
 public:
  /// A table [vocabulary, d_model], and positions up to max_length.
  Embedder(int64_t vocabulary, const TransformerConfig& config, Rng& rng);
  /// `first`: the position of the first token. Dropout needs `rng`; null when evaluating.
  Tensor operator()(const Tensor& ids, int64_t first, Rng* rng) const;
  /// Embeds packed ids [1, N] -> [1, N, width], each sequence with positions from 0 on.
  Tensor packed(const Tensor& ids, const Packing& packing, Rng* rng) const;
  /// The embeddings without positions. Ids past the vocabulary select rows of `more` [n, width].
  Tensor vectors(const Tensor& ids, const Tensor& more = {}) const;
  void fields(Fields& f) override;
  Embedding tokens;   ///< [vocabulary, d_model]
  Position position;  ///< added to the embeddings, unless the kind acts inside attention

 private:
  double scale_, dropout_;
};

/// A stack of blocks, with a final norm when norms are pre.
class TransformerStack final : public Module {
 public:
  /// The role of a stack in a model.
  struct Role {
    bool causal = false;  ///< no token attends to later ones
    bool cross = false;   ///< blocks attend to an encoder's output, too
  };
  /// `self` and `cross` make the attentions of each block; `cross` may be empty without that role.
  TransformerStack(const TransformerConfig& config, Role role, const AttentionFactory& self,
                   const AttentionFactory& cross, Rng& rng);
  /// x [B, T, width] -> [B, T, width]. `encoded` [B, S, width] and its mask are for cross-attention; `cache`
  /// has one entry per block, or is null. The result is narrowed() unless there is a cache.
  Tensor operator()(const Tensor& x, const Mask& mask, const Tensor& encoded, const Mask& encoded_mask,
                    std::vector<BlockCache>* cache, const ForwardContext& context) const;
  /// The outputs [B, T, width] of the stack cut to 0, 1, 2, ... blocks, each with the final norm; the last
  /// equals operator().
  std::vector<Tensor> outputs(const Tensor& x, const Mask& mask, const Tensor& encoded,
                              const Mask& encoded_mask, const ForwardContext& context) const;
  std::vector<BlockCache> new_cache() const;  ///< one empty cache per block
  void fields(Fields& f) override;
  std::vector<std::unique_ptr<Block>> blocks;  ///< config.layers blocks, the lowest first
  std::unique_ptr<LayerNorm> norm;             ///< behind the last block; null where norms are post
};

/// The state of decoding step by step. A model of your own fills what its blocks need in start(), such as
/// `state.cache.push_back({attention->new_cache()})` for each attention; next() gives it to the attention as
/// AttentionInput::cache.
struct Decoding {
  /// One per block, in an order that the model chooses; of a recurrent model a single one with its state.
  std::vector<BlockCache> cache = {};
  /// State of other blocks, each [B, ...]: the last inputs of a convolution. Empty ones are allowed.
  std::vector<Tensor> tensors = {};
  Mask source = {};              ///< mask of the encoder's output in cross-attention
  Tensor encoded = {};           ///< the encoder's output, for the first step only; cached afterwards
  int64_t length = 0;            ///< the position of the next token; next() adds the tokens that it has read
  HeadEditor* editor = nullptr;  ///< edits the heads of every step; may be null
  /// Hypothesis i becomes a copy of hypothesis order[i]: rows of caches, tensors and lengths follow.
  void reorder(const std::vector<int32_t>& order);
};

/// The interface of models that predict the next token, for sample(), greedy() and beam_search()
/// (train/decode/).
class AutoregressiveModel : public Module {
 public:
  /// Appends ids i32 [B, T] to the decoded sequences; returns the logits [B, V] of the last position.
  virtual Tensor next(const Tensor& ids, Decoding& state) const = 0;
  /// The state before the first token. Fails for a model whose state needs more than itself: translators have
  /// start(encoded, lengths).
  virtual Decoding start() const;
  /// The largest number of tokens that the model reads in a sequence; 0: no limit.
  virtual int64_t max_length() const { return 0; }
};

/// The interface of models from source to target tokens, for translation.
class TranslationModel : public AutoregressiveModel {
 public:
  /// Encodes source i32 [B, S] with lengths i32 [B] -> [B, S, width], which may be bf16 as that of decode().
  virtual Tensor encode(const Tensor& source, const Tensor& lengths, const ForwardContext& context) const = 0;
  /// The input of the output layer: target i32 [B, T], encoded [B, S, width] -> [B, T, width].
  virtual Tensor decode(const Tensor& target, const Tensor& encoded, const Tensor& lengths,
                        const ForwardContext& context) const = 0;
  /// Rows `places` of decode(): i32 [n], b T + t for token t of target b, ascending -> [n, width]. The places
  /// of all real tokens let a model leave the padding of targets out.
  virtual Tensor decode_at(const Tensor& target, const Tensor& encoded, const Tensor& lengths,
                           const Tensor& places, const ForwardContext& context) const;
  /// [..., width] -> logits [..., V].
  virtual Tensor logits(const Tensor& hidden) const = 0;
  /// cross_entropy(logits(hidden), targets, smoothing, ignore) at targets i32 [...]. Transformers and
  /// recurrent models store no logits of all rows where these would be large: see linear_cross_entropy().
  virtual Tensor token_loss(const Tensor& hidden, const Tensor& targets, double smoothing = 0,
                            int32_t ignore = -1) const;
  /// The state before the first target token, for encoded [B, S, width] with source lengths i32 [B].
  virtual Decoding start(const Tensor& encoded, const Tensor& lengths) const = 0;
  using AutoregressiveModel::start;
};

/// Ties the embeddings by config.tie_embeddings and returns the output layer, whose weight may be the target
/// embedding; null when the target embedding is the output layer and has no bias. Fails when tied tables
/// differ in size.
std::unique_ptr<Linear> tie_tables(const TransformerConfig& config, Embedder& source, Embedder& target,
                                   Rng& rng);
/// Logits [..., V] of hidden states [..., width] by the output layer, or by the embedding where it is null;
/// times `scale`.
Tensor output_logits(const std::unique_ptr<Linear>& output, const Embedder& embedder, const Tensor& hidden,
                     double scale = 1);
/// linear_cross_entropy() of that layer: the mean cross entropy of output_logits() at targets i32 [...].
Tensor output_cross_entropy(const std::unique_ptr<Linear>& output, const Embedder& embedder,
                            const Tensor& hidden, const Tensor& targets, double smoothing, int32_t ignore,
                            double scale = 1);
/// The hidden state of the last position: [B, T, width] -> [B, width].
Tensor last_position(const Tensor& hidden);

/// Translation by transformers. Vaswani et al. 2017, arXiv 1706.03762.
class EncoderDecoder final : public TranslationModel {
 public:
  /// The attentions of the encoder, the decoder, and from decoder to encoder.
  struct Attentions {
    AttentionFactory encoder;  ///< attention in the encoder's blocks
    AttentionFactory decoder;  ///< causal attention in the decoder's blocks
    AttentionFactory cross;    ///< from decoder to encoder
  };
  /// Fails for vocabularies that config.tie_embeddings cannot tie, and for attentions that do not support
  /// their role.
  EncoderDecoder(const TransformerConfig& config, int64_t source_vocabulary, int64_t target_vocabulary,
                 const Attentions& attentions, Rng& rng);
  Tensor encode(const Tensor& source, const Tensor& lengths, const ForwardContext& context) const override;
  Tensor decode(const Tensor& target, const Tensor& encoded, const Tensor& lengths,
                const ForwardContext& context) const override;
  Tensor decode_at(const Tensor& target, const Tensor& encoded, const Tensor& lengths, const Tensor& places,
                   const ForwardContext& context) const override;
  Tensor logits(const Tensor& hidden) const override;
  Tensor token_loss(const Tensor& hidden, const Tensor& targets, double smoothing = 0,
                    int32_t ignore = -1) const override;
  Decoding start(const Tensor& encoded, const Tensor& lengths) const override;
  using TranslationModel::start;
  Tensor next(const Tensor& ids, Decoding& state) const override;
  int64_t max_length() const override { return max_length_; }
  /// The logits [B, T, V] that each layer of the decoder would predict (nostalgebraist 2020, "interpreting
  /// GPT: the logit lens"): final norm and output layer on the embeddings, then on each block's output. The
  /// arguments are those of decode(); the last logits are logits(decode(...)).
  std::vector<Tensor> layer_logits(const Tensor& target, const Tensor& encoded, const Tensor& lengths) const;
  void fields(Fields& f) override;

  Embedder source;                 ///< embeds source ids
  Embedder target;                 ///< embeds target ids
  TransformerStack encoder;        ///< over source embeddings
  TransformerStack decoder;        ///< over target embeddings, with cross-attention
  std::unique_ptr<Linear> output;  ///< null when tied to the target embedding, without a bias

 private:
  int64_t max_length_;
  double logit_scale_;
};

/// A causal language model.
class DecoderOnly final : public AutoregressiveModel {
 public:
  /// Fails for an attention that cannot be causal.
  DecoderOnly(const TransformerConfig& config, int64_t vocabulary, const AttentionFactory& attention,
              Rng& rng);
  /// ids i32 [B, T] -> logits [B, T, V].
  Tensor operator()(const Tensor& ids, const ForwardContext& context) const;
  /// Documents one after the other, without padding: ids i32 [1, N], lengths i32 [D] with the sum N -> logits
  /// [1, N, V]. No token attends to another document, and positions begin at 0 in each.
  Tensor documents(const Tensor& ids, const Tensor& lengths, const ForwardContext& context) const;
  /// The input of the output layer: ids i32 [B, T] -> [B, T, width].
  Tensor hidden(const Tensor& ids, const ForwardContext& context) const;
  /// The input of the output layer of documents(): [1, N, width]. With a packing_table of `context`, made for
  /// max_length() tokens a document, the host reads no lengths, some of which may be 0.
  Tensor hidden_of_documents(const Tensor& ids, const Tensor& lengths, const ForwardContext& context) const;
  Tensor logits(const Tensor& hidden) const;  ///< [..., width] -> logits [..., V]
  /// cross_entropy(logits(hidden), targets, smoothing) at targets i32 [...], without storing the logits of
  /// all rows where these would be large: see linear_cross_entropy().
  Tensor token_loss(const Tensor& hidden, const Tensor& targets, double smoothing = 0) const;
  Decoding start() const override;
  Tensor next(const Tensor& ids, Decoding& state) const override;
  int64_t max_length() const override { return max_length_; }
  /// The logits [B, T, V] that each layer would predict for ids i32 [B, T], by the logit lens of
  /// EncoderDecoder::layer_logits(); the last ones equal operator().
  std::vector<Tensor> layer_logits(const Tensor& ids) const;
  void fields(Fields& f) override;

  Embedder embedder;               ///< ids to vectors
  TransformerStack decoder;        ///< causal blocks
  std::unique_ptr<Linear> output;  ///< null when tied to the embedding, without a bias

 private:
  int64_t max_length_;
  double logit_scale_;
};

}  // namespace heed

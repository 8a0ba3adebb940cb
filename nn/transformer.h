// The models that host attention: encoder, decoder, encoder-decoder, language model, classifier.
#pragma once

#include "nn/block.h"
#include "nn/embedding.h"
#include "nn/position.h"

namespace heed {

/// Which tables are one: `output`: the decoder's embedding is also its output layer; `all`: the encoder's
/// too.
enum class Tie { none, output, all };

/// A transformer's sizes and choices; every field is an option of the command line and of config.toml.
struct TransformerConfig {
  int64_t width = 256, heads = 8, key_heads = 0, head_width = 0, feed_forward = 1024, layers = 1;
  int64_t max_length = 512;
  double dropout = 0.1;
  std::optional<double> attention_dropout = {};  ///< on attention weights; empty: as `dropout`
  Activation activation = Activation::relu;
  NormPlace norm = NormPlace::pre;
  kernel::NormScale norm_scale = kernel::NormScale::variance;
  double norm_epsilon = 1e-5;
  PositionKind position = PositionKind::sinusoid;
  Modifiers modifiers = {};  ///< of every attention; their position is the one above, and not across inputs
  Init init = Init::xavier;
  Tie tie = Tie::none;
  bool scale_embedding = true;       ///< multiply embeddings by sqrt(width)
  double embedding_deviation = 0;    ///< of the initial token embeddings; 0: as `init` says
  double position_deviation = 0.02;  ///< of initial learned positions
  bool attention_bias = false;       ///< on query, key, value and output projections
  bool feed_forward_bias = true;
  bool norm_bias = true;
  bool output_bias = true;  ///< of an output layer that is not tied
  void fields(Fields& f);
  double dropout_of_weights() const { return attention_dropout.value_or(dropout); }
  /// Itself. Fails naming the value, the legal ones and what to do.
  const TransformerConfig& check() const;
};

/// Token embedding, position, dropout: ids i32 [B, T] -> [B, T, width].
class Embedder final : public Module {
 public:
  Embedder(int64_t vocabulary, const TransformerConfig& config, Rng& rng);
  Tensor operator()(const Tensor& ids, int64_t first, Rng* noise) const;
  /// The embeddings alone, without positions. Rows of `more` [n, width] follow those of the table.
  Tensor vectors(const Tensor& ids, const Tensor& more = {}) const;
  void fields(Fields& f) override;
  Embedding tokens;
  Position position;

 private:
  double scale_, dropout_;
};

/// A stack of blocks and the norm at its end (pre-norm only).
class Stack final : public Module {
 public:
  struct Role {
    bool causal = false, cross = false;
  };
  Stack(const TransformerConfig& config, Role role, const AttentionFactory& self,
        const AttentionFactory& cross, Rng& rng);
  Tensor operator()(const Tensor& x, const Mask& mask, const Tensor& encoded, const Mask& encoded_mask,
                    std::vector<BlockMemory>* memory, const Pass& pass) const;
  std::vector<BlockMemory> start() const;
  void fields(Fields& f) override;
  std::vector<std::unique_ptr<Block>> blocks;
  std::unique_ptr<LayerNorm> norm;
};

/// Where a decoder stands: one memory a block, and the position of the next token.
struct Decoding {
  std::vector<BlockMemory> memory;
  Mask source;     ///< of the encoded keys
  Tensor encoded;  ///< given to the first step only; remembered afterwards
  int64_t length = 0;
  /// Hypothesis i becomes a copy of hypothesis order[i]; lengths follow.
  void reorder(const std::vector<int32_t>& order);
};

/// A model that reads tokens and predicts the next: what decoding needs of it.
class Generator : public Module {
 public:
  /// Logits [B, V] after one more token ids [B, T]; only the last position is scored.
  virtual Tensor next(const Tensor& ids, Decoding& state) const = 0;
};

/// Source and target: what translation needs of a model.
class TranslationModel : public Generator {
 public:
  /// source i32 [B, S], lengths i32 [B] -> [B, S, width].
  virtual Tensor encode(const Tensor& source, const Tensor& lengths, const Pass& pass) const = 0;
  /// What the output layer reads: target i32 [B, T] -> [B, T, width].
  virtual Tensor decode(const Tensor& target, const Tensor& encoded, const Tensor& lengths,
                        const Pass& pass) const = 0;
  /// [..., width] -> logits [..., V].
  virtual Tensor logits(const Tensor& hidden) const = 0;
  virtual Decoding start(const Tensor& encoded, const Tensor& lengths) const = 0;
};

/// The output layer after the tables have been tied as config.tie says; null where the target's table serves.
/// Fails where one table would have two sizes.
std::unique_ptr<Linear> tie_tables(const TransformerConfig& config, Embedder& source, Embedder& target,
                                   Rng& rng);

/// Translation by transformers. Vaswani et al. 2017, arXiv 1706.03762.
class EncoderDecoder final : public TranslationModel {
 public:
  struct Attentions {
    AttentionFactory encoder, decoder, cross;
  };
  EncoderDecoder(const TransformerConfig& config, int64_t source_vocabulary, int64_t target_vocabulary,
                 const Attentions& attentions, Rng& rng);
  Tensor encode(const Tensor& source, const Tensor& lengths, const Pass& pass) const override;
  Tensor decode(const Tensor& target, const Tensor& encoded, const Tensor& lengths,
                const Pass& pass) const override;
  Tensor logits(const Tensor& hidden) const override;
  Decoding start(const Tensor& encoded, const Tensor& lengths) const override;
  Tensor next(const Tensor& ids, Decoding& state) const override;
  void fields(Fields& f) override;

  Embedder source, target;
  Stack encoder, decoder;
  std::unique_ptr<Linear> output;  ///< null when tied
};

/// A causal language model.
class DecoderOnly final : public Generator {
 public:
  DecoderOnly(const TransformerConfig& config, int64_t vocabulary, const AttentionFactory& attention,
              Rng& rng);
  /// ids i32 [B, T] -> logits [B, T, V].
  Tensor operator()(const Tensor& ids, const Pass& pass) const;
  Decoding start() const;
  Tensor next(const Tensor& ids, Decoding& state) const override;
  void fields(Fields& f) override;

  Embedder embedder;
  Stack decoder;
  std::unique_ptr<Linear> output;

 private:
  Tensor logits(const Tensor& hidden) const;
};

/// How a classifier sums up its tokens.
enum class Pool { mean, first, last };

/// How a classifier compares two inputs u and v: not at all, by [u, v] and one more hidden layer of half the
/// width (Long Range Arena), or by [u, v, u v, u - v] (Nystromformer and what followed it).
enum class Pairing { none, concat, products };

/// Reads tokens that are ids or vectors: what models of whole inputs have in common, and what one that has
/// learned hands to another.
class Reader : public Module {
 public:
  struct Options {
    int64_t vocabulary = 0;  ///< of token ids; 0: the inputs are vectors
    int64_t features = 0;    ///< extent of input vectors
    bool first = false;      ///< a learned token is put before the input
    bool causal = false;     ///< no token looks at later ones
  };
  /// Takes over what a saved model read with: tensors by name. What else the file holds is passed over.
  /// Fails (Fault::data) where a tensor of this reader is missing there or has another shape.
  void load_reader(const std::string& bytes, const std::string& name = "model.safetensors");
  void fields(Fields& f) override;

 protected:
  Reader(const TransformerConfig& config, const Options& options, const AttentionFactory& attention,
         Rng& rng);
  /// Who looks at whom. `lengths` i32 [B] count the token put first too; empty: all are as long as the batch.
  Mask mask(const Tensor& lengths) const;
  /// Embedded tokens [B, T, width] -> encoded [B, T, width], T + 1 with the token put first. `places` i32
  /// [B, T]: positions of tokens that do not follow each other, or empty.
  Tensor encoded(const Tensor& vectors, const Tensor& lengths, const Pass& pass, const Tensor& places) const;
  /// i32 [B, T] or float [B, T, features] -> [B, T, width], without positions.
  Tensor vectors(const Tensor& x) const;
  const Embedder& embedder() const { return *embedder_; }
  bool has_first() const { return static_cast<bool>(first_); }

 private:
  bool causal_;
  double dropout_;
  std::unique_ptr<Embedder> embedder_;
  std::unique_ptr<Linear> patches_;
  Position position_;
  Tensor first_;  // [1, 1, width]
  Stack encoder_;
};

/// Tokens, pooled and classified: each input, or each pair of inputs that one encoder has read.
class Classifier final : public Reader {
 public:
  struct Options {
    int64_t vocabulary = 0;  ///< of token ids; 0: the inputs are vectors
    int64_t features = 0;    ///< extent of input vectors
    int64_t classes = 2;
    Pool pool = Pool::mean;   ///< first: a learned token is put before the input and read at the end; last:
                              ///< the last token is read
    bool causal = false;      ///< no token looks at later ones
    int64_t head_hidden = 0;  ///< a hidden ReLU layer before the classes; 0: none
    int64_t mean_over = 0;    ///< of Pool::mean: what the sum over real tokens is divided by; 0: their number
    Pairing pairing = Pairing::none;  ///< otherwise inputs i and B/2 + i are a pair
  };
  Classifier(const TransformerConfig& config, const Options& options, const AttentionFactory& attention,
             Rng& rng);
  /// x: i32 [B, T] or float [B, T, features]; lengths i32 [B] or empty, which count the token of Pool::first
  /// too; places i32 [B, T], positions of tokens that do not follow each other, or empty -> logits
  /// [B, classes], of pairs [B/2, classes].
  Tensor operator()(const Tensor& x, const Tensor& lengths, const Pass& pass,
                    const Tensor& places = {}) const;
  void fields(Fields& f) override;

 private:
  Tensor pooled(const Tensor& x, const Tensor& lengths) const;
  int64_t head_width(const TransformerConfig& config) const;

  Options options_;
  std::unique_ptr<Linear> hidden_, second_;
  Linear classes_;
};

/// Predicts tokens of its input: hidden ones from all others, or each from those before it. What a reader
/// learns so serves a classifier of the same inputs (Amos et al. 2023, arXiv 2310.02980).
class TokenPredictor final : public Reader {
 public:
  TokenPredictor(const TransformerConfig& config, const Reader::Options& options,
                 const AttentionFactory& attention, Rng& rng);
  /// ids i32 [B, T], where the number of tokens there are stands for a hidden one; rows i32 [n]: whose output
  /// is asked for, counted over all inputs, B T of them; lengths and places as for a Classifier -> logits
  /// [n, vocabulary].
  Tensor operator()(const Tensor& ids, const Tensor& lengths, const Tensor& rows, const Pass& pass,
                    const Tensor& places = {}) const;
  void fields(Fields& f) override;

 private:
  Tensor hidden_;  // [1, width], the embedding of a hidden token; empty where none is
  Linear tokens_;
};

}  // namespace heed

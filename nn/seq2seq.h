// Recurrent encoder-decoders that host any cross-attention.
#pragma once

#include "nn/recurrent.h"
#include "nn/transformer.h"

namespace heed {

/// Where the context c_t meets the decoder's cell, whose state is s_t and whose input the word y_{t-1}.
/// bahdanau: c_t is asked for with s_{t-1} and goes into the cell; the output sees s_t, c_t and y_{t-1}
/// (Bahdanau et al. 2015, arXiv 1409.0473, with a tanh layer for its maxout). luong: c_t is asked for with
/// s_t after the cell; h_t = tanh(W [c_t; s_t]) is the output (Luong et al. 2015, arXiv 1508.04025).
enum class Wiring { bahdanau, luong };

/// What a recurrent model has beside the sizes of TransformerConfig.
struct Seq2SeqOptions {
  CellKind cell = CellKind::lstm;
  bool bidirectional = true;
  Wiring wiring = Wiring::bahdanau;
  bool input_feeding = true;
  void fields(Fields& f);
};

/// The decoder: cells over target embeddings, with one attention to the encoder.
class RecurrentDecoder final : public Module {
 public:
  /// Where it stands in a sentence. Tensors are [B, ...], so beams can be reordered.
  struct State final : Memory {
    std::vector<Tensor> states;  ///< of each layer, [B, parts, width]
    Tensor fed;                  ///< h_{t-1} of input feeding, [B, width]; zeros before the first word
    void fields(Fields& f) override;
  };

  /// Fails where `cross` cannot go step by step.
  RecurrentDecoder(const TransformerConfig& config, const Seq2SeqOptions& options,
                   const AttentionFactory& cross, Rng& rng);
  /// The state before the first word, from what the encoder ended with, [B, width].
  std::unique_ptr<State> start(const Tensor& last) const;
  /// x [B, T, width] continues `state` -> outputs [B, T, width]. `memory` is the attention's; `encoded` is
  /// given once, and empty afterwards. A probe sees one map of all steps, and needs `encoded`.
  Tensor operator()(const Tensor& x, State& state, Memory& memory, const Tensor& encoded, const Mask& source,
                    const Pass& pass) const;
  void fields(Fields& f) override;

  std::vector<std::unique_ptr<RecurrentCell>> cells;
  std::unique_ptr<Attention> cross;
  Linear bridge;   ///< [layers parts width, width]: every state of the first step is tanh of its part
  Linear context;  ///< what is fed into the first cell besides the word: c_t, or h_{t-1}; none: empty
  Linear readout;  ///< of s_t, c_t and y_{t-1}, or of c_t and s_t

 private:
  class Walk;
  Tensor in_steps(const Tensor& x, Walk& walk) const;
  Tensor at_once(const Tensor& x, Walk& walk) const;

  Seq2SeqOptions options_;
  double dropout_;
};

/// Source and target through recurrent networks.
class Seq2Seq final : public TranslationModel {
 public:
  Seq2Seq(const TransformerConfig& config, const Seq2SeqOptions& options, int64_t source_vocabulary,
          int64_t target_vocabulary, const AttentionFactory& cross, Rng& rng);
  Tensor encode(const Tensor& source, const Tensor& lengths, const Pass& pass) const override;
  Tensor decode(const Tensor& target, const Tensor& encoded, const Tensor& lengths,
                const Pass& pass) const override;
  Tensor logits(const Tensor& hidden) const override;
  Decoding start(const Tensor& encoded, const Tensor& lengths) const override;
  Tensor next(const Tensor& ids, Decoding& state) const override;
  void fields(Fields& f) override;

  Embedder source, target;
  Recurrent encoder;
  RecurrentDecoder decoder;
  std::unique_ptr<Linear> output;  ///< null when tied
};

}  // namespace heed

// Seq2Seq: recurrent encoder-decoders with any cross-attention, or with a fixed context and none.
#pragma once

#include "heed/nn/recurrent.h"
#include "heed/nn/transformer.h"

namespace heed {

/// How the context vector c_t is used by the decoder's cell with state s_t and input token y_{t-1}.
/// bahdanau: the query is s_{t-1}; c_t is an input of the cell, and s_t, c_t and y_{t-1} are inputs of the
/// output layer (Bahdanau et al. 2015, arXiv 1409.0473, with a tanh layer in place of maxout). luong: the
/// query is s_t; the output is h_t = tanh(W [c_t; s_t]) (Luong et al. 2015, arXiv 1508.04025).
/// The other two have no attention, and the decoder gets only the encoder's final state c. sutskever: the
/// initial state is computed from c, and the output is s_t (Sutskever et al. 2014, arXiv 1409.3215). cho: c
/// also takes the place of c_t in bahdanau (Cho et al. 2014, arXiv 1406.1078).
enum class Wiring { bahdanau, luong, sutskever, cho };
/// True if a decoder with this wiring attends to the encoder's output.
bool has_attention(Wiring wiring);
/// The wiring as settings spell it: "bahdanau".
const char* to_string(Wiring wiring);

/// Options of a recurrent model besides the sizes of TransformerConfig.
struct Seq2SeqOptions {
  CellKind cell = CellKind::lstm;    ///< kind of cell in encoder and decoder
  bool bidirectional = true;         ///< the encoder reads both ways
  Wiring wiring = Wiring::bahdanau;  ///< how the context vector is used
  bool input_feeding = true;         ///< luong: h_{t-1} is an input of the next step
  void fields(Fields& f);            ///< names the four options with their help
};

/// The decoder: recurrent layers over target embeddings, with one attention to the encoder's output unless
/// the wiring has none.
class RecurrentDecoder final : public Module {
 public:
  /// The state between decoding steps. Tensors are [B, ...], so beam search can reorder them.
  struct State final : AttentionCache {
    std::vector<Tensor> states;       ///< state of each layer, [B, parts, width]
    Tensor fed;                       ///< [B, width]; luong: h_{t-1}, zeros at first; cho: c; else empty
    void fields(Fields& f) override;  ///< names all tensors, so that beams can be reordered
  };

  /// Fails when `cross` cannot decode step by step. A wiring without attention does not call it.
  RecurrentDecoder(const TransformerConfig& config, const Seq2SeqOptions& options,
                   const AttentionFactory& cross, Rng& rng);
  /// The state before the first token, from the encoder's final state `last` [B, width].
  std::unique_ptr<State> start(const Tensor& last) const;
  /// Runs x [B, T, width] from `state` -> outputs [B, T, width]. `cache` belongs to the attention, and is
  /// null without one; `encoded` [B, S, width] is given in the first call and empty afterwards. A MapRecorder
  /// gets one map of all steps and needs `encoded`.
  Tensor operator()(const Tensor& x, State& state, AttentionCache* cache, const Tensor& encoded,
                    const Mask& source, const ForwardContext& context) const;
  void fields(Fields& f) override;

  std::vector<std::unique_ptr<RecurrentCell>> cells;  ///< layers, the lowest first
  std::unique_ptr<Attention> cross;                   ///< attention to the encoder's output; may be null
  /// A new cache of `cross`; null without one.
  std::unique_ptr<AttentionCache> new_cache() const { return cross ? cross->new_cache() : nullptr; }
  Linear bridge;   ///< [layers parts width, width]: tanh of its output is the initial state
  Linear fed;      ///< input of the first cell besides the token: c_t, c, or h_{t-1}; may be empty
  Linear readout;  ///< output layer over s_t, c_t and y_{t-1}, or c_t and s_t; sutskever: empty

 private:
  class Run;
  Tensor step_by_step(const Tensor& x, Run& run) const;
  Tensor all_steps(const Tensor& x, Run& run) const;
  Tensor top_states(const Tensor& x, Run& run, const Tensor& constant) const;
  Tensor from_fixed_context(const Tensor& x, Run& run) const;

  Seq2SeqOptions options_;
  double dropout_;
};

/// Translation by recurrent networks.
class Seq2Seq final : public TranslationModel {
 public:
  /// `cross` makes the only attention, if the wiring has one; fails for vocabularies that cannot be tied as
  /// config says.
  Seq2Seq(const TransformerConfig& config, const Seq2SeqOptions& options, int64_t source_vocabulary,
          int64_t target_vocabulary, const AttentionFactory& cross, Rng& rng);
  Tensor encode(const Tensor& source, const Tensor& lengths, const ForwardContext& context) const override;
  Tensor decode(const Tensor& target, const Tensor& encoded, const Tensor& lengths,
                const ForwardContext& context) const override;
  Tensor logits(const Tensor& hidden) const override;
  Tensor token_loss(const Tensor& hidden, const Tensor& targets, double smoothing = 0,
                    int32_t ignore = -1) const override;
  Decoding start(const Tensor& encoded, const Tensor& lengths) const override;
  using TranslationModel::start;
  Tensor next(const Tensor& ids, Decoding& state) const override;
  void fields(Fields& f) override;

  Embedder source;                 ///< embeds source ids
  Embedder target;                 ///< embeds target ids
  Recurrent encoder;               ///< over source embeddings
  RecurrentDecoder decoder;        ///< over target embeddings, with the attention
  std::unique_ptr<Linear> output;  ///< null when tied to the target embedding, without a bias

 private:
  double logit_scale_;
};

}  // namespace heed

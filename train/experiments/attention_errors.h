// Evaluates a trained language model under another attention: perplexity, and errors of maps and outputs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "heed/attention/base/key_value_cache.h"
#include "heed/core/io/safetensors.h"
#include "heed/nn/attention.h"
#include "heed/train/config/config.h"
#include "heed/train/run/checkpoint_folder.h"

namespace heed {

class DecoderOnly;

/// A trained language model and portions of its held-out text.
class AttentionErrors {
 public:
  /// A window of model.max_length tokens and their targets, the tokens one position later.
  struct Window {
    std::vector<int32_t> ids;      ///< input tokens
    std::vector<int32_t> targets;  ///< targets, as many as `ids`
  };
  /// Distance of an attention from the exact one on the same inputs.
  struct Distance {
    /// Mean over layers, heads and rows of KL(exact row || row), in nats.
    double divergence = 0;
    double outputs = 0;       ///< mean over layers of |outputs - exact outputs| / |exact outputs|, Frobenius
    double min_negative = 1;  ///< least fraction, over all heads, of pairs with q . k < 0 among causal pairs
    double max_negative = 0;  ///< greatest such fraction
  };

  /// Reads the best checkpoint of a run of a language model. Portions are 20 % of the held-out text's
  /// windows, from 20 % and from 40 % on; each is cut to `max_windows` (0: all).
  AttentionErrors(const Path& run, int64_t max_windows);

  static constexpr int64_t portions = 2;  ///< number of portions of the text
  /// exp(mean negative log-likelihood) of the targets of a portion, with attention `spec` in all layers.
  double perplexity(const std::string& spec, int64_t portion) const;
  /// The statistic of the published table: at each position but the last of a window the model draws a token
  /// at temperature 0.8; the result is exp(-(sum of log-probabilities of the drawn tokens) / (number of all
  /// positions)). The text serves only as context. `seed` seeds the draws.
  double own_perplexity(const std::string& spec, int64_t portion, uint64_t seed) const;
  /// The distance of attention `spec` from softmax. Both get the inputs that the layer has in the exact
  /// model.
  Distance distance(const std::string& spec, int64_t portion) const;

  /// Calls visit() with the heads of each block [B, H, T, d], normalised and rotated as for the scores, while
  /// the model reads a portion with its own attention. Fails where heads share keys.
  void visit_heads(int64_t portion, const std::function<void(const Heads&)>& visit) const;
  /// The self-attention that the model was trained with: a spec.
  const std::string& own_attention() const { return config_.attention.decoder; }

  /// Hash of weights and text: results with another fingerprint are not reused.
  const std::string& fingerprint() const { return fingerprint_; }
  /// Run, step, model size, number of windows and their length, as text.
  std::string description() const;

 private:
  std::unique_ptr<DecoderOnly> model_with(const AttentionFactory& factory) const;

  Path run_;
  Config config_;
  Checkpoint checkpoint_;
  SafeTensors weights_;
  std::vector<Window> windows_[portions];
  int64_t vocabulary_ = 0;
  std::string fingerprint_;
};

}  // namespace heed

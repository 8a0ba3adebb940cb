// What a trained language model loses under another attention: perplexity, and errors of rows and outputs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heed/nn/attention.h"
#include "heed/train/config/config.h"
#include "heed/train/run/checkpoint_folder.h"

namespace heed {

/// A trained language model and portions of its held-out text.
class AttentionErrors {
 public:
  /// Windows of one portion: `ids` of a window and the targets, each a position later.
  struct Window {
    std::vector<int32_t> ids;      ///< model.max_length of them
    std::vector<int32_t> targets;  ///< as many
  };
  /// How far an attention is from the exact one on the same inputs, as means over layers.
  struct Distance {
    double divergence =
        0;               ///< nats: Kullback-Leibler divergence of a row from the exact row, over heads, rows
    double outputs = 0;  ///< Frobenius norm of the difference of outputs over that of the exact outputs
    double min_negative = 1;  ///< share of q . k < 0 among pairs that queries see, of the head with fewest
    double max_negative = 0;  ///< that share of the head with most
  };

  /// Reads the best checkpoint of a run of a language model. Portions are 20 % of the held-out text's
  /// windows, from 20 % and from 40 % on; each is cut to `max_windows` (0: all).
  AttentionErrors(const Path& run, int64_t max_windows);

  static constexpr int64_t portions = 2;  ///< number of portions of the text
  /// exp of the mean negative log-likelihood of the text's tokens, with attention `spec` in all layers.
  double perplexity(const std::string& spec, int64_t portion) const;
  /// The statistic of the published table: at each position but the last of a window the model draws a token
  /// at temperature 0.8; exp of minus the sum of the log-probabilities of what it drew, divided by the number
  /// of all positions. The text is context alone. `seed` is of the draws.
  double own_perplexity(const std::string& spec, int64_t portion, uint64_t seed) const;
  /// Every layer is given what the exact model gives it, and attends both ways.
  Distance distance(const std::string& spec, int64_t portion) const;

  /// Identifies weights and text: results of another are not reused.
  const std::string& fingerprint() const { return fingerprint_; }
  /// In words: run, step, windows and their length.
  std::string description() const;

 private:
  std::unique_ptr<Module> model_with(const AttentionFactory& factory) const;
  std::unique_ptr<Module> model_with(const std::string& spec) const;

  Path run_;
  Config config_;
  Checkpoint checkpoint_;
  std::vector<Window> windows_[portions];
  int64_t vocabulary_ = 0;
  std::string fingerprint_;
};

}  // namespace heed

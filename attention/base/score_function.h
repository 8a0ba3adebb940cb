// Score functions of query-key pairs, for attentions where the score is an option.
#pragma once

#include <memory>

#include "heed/nn/module.h"
#include "heed/nn/options.h"

namespace heed {

/// Computes the score of each pair of query and key.
class ScoreFunction : public Module {
 public:
  /// q [B, H, Tq, d], k [B, H, Tk, d] -> [B, H, Tq, Tk]
  virtual Tensor operator()(const Tensor& q, const Tensor& k) const = 0;
};

/// The formula of a score.
enum class ScoreKind {
  softmax,  ///< q . k / sqrt(d)
  dot,      ///< q . k
  general,  ///< q W . k
  additive  ///< u . tanh(A q + C k + b)
};

/// Sizes and options of a score.
struct ScoreOptions {
  int64_t heads = 1;         ///< number of heads H
  int64_t width = 1;         ///< width d of a head
  int64_t hidden = 0;        ///< additive: number of hidden units, the rows of A; 0: the width of a head
  bool bias = true;          ///< additive: the hidden layer has the bias b
  bool project_keys = true;  ///< additive: keys are projected by C; otherwise `hidden` must be the head width
};

/// Creates a score. Parameters of general: `general` [H, d, d], applied as q W; of additive: `from_query` and
/// `from_key` [H, d, A], `bias` [H, 1, A], `units` [H, A]. Fails on illegal sizes.
std::unique_ptr<ScoreFunction> make_score(ScoreKind kind, const ScoreOptions& options, Rng& rng);

}  // namespace heed

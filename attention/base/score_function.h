// What scores a pair of query and key, for attentions that let one choose.
#pragma once

#include <memory>

#include "nn/fields.h"
#include "nn/module.h"

namespace heed {

/// A score for each pair of query and key.
class Score : public Module {
 public:
  /// q [B, H, Tq, d], k [B, H, Tk, d] -> [B, H, Tq, Tk]
  virtual Tensor operator()(const Tensor& q, const Tensor& k) const = 0;
};

/// Which score: q . k / sqrt(d), q . k, q W . k, or u . tanh(A q + C k + b).
enum class ScoreKind { softmax, dot, general, additive };

/// What a score is made for.
struct ScoreOptions {
  int64_t heads = 1, width = 1;  ///< width: of a head
  int64_t hidden = 0;            ///< of additive: units that score a pair; 0: the width of a head
  bool bias = true;              ///< of additive: b
  bool project_keys = true;      ///< of additive: C; without it A is d
};

/// Parameters: `general` [H, d, d], rows take the query; additive: `from_query` [H, d, A], `from_key` [H, d,
/// A], `bias` [H, 1, A], `units` [H, A].
std::unique_ptr<Score> make_score(ScoreKind kind, const ScoreOptions& options, Rng& rng);

}  // namespace heed

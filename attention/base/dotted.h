// Rung 2, in tiles: scores that are dot products of queries and keys made ready; a variant overrides align().
#pragma once

#include "attention/scored.h"

namespace heed {

/// Softmax of scaled dot products that never holds a map: memory follows the length. A probe makes the map
/// from the same numbers, and some gradients need it.
class DottedAttention : public ScoredAttention {
 protected:
  DottedAttention(const AttentionConfig& config, Rng& rng, double scale, Project project = Project::qkv)
      : ScoredAttention(config, rng, project), scale_(scale) {}

  /// Makes the queries of this call and all keys ready for the product.
  virtual void align(Heads& heads) const { static_cast<void>(heads); }

  Tensor score(const Tensor& q, const Tensor& k, const Attend& call) const final;
  Tensor attend(Heads heads, const Attend& call) override;
  bool shares_keys() const override { return true; }

 private:
  /// Some gradients need the map: of a bias that is trained, of vectors, of a trained bias below a cap.
  bool needs_map(const Attend& call) const;

  double scale_;
};

}  // namespace heed

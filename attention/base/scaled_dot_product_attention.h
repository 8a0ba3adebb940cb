// ScaledDotProductAttention, a base class: softmax of dot products in tiles; a variant may override
// transform_heads().
#pragma once

#include "heed/attention/base/scored_attention.h"

namespace heed {

/// softmax(scale q k^T) v without storing the map, so memory is linear in the length. The map is computed
/// only for a MapRecorder and for the gradients that needs_map() lists.
class ScaledDotProductAttention : public ScoredAttention {
 protected:
  /// `scale` multiplies q . k; it is 1 / sqrt(d) in Vaswani et al. 2017.
  ScaledDotProductAttention(const AttentionConfig& config, Rng& rng, double scale,
                            Project project = Project::qkv)
      : ScoredAttention(config, rng, project), scale_(scale) {}

  /// Transforms the queries of this call and all keys before their dot product; by default it changes
  /// nothing.
  virtual void transform_heads(Heads& heads) const { static_cast<void>(heads); }

  Tensor score(const Tensor& q, const Tensor& k, const AttentionInput& input) const final;
  Tensor attend(Heads heads, const AttentionInput& input) override;
  bool attends_packed(const AttentionInput& input) const override;
  bool shares_keys() const override { return true; }

 private:
  /// True when a gradient needs the map: of a trained additive bias, of shaw's vectors, or of t5's bias with
  /// a softcap.
  bool needs_map(const AttentionInput& input) const;

  double scale_;
};

}  // namespace heed

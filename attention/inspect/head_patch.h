// HeadPatch: puts the outputs that heads gave in one forward pass into another (activation patching).
#pragma once

#include <map>
#include <vector>

#include "heed/attention/inspect/model_heads.h"

namespace heed {

/// Replaces the outputs of chosen heads by those of another forward pass, for activation patching (Vig et al.
/// 2020, arXiv 2004.12265; Meng et al. 2022, arXiv 2202.05262). Both passes have inputs of one shape.
class HeadPatch final : public HeadEditor {
 public:
  /// Takes the outputs that a recorder with keep_heads has kept. Fails when there are none.
  explicit HeadPatch(const MapRecorder& recorded);
  /// Sets the heads to replace from now on. Fails for a head that was not recorded, or that was recorded in
  /// more than one call of its attention.
  void replace(const std::vector<ModelHead>& heads);
  Tensor edit_heads(const Module& module, const Tensor& heads, const AttentionInput& input) override;

 private:
  std::map<const Module*, std::vector<Tensor>> outputs_;  // [B, H, Tq, d] of each call
  std::map<const Module*, std::vector<int64_t>> replaced_;
};

}  // namespace heed

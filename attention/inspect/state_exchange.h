// StateExchange: puts what one forward pass held at some places of its sequences into another.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "heed/nn/attention.h"

namespace heed {

/// What a forward pass holds at each place of a sequence.
enum class StateKind {
  stream,  ///< the residual stream before a block; with the number of blocks as layer, behind the last one
  input,   ///< what an attention reads, behind norm and short convolution
  keys,    ///< keys of all heads
  values,  ///< values of all heads
  output   ///< outputs of all heads
};
/// The name of the enumerator: "stream".
const char* to_string(StateKind kind);

/// A state of a model: its kind, and the layer that has it, from 0.
struct StateSite {
  StateKind kind = StateKind::stream;                 ///< what it is
  int64_t layer = 0;                                  ///< which of the model's
  bool operator==(const StateSite&) const = default;  ///< compares kind and layer
};

/// Interchange interventions (Geiger et al. 2021, arXiv 2106.02997; Arora et al. 2025, arXiv 2505.15105): at
/// chosen places of a sequence a state is replaced by the one that the model had there on another sequence.
/// For models of one stack, in forward passes without a cache.
class StateExchange final : public HeadEditor {
 public:
  /// Records the states of a forward pass on inputs [B, T], which is to follow, and changes none.
  void record();
  /// Lets a forward pass on inputs of the same shape, which is to follow, have the recorded state of `site`
  /// where `places` [B, T], of zeros and ones, is 1. Fails for a site that was not recorded.
  void replace(const StateSite& site, const Tensor& places);
  /// What was recorded, in the order of the enumerators and of the layers. An attention without keys of its
  /// own has none here.
  std::vector<StateSite> sites() const;

  Tensor edit_heads(const Module& attention, const Tensor& heads, const AttentionInput& input) override;
  Tensor edit_keys(const Module& attention, const Tensor& keys) override;
  Tensor edit_values(const Module& attention, const Tensor& values) override;
  Tensor edit_input(const Module& attention, const Tensor& x) override;
  Tensor edit_stream(const Module& stack, int64_t layer, const Tensor& x) override;

 private:
  Tensor state(StateKind kind, const Tensor& x);

  std::map<StateKind, std::vector<Tensor>> recorded_;  // by layer
  std::map<StateKind, int64_t> passed_;                // states that the present pass has had
  bool is_recording_ = false;
  StateSite site_;  // to be replaced
  Tensor places_;   // empty: nothing is replaced
};

}  // namespace heed

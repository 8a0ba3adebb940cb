// DecayAttention, rung 2'': recurrent linear attention with decay or the delta rule; a variant overrides
// scan_inputs().
#pragma once

#include "heed/attention/base/multi_head_attention.h"

namespace heed {

/// The cache of a recurrent linear attention: one matrix per head.
struct StateCache final : AttentionCache {
  Tensor state;  ///< [B, H, d, dv]
  /// Names the state, for copying and reordering rows.
  void fields(Fields& f) override { f("state", state); }
};

/// o_t = S_t^T q_t with S_t = a_t S_{t-1} + k_t u_t^T, in time and memory linear in the length, with a cache
/// of constant size. u_t is v_t, or with beta the update of the delta rule: see
/// core/kernels/linear_attention/decay_scan.h. Causal only.
class DecayAttention : public MultiHeadAttention {
 public:
  /// What follows the scan.
  struct After {
    bool norm = false;  ///< divide each head by its root mean square: a group norm without gain
    bool gate = false;  ///< multiply by silu of a projection of the layer's input
  };
  /// `after` decides what follows the scan; makes the projections of q, k and v, and that of the gate.
  DecayAttention(const AttentionConfig& config, const After& after, Rng& rng);
  std::unique_ptr<AttentionCache> new_cache() const override { return std::make_unique<StateCache>(); }
  void fields(Fields& f) override;

 protected:
  /// Inputs of the scan besides the values; all but q and k may be empty.
  struct ScanInputs {
    Tensor q;          ///< [B, H, T, d]
    Tensor k;          ///< [B, H, T, d]
    Tensor log_decay;  ///< [B, H, T, 1 | d], log a_t
    Tensor beta;       ///< [B, H, T, 1]
    Tensor amount;     ///< [B, H, T, 1], factor of the values
  };
  /// Computes the scan's inputs; `first` is the position of row 0.
  virtual ScanInputs scan_inputs(const Heads& heads, const AttentionInput& input, int64_t first) const = 0;
  Tensor attend(Heads heads, const AttentionInput& input) override;

  /// A user-given tensor `place` (the field `name`) as [B, H, T, 1 | d]; empty when it is not given. Fails on
  /// another shape.
  static Tensor given(const Tensor& place, const char* name, const Heads& heads);
  /// The layer's input [B, T, width]. Fails when the call has none, naming the field to give instead.
  static const Tensor& layer_input(const AttentionInput& input, const char* name);
  /// Reshapes [B, T, H], one number per head, to [B, H, T, 1].
  static Tensor each_head(const Tensor& x) {
    return reshape(transpose(x, 1, 2), Shape{x.extent(0), x.extent(2), x.extent(1), 1});
  }

 private:
  void show(const ScanInputs& inputs, const Tensor& shrink, const AttentionInput& input) const;

  After after_;
  std::unique_ptr<Linear> gate_;
};

/// A rate and a step size per head that give decays exp(-rate step), initialised as in Mamba-2. Dao and Gu
/// 2024, arXiv 2405.21060.
struct StepRates {
  Linear step;      ///< [H, width] with a bias; softplus of its output is the step size
  Tensor log_rate;  ///< [H]
  /// Initial rates range from 1 to 16 over the heads, step sizes at zero input from 0.1 down to 0.001.
  StepRates(const AttentionConfig& config, Rng& rng);
  void fields(Fields& f);  ///< names `step` and `log_rate` as parameters
  Tensor steps(const Tensor& layer_input) const { return softplus(step(layer_input)); }  ///< [B, T, H]
  /// The log of the decays, -rate step: [B, T, H] -> [B, T, H].
  Tensor log_decay(const Tensor& steps) const { return -(steps * exp(log_rate)); }
};

}  // namespace heed

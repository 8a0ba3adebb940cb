// DecayAttention, a base class: recurrent linear attention; a variant overrides scan_inputs().
#pragma once

#include "heed/attention/base/multi_head_attention.h"

namespace heed {

/// The cache of a recurrent linear attention: the state S_t, one matrix per head.
struct StateCache final : AttentionCache {
  Tensor state;  ///< [B, H, d, dv]
  void fields(Fields& f) override { f("state", state); }
};

/// o_t = S_t^T q_t with S_t = a_t S_{t-1} + k_t u_t^T, in time and memory linear in the length, with a cache
/// of constant size. u_t is v_t, or with beta the update of the delta rule
/// (core/kernels/linear_attention/decay_scan.h). Causal only.
class DecayAttention : public MultiHeadAttention {
 public:
  /// Transformations of the output of the scan.
  struct OutputOptions {
    bool norm = false;  ///< divide each head by its root mean square: a group norm without gain
    bool gate = false;  ///< multiply by silu of a projection of the layer's input
    /// Names both options.
    void fields(Fields& f) {
      f("norm", norm, "divide each head by its root mean square");
      f("gate", gate, "multiply by silu of a projection of the input");
    }
  };
  /// Creates the projections of q, k and v, and that of the gate if output_options.gate.
  DecayAttention(const AttentionConfig& config, const OutputOptions& output_options, Rng& rng);
  std::unique_ptr<AttentionCache> new_cache() const override { return std::make_unique<StateCache>(); }
  void fields(Fields& f) override;

 protected:
  /// Inputs of the scan besides the values; all but q and k may be empty.
  struct ScanInputs {
    Tensor q;            ///< [B, H, T, d]
    Tensor k;            ///< [B, H, T, d]
    Tensor log_decay;    ///< [B, H, T, 1 | d], log a_t
    Tensor beta;         ///< [B, H, T, 1]
    Tensor value_scale;  ///< [B, H, T, 1], factor of the values
  };
  /// Computes the scan's inputs; `first` is the position of row 0.
  virtual ScanInputs scan_inputs(const Heads& heads, const AttentionInput& input, int64_t first) const = 0;
  Tensor attend(Heads heads, const AttentionInput& input) override;

  /// A tensor that the user gave for the field `name`, as [B, H, T, 1 | d]; empty when it was not given.
  /// Fails on another shape.
  static Tensor given_tensor(const Tensor& tensor, const char* name, const Heads& heads);
  /// The layer's input [B, T, width]. Fails when the call has none, naming the field to give instead.
  static Tensor required_layer_input(const AttentionInput& input, const char* name);
  /// Reshapes [B, T, H], one number per head, to [B, H, T, 1].
  static Tensor per_head(const Tensor& x) {
    return reshape(transpose(x, 1, 2), Shape{x.extent(0), x.extent(2), x.extent(1), 1});
  }

 private:
  OutputOptions output_options_;
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
  Tensor step_sizes(const Tensor& layer_input) const { return softplus(step(layer_input)); }  ///< [B, T, H]
  /// The log of the decays, -rate step: [B, T, H] -> [B, T, H].
  Tensor log_decay(const Tensor& step_sizes) const { return -(step_sizes * exp(log_rate)); }
};

}  // namespace heed

// Rung 2'': causal sums that fade, and the delta rule; a variant overrides fade().
#pragma once

#include "attention/headed.h"

namespace heed {

/// What an attention remembers whose past is one matrix a head.
struct StateMemory final : Memory {
  Tensor state;  ///< [B, H, d, dv]
  void fields(Fields& f) override { f("state", state); }
};

/// o_t = S_t^T q_t with S_t = a_t S_{t-1} + k_t u_t^T, in time and memory linear in the length and with a
/// memory of constant size. u_t is v_t, or with beta what the delta rule writes: core/kernels/decay_scan.h.
class FadingAttention : public HeadedAttention {
 public:
  /// What is done with the outputs of the scan.
  struct After {
    bool norm = false;  ///< each head divided by its root mean square: a group norm without a gain
    bool gate = false;  ///< times silu of a projection of the layer's input
  };
  FadingAttention(const AttentionConfig& config, const After& after, Rng& rng);
  std::unique_ptr<Memory> start() const override { return std::make_unique<StateMemory>(); }
  void fields(Fields& f) override;

 protected:
  /// What the scan reads besides the values. Those that are not there may be empty, but for q and k.
  struct Fade {
    Tensor q, k;       ///< [B, H, T, d]
    Tensor log_decay;  ///< [B, H, T, 1 | d], log a_t
    Tensor beta;       ///< [B, H, T, 1]
    Tensor amount;     ///< [B, H, T, 1], multiplies the values
  };
  /// `first`: the position of row 0.
  virtual Fade fade(const Heads& heads, const Attend& call, int64_t first) const = 0;
  Tensor attend(Heads heads, const Attend& call) override;

  /// A place of `name` among the fields, as [B, H, T, 1 | d]; empty when nobody filled it.
  static Tensor given(const Tensor& place, const char* name, const Heads& heads);
  /// The layer's input [B, T, width]. Fails when a call has none, naming the place to fill instead.
  static const Tensor& input(const Attend& call, const char* name);
  /// [B, T, H], one number a head, as [B, H, T, 1].
  static Tensor each_head(const Tensor& x) {
    return reshape(transpose(x, 1, 2), Shape{x.extent(0), x.extent(2), x.extent(1), 1});
  }

 private:
  void show(const Fade& fade, const Tensor& shrink, const Attend& call) const;

  After after_;
  std::unique_ptr<Linear> gate_;
};

/// A rate and a step size for each head, from which decays follow as exp(-rate step): the start that Mamba-2
/// has. Gu and Dao 2024, arXiv 2405.21060.
struct StepRates {
  Linear step;      ///< [H, width] and a bias: softplus of it is the step
  Tensor log_rate;  ///< [H]
  /// Rates spread from 1 to 16, steps from 0.001 to 0.1 where the input is zero.
  StepRates(const AttentionConfig& config, Rng& rng);
  void fields(Fields& f);
  Tensor steps(const Tensor& input) const { return softplus(step(input)); }  ///< [B, T, H]
  /// -rate step, [B, T, H].
  Tensor log_decay(const Tensor& steps) const { return -(steps * exp(log_rate)); }
};

}  // namespace heed

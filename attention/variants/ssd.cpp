// State-space duality: the attention form of Mamba-2, with one decay gate per head. Dao and Gu 2024, arXiv
// 2405.21060, section 6.
//
//   Y = (L o C B^T) X,      L_ij = product over j < t <= i of a_t,      a_t = exp(-rate_h step_t)
//
// C, B and X are queries, keys and values; values are multiplied by step_t = softplus(W x_t + b) of their
// head. It equals the recurrence S_t = a_t S_{t-1} + B_t X_t^T, o_t = S_t^T C_t. There is no scale.
// Parameters: step.weight [H, width], step.bias [H], log_rate [H]; gate.weight [width, width] with gate=true.
// Optional inputs of one call: log_decay (log a) [B, H, N], instead of that computed from x, and with it
// steps [B, H, N], which multiply the values.
#include "heed/attention/base/decay_attention.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

class SsdAttention final : public DecayAttention {
 public:
  SsdAttention(const AttentionConfig& config, const OutputOptions& o, Rng& rng)
      : DecayAttention(config, o, rng), rates_(config, rng) {}
  void fields(Fields& f) override {
    DecayAttention::fields(f);
    rates_.fields(f);
    f("log_decay", log_decay_);
    f("steps", steps_);
  }

 private:
  ScanInputs scan_inputs(const Heads& heads, const AttentionInput& input, int64_t) const override {
    Tensor log_decay = given_tensor(log_decay_, "log_decay", heads),
           value_scale = given_tensor(steps_, "steps", heads);
    if (!log_decay) {
      const Tensor step_sizes = rates_.step_sizes(required_layer_input(input, "log_decay"));
      log_decay = per_head(rates_.log_decay(step_sizes));
      value_scale = per_head(step_sizes);
    }
    return {.q = heads.q, .k = heads.k, .log_decay = log_decay, .beta = {}, .value_scale = value_scale};
  }

  StepRates rates_;
  Tensor log_decay_, steps_;  // [B, H, N] or empty
};

}  // namespace

Variant variant::ssd() {
  return describe<SsdAttention, DecayAttention::OutputOptions>(
      like(decay_traits,
           {.name = "ssd",
            .paper = "Dao and Gu 2024",
            .summary =
                "Mamba-2 as attention: products decay by one gate for each head, computed from the input."}));
}

}  // namespace heed

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

struct SsdOptions {
  bool norm = false, gate = false;
  void fields(Fields& f) {
    f("norm", norm, "divide each head by its root mean square");
    f("gate", gate, "multiply by silu of a projection of the input");
  }
};

class SsdAttention final : public DecayAttention {
 public:
  SsdAttention(const AttentionConfig& config, const SsdOptions& o, Rng& rng)
      : DecayAttention(config, {.norm = o.norm, .gate = o.gate}, rng), rates_(config, rng) {}
  void fields(Fields& f) override {
    DecayAttention::fields(f);
    rates_.fields(f);
    f("log_decay", log_decay_);
    f("steps", steps_);
  }

 private:
  ScanInputs scan_inputs(const Heads& heads, const AttentionInput& input, int64_t) const override {
    Tensor log_decay = given(log_decay_, "log_decay", heads), amount = given(steps_, "steps", heads);
    if (!log_decay) {
      const Tensor steps = rates_.steps(layer_input(input, "log_decay"));
      log_decay = each_head(rates_.log_decay(steps));
      amount = each_head(steps);
    }
    return {.q = heads.q, .k = heads.k, .log_decay = log_decay, .beta = {}, .amount = amount};
  }

  StepRates rates_;
  Tensor log_decay_, steps_;  // [B, H, N] or empty
};

}  // namespace

Variant variant::ssd() {
  return describe<SsdAttention, SsdOptions>(
      {.name = "ssd",
       .paper = "Dao and Gu 2024",
       .idea = "Mamba-2's dual: products fade by one gate for each head, made from the input.",
       .time = {.length = 1, .width = 2},
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .full = false,
       .cross = false,
       .steps = true,
       .map = MapKind::signed_});
}

}  // namespace heed

// The delta rule: linear attention whose state replaces the value of a key instead of adding to it. Schlag et
// al. 2021, arXiv 2102.11174; parallel form: Yang et al. 2024, arXiv 2406.06484; gated: Yang et al. 2024,
// "Gated delta networks", arXiv 2412.06464.
//
//   S_t = a_t S_{t-1} + beta_t k_t (v_t - (a_t S_{t-1})^T k_t)^T,      o_t = S_t^T q_t / sqrt(d)
//
// with keys of unit length and beta_t = sigmoid(B x_t) per head. a_t = 1; with gated=true a_t =
// exp(-rate softplus(W x_t + b)).
// Parameters: writing.weight [H, width] (B); step.weight [H, width], step.bias [H], log_rate [H] with
// gated=true; gate.weight [width, width] with gate=true. Optional inputs of one call, instead of those
// computed from x: beta [B, H, N], and log_decay (log a) [B, H, N] or [B, H, N, D].
#include "heed/attention/base/decay_attention.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct DeltaOptions {
  bool gated = false, unit_keys = true, unit_queries = false;
  double scale = 0;
  DecayAttention::OutputOptions output;
  void fields(Fields& f) {
    f("gated", gated, "the state decays by a_t, computed from the input");
    f("unit_keys", unit_keys, "divide keys by their length");
    f("unit_queries", unit_queries, "divide queries by their length");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
    output.fields(f);
  }
};

class DeltaAttention final : public DecayAttention {
 public:
  DeltaAttention(const AttentionConfig& config, const DeltaOptions& o, Rng& rng)
      : DecayAttention(config, o.output, rng),
        options_(o),
        beta_layer_(config.d_model, config.heads, rng, {.bias = false, .init = config.init}) {
    if (o.gated) rates_ = std::make_unique<StepRates>(config, rng);
  }
  void fields(Fields& f) override {
    DecayAttention::fields(f);
    f("writing", beta_layer_);
    if (rates_) rates_->fields(f);
    f("beta", beta_);
    f("log_decay", log_decay_);
  }

 private:
  static Tensor unit_vectors(const Tensor& x) { return x / sqrt(sum(square(x), 3) + 1e-6); }

  ScanInputs scan_inputs(const Heads& heads, const AttentionInput& input, int64_t) const override {
    Tensor beta = given_tensor(beta_, "beta", heads),
           log_decay = given_tensor(log_decay_, "log_decay", heads);
    if (!beta) beta = per_head(sigmoid(beta_layer_(required_layer_input(input, "beta"))));
    if (!log_decay && rates_)
      log_decay = per_head(rates_->log_decay(rates_->step_sizes(required_layer_input(input, "log_decay"))));
    const Tensor q = options_.unit_queries ? unit_vectors(heads.q) : heads.q;
    return {.q = q * attention_scale(options_.scale, q.extent(3)),
            .k = options_.unit_keys ? unit_vectors(heads.k) : heads.k,
            .log_decay = log_decay,
            .beta = beta,
            .value_scale = {}};
  }

  DeltaOptions options_;
  Linear beta_layer_;
  std::unique_ptr<StepRates> rates_;
  Tensor beta_, log_decay_;  // [B, H, N] or empty; the second also [B, H, N, D]
};

}  // namespace

Variant variant::delta() {
  return describe<DeltaAttention, DeltaOptions>(
      like(decay_traits, {.name = "delta",
                          .paper = "Schlag et al. 2021",
                          .summary = "A state that replaces the value of a key instead of adding to it."}));
}

}  // namespace heed

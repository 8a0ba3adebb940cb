// Gated linear attention: linear attention with input-dependent decay per key element. Yang et al. 2023,
// arXiv 2312.06635, section 4.
//
//   S_t = diag(alpha_t) S_{t-1} + k_t v_t^T,      o_t = S_t^T q_t / sqrt(d),
//   alpha_t = sigmoid(W_2 W_1 x_t + b)^(1 / temperature), one per element of the key
//
// Parameters: decay_down.weight [rank, width] (W_1), decay_up.weight [width, rank] (W_2) and decay_up.bias
// [width] (b); gate.weight [width, width] with gate=true. Optional input of one call, instead of that
// computed from x: log_decay (log alpha) [B, H, N, D] or [B, H, N].
#include "heed/attention/base/decay_attention.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct GlaOptions {
  int64_t rank = 16;
  double temperature = 16, scale = 0;
  DecayAttention::OutputOptions output;
  void fields(Fields& f) {
    f("rank", rank, {1, max_width}, "rank of the projection that gives the decays");
    f("temperature", temperature,
      "decays are the sigmoid to the power 1 / temperature; larger values forget more slowly");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
    output.fields(f);
  }
};

const GlaOptions& checked(const GlaOptions& o) {
  if (!(o.temperature > 0)) fail("attention 'gla': temperature = ", o.temperature, ". It must be above 0.");
  return o;
}

class GatedLinearAttention final : public DecayAttention {
 public:
  GatedLinearAttention(const AttentionConfig& config, const GlaOptions& o, Rng& rng)
      : DecayAttention(config, o.output, rng),
        options_(checked(o)),
        down_(config.d_model, o.rank, rng, {.bias = false, .init = config.init}),
        up_(o.rank, config.inner_width(), rng, {.init = config.init}) {}
  void fields(Fields& f) override {
    DecayAttention::fields(f);
    f("decay_down", down_);
    f("decay_up", up_);
    f("log_decay", log_decay_);
  }

 private:
  ScanInputs scan_inputs(const Heads& heads, const AttentionInput& input, int64_t) const override {
    Tensor log_decay = given_tensor(log_decay_, "log_decay", heads);
    if (!log_decay)
      log_decay = split(softplus(-up_(down_(required_layer_input(input, "log_decay"))))) *
                  (-1 / options_.temperature);
    return {.q = heads.q * attention_scale(options_.scale, heads.q.extent(3)),
            .k = heads.k,
            .log_decay = log_decay,
            .beta = {},
            .value_scale = {}};
  }

  GlaOptions options_;
  Linear down_, up_;
  Tensor log_decay_;  // [B, H, N, D], [B, H, N] or empty
};

}  // namespace

Variant variant::gla() {
  return describe<GatedLinearAttention, GlaOptions>(
      like(decay_traits, {.name = "gla",
                          .paper = "Yang et al. 2023",
                          .summary = "A state whose rows decay at rates computed from the input."}));
}

}  // namespace heed

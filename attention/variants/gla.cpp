// Gated linear attention: linear attention with input-dependent decay per key element. Yang et al. 2023,
// arXiv 2312.06635, section 4.
//
//   S_t = diag(alpha_t) S_{t-1} + k_t v_t^T,      o_t = S_t^T q_t / sqrt(d),
//   alpha_t = sigmoid(W_2 W_1 x_t + b)^(1 / temperature), one per element of the key
//
// Parameters: decay_down.weight [rank, width] (W_1), decay_up.weight [width, rank] (W_2) and decay_up.bias
// [width] (b); gate.weight [width, width] with gate=true. Optional input of one call, instead of that
// computed from x: log_decay (log alpha) [B, H, N, D] or [B, H, N].
#include <cmath>

#include "heed/attention/base/decay_attention.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct GlaOptions {
  int64_t rank = 16;
  double temperature = 16, scale = 0;
  bool norm = false, gate = false;
  void fields(Fields& f) {
    f("rank", rank, {1, max_width}, "width between the two matrices that make the decays");
    f("temperature", temperature, "root taken of the sigmoid: the larger, the longer the memory");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
    f("norm", norm, "divide each head by its root mean square");
    f("gate", gate, "multiply by silu of a projection of the input");
  }
};

const GlaOptions& checked(const GlaOptions& o) {
  if (!(o.temperature > 0)) fail("attention 'gla': temperature = ", o.temperature, ". It must be above 0.");
  return o;
}

class GatedLinearAttention final : public DecayAttention {
 public:
  GatedLinearAttention(const AttentionConfig& config, const GlaOptions& o, Rng& rng)
      : DecayAttention(config, {.norm = o.norm, .gate = o.gate}, rng),
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
    const double d = static_cast<double>(heads.q.extent(3));
    Tensor log_decay = given(log_decay_, "log_decay", heads);
    if (!log_decay)
      log_decay = split(softplus(-up_(down_(layer_input(input, "log_decay"))))) * (-1 / options_.temperature);
    return {.q = heads.q * (options_.scale != 0 ? options_.scale : 1 / std::sqrt(d)),
            .k = heads.k,
            .log_decay = log_decay,
            .beta = {},
            .amount = {}};
  }

  GlaOptions options_;
  Linear down_, up_;
  Tensor log_decay_;  // [B, H, N, D], [B, H, N] or empty
};

}  // namespace

Variant variant::gla() {
  return describe<GatedLinearAttention, GlaOptions>(
      {.name = "gla",
       .paper = "Yang et al. 2023",
       .idea = "A state whose rows fade as the input says, each at its own rate.",
       .time = {.length = 1, .width = 2},
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .full = false,
       .cross = false,
       .steps = true,
       .map = MapKind::signed_});
}

}  // namespace heed

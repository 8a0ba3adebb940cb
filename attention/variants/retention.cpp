// Retention: linear attention with a fixed decay per head. Sun et al. 2023, "Retentive network", arXiv
// 2307.08621, equations 5-8.
//
//   o_i = sum_{j <= i} gamma_h^(i - j) (q_i . k_j / sqrt(d)) v_j,      gamma_h = 1 - 2^(-5 - h)
//
// q and k are rotated by their position, and each head is divided by its root mean square afterwards. The
// map, the chunked form and the recurrence S_t = gamma S_{t-1} + k_t v_t^T give the same result. Parameters:
// gate.weight [width, width] with gate=true. Optional input of one call: log_decay [B, H, N], instead of log
// gamma.
#include <cmath>

#include "heed/attention/base/decay_attention.h"
#include "heed/attention/variant.h"
#include "heed/core/constant_table.h"

namespace heed {
namespace {

struct RetentionOptions {
  bool rotate = true;
  double base = 10000, scale = 0;
  DecayAttention::OutputOptions output{.norm = true};
  void fields(Fields& f) {
    f("rotate", rotate, "rotate pairs of adjacent elements of q and k by their position");
    f("base", base, "the slowest pair rotates by about 1 / base per position");
    output.fields(f);
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

class RetentionAttention final : public DecayAttention {
 public:
  RetentionAttention(const AttentionConfig& config, const RetentionOptions& o, Rng& rng)
      : DecayAttention(config, o.output, rng), options_(o) {
    if (!(o.base > 1)) fail("attention 'retention': base = ", o.base, ". It must be above 1.");
  }
  void fields(Fields& f) override {
    DecayAttention::fields(f);
    f("log_decay", log_decay_);
  }

 private:
  ScanInputs scan_inputs(const Heads& heads, const AttentionInput&, int64_t first) const override {
    const int64_t B = heads.q.extent(0), H = heads.q.extent(1), length = heads.q.extent(2),
                  d = heads.q.extent(3);
    Tensor q = heads.q * attention_scale(options_.scale, d);
    Tensor k = heads.k;
    if (options_.rotate && d > 1) {
      const Tensor table = angles_.at(q, first, first + length, d / 2 * 2, options_.base);
      q = rotary(q, table, kernel::RotaryPairs::neighbours);
      k = rotary(k, table, kernel::RotaryPairs::neighbours);
    }
    Tensor log_decay = given_tensor(log_decay_, "log_decay", heads);
    if (!log_decay) {
      std::vector<double> logs;
      for (int64_t h = 0; h < H; ++h) logs.push_back(std::log1p(-std::exp2(-5.0 - static_cast<double>(h))));
      const Tensor log_gammas = constant_table<double>(logs, Shape{1, H, 1, 1}, q.device(), q.dtype());
      log_decay = expand(log_gammas, Shape{B, H, length, 1});
    }
    return {.q = q, .k = k, .log_decay = log_decay, .beta = {}, .value_scale = {}};
  }

  RetentionOptions options_;
  RotaryAngles angles_;
  Tensor log_decay_;  // [B, H, N] or empty
};

}  // namespace

Variant variant::retention() {
  return describe<RetentionAttention, RetentionOptions>(like(
      decay_traits,
      {.name = "retention",
       .paper = "Sun et al. 2023",
       .summary = "Products of rotated queries and keys decay at a fixed rate for each head; no softmax."}));
}

}  // namespace heed

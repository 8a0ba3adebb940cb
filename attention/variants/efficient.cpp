// Efficient attention. Shen et al. 2018, "Efficient attention: attention with linear complexities", arXiv
// 1812.01243.
//
//   y_i = sum_c rho(q_i)_c  ( sum_j exp(k_jc) v_j / sum_j exp(k_jc) ),      rho(q) = softmax over the
//   features of q
//
// Each feature is a map of its own over the keys, and the query mixes them: rows sum to one. A causal query
// takes both sums over j <= i, so that every feature is normalised over what the query may see.
#include "attention/exponential.h"
#include "attention/variant.h"

namespace heed {
namespace {

class EfficientAttention final : public ExponentialAttention {
 public:
  EfficientAttention(const AttentionConfig& config, const NoOptions&, Rng& rng)
      : ExponentialAttention(config, kernel::FastmaxTerms{.coefficients = {0, 1}}, rng) {}

 private:
  /// Keys become exp(k - scale), queries rho(q) / sum_j exp(k_j - scale), feature by feature.
  Heads features(Heads heads, const Attend& call) const override {
    auto* memory = memory_of<ScaledMemory>(call);
    Tensor scale;
    if (heads.k) {
      const Tensor kept = call.mask.kept(heads.k, memory != nullptr ? memory->length : 0);
      const Tensor k = seen(kept ? heads.k * kept : heads.k, kept);
      scale = raised(memory, max(k, 2));
      heads.k = exp(k - scale);
      if (kept) heads.k = heads.k * kept;
    }
    Tensor total = remembered(memory);
    if (heads.k) total = total ? total + sum(heads.k, 2) : sum(heads.k, 2);
    if (!total) fail("attention: no keys were given and none are remembered. Give keys in the first call.");
    heads.q = softmax(heads.q) / maximum(total, without_keys);
    return heads;
  }

  Scaled scaled(const Heads& heads, const Attend& call) const override {
    const auto* memory = memory_of<ScaledMemory>(call);
    const Tensor kept = call.mask.kept(heads.k, memory != nullptr ? memory->length : 0);
    const Tensor k = seen(kept ? heads.k * kept : heads.k, kept);
    Tensor scale, total = cumulative_exp_sum(k, scale);
    if (const Tensor before = remembered(memory)) {
      const Tensor own = scale;
      scale = maximum(own, memory->scale);
      total = total * exp(own - scale) + before * exp(memory->scale - scale);
    }
    const int64_t length = total.extent(2), asked = heads.q.extent(2);
    total = slice(total, 2, length - asked, length);
    return {.q = softmax(heads.q) / maximum(total, without_keys), .k = exp(k - scale), .scale = scale};
  }

  /// sum_j exp(k_j - scale) of the keys that are remembered, [B, H, 1, f]; empty where there are none.
  static Tensor remembered(const ScaledMemory* memory) {
    if (memory == nullptr || !memory->sums) return {};
    const int64_t d = memory->sums.extent(3) - 1;
    return transpose(slice(memory->sums, 3, d, d + 1), 2, 3);
  }

  /// Sums hold exp(0): only those of a query without keys are smaller.
  static constexpr double without_keys = 1e-3;
};

}  // namespace

Variant variant::efficient() {
  return describe<EfficientAttention>(
      {.name = "efficient",
       .paper = "Shen et al. 2018",
       .idea = "Softmax of queries over features and of keys over positions, multiplied from the right.",
       .time = {.length = 1, .width = 2},
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .cross = true,
       .steps = true,
       .map = MapKind::exact});
}

}  // namespace heed

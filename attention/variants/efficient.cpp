// Efficient attention: linear attention with softmax of queries over features and of keys over positions.
// Shen et al. 2018, "Efficient attention: attention with linear complexities", arXiv 1812.01243.
//
//   y_i = sum_c rho(q_i)_c  ( sum_j exp(k_jc) v_j / sum_j exp(k_jc) ),      rho: softmax over features
//
// Each feature has its own map over the keys, and the query mixes these maps, so rows sum to 1. A causal
// query takes both sums over j <= i: every feature is normalised over the keys that the query may attend to.
#include "heed/attention/support/running_exponential.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

class EfficientAttention final : public ExponentialAttention {
 public:
  EfficientAttention(const AttentionConfig& config, const NoOptions&, Rng& rng)
      : ExponentialAttention(config, kernel::PolynomialParams{.coefficients = {0, 1}}, rng) {}

 private:
  /// Keys become exp(k - scale), queries rho(q) / sum_j exp(k_j - scale), elementwise.
  Heads features(Heads heads, const AttentionInput& input) const override {
    auto* cache = cache_of<ScaledSumCache>(input);
    if (heads.k) {
      const Tensor kept = input.mask.padding_mask(heads.k, cache != nullptr ? cache->length : 0);
      const Tensor k = mask_padding(kept ? heads.k * kept : heads.k, kept);
      heads.k = exp(k - raise_scale(cache, max(k, 2)));
      if (kept) heads.k = heads.k * kept;
    }
    Tensor total = cached_total(cache);
    if (heads.k) total = total ? total + sum(heads.k, 2) : sum(heads.k, 2);
    if (!total) fail_without_keys();
    heads.q = softmax(heads.q) / maximum(total, min_divisor);
    return heads;
  }

  Scaled scaled(const Heads& heads, const AttentionInput& input) const override {
    const auto* cache = cache_of<ScaledSumCache>(input);
    const Tensor kept = input.mask.padding_mask(heads.k, cache != nullptr ? cache->length : 0);
    const Tensor k = mask_padding(kept ? heads.k * kept : heads.k, kept);
    Tensor scale, total = cumulative_exp_sum(k, scale);
    if (const Tensor earlier_total = cached_total(cache)) {
      const Tensor scale_of_call = scale;
      scale = maximum(scale_of_call, cache->scale);
      total = total * exp(scale_of_call - scale) + earlier_total * exp(cache->scale - scale);
    }
    const int64_t length = total.extent(2), num_queries = heads.q.extent(2);
    total = slice(total, 2, length - num_queries, length);
    return {.q = softmax(heads.q) / maximum(total, min_divisor), .k = exp(k - scale), .scale = scale};
  }

  /// sum_j exp(k_j - scale) over the cached keys, [B, H, 1, f]; empty when there are none.
  static Tensor cached_total(const ScaledSumCache* cache) {
    if (cache == nullptr || !cache->sums) return {};
    const int64_t d = cache->sums.extent(3) - 1;
    return transpose(slice(cache->sums, 3, d, d + 1), 2, 3);
  }

  /// Lower bound of divisors: sums contain exp(0) = 1 unless a query has no keys.
  static constexpr double min_divisor = 1e-3;
};

}  // namespace

Variant variant::efficient() {
  return describe<EfficientAttention>(
      like(feature_map_traits,
           {.name = "efficient",
            .paper = "Shen et al. 2018",
            .summary =
                "Softmax of queries over features and of keys over positions, multiplied from the right."}));
}

}  // namespace heed

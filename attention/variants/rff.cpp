// Random feature attention: linear attention with random Fourier features. Peng et al. 2021, "Random feature
// attention", arXiv 2103.02143; Rahimi and Recht 2007.
//
//   exp(q . k / sqrt(d)) = E[phi(q) . phi(k)],      x' = x d^(-1/4),
//   phi(x) = exp(x'.x' / 2) [sin W x', cos W x']
//
// An estimate may be negative, and so may the sum that divides a row: sums with absolute value below delta
// are replaced by +-delta. The query's factor exp(x'.x' / 2) cancels; for keys the largest |x'|^2 / 2 is
// subtracted first (the largest so far when causal).
//
// Parameters: W [m, d], the random directions, drawn and not trained; all heads share them.
#include <cmath>

#include "heed/attention/support/random_projections.h"
#include "heed/attention/support/running_exponential.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct RffOptions {
  ProjectionOptions projection;
  double delta = 1e-6, longest = 10, scale = 0;
  void fields(Fields& f) {
    projection.fields(f);
    f("delta", delta, "smallest absolute value of a sum of weights");
    f("longest", longest, "largest length of a key in exp(x'.x' / 2)");
    f("scale", scale, "multiplies q . k; 0: 1 / sqrt(d)");
  }
};

class FourierAttention final : public ExponentialAttention {
 public:
  FourierAttention(const AttentionConfig& config, const RffOptions& o, Rng& rng)
      : ExponentialAttention(config, params_of(o), rng),
        options_(o),
        w_("rff", config, o.projection, /*equal=*/false, rng) {}
  void fields(Fields& f) override {
    ExponentialAttention::fields(f);
    w_.fields(f);
  }

 private:
  static kernel::PolynomialParams params_of(const RffOptions& o) {
    if (!(o.delta > 0) || !(o.longest > 0) || o.scale < 0)
      fail("attention 'rff': delta and longest must be above 0, scale at least 0.");
    return {.coefficients = {0, 1}, .guard = o.delta};
  }
  Tensor attend(Heads heads, const AttentionInput& input) override {
    w_.redraw_if_due(input.context);
    return ExponentialAttention::attend(std::move(heads), input);
  }
  /// x' of the features.
  Tensor prescaled(const Tensor& x) const {
    return x *
           std::sqrt(options_.scale > 0 ? options_.scale : 1 / std::sqrt(static_cast<double>(x.extent(3))));
  }
  /// [sin W x', cos W x'] / sqrt(m): [B, H, T, d] -> [B, H, T, 2 m].
  Tensor waves(const Tensor& x) const {
    const Tensor projected = w_(x);
    return concat(std::vector<Tensor>{sin(projected), cos(projected)}, 3) *
           (1 / std::sqrt(static_cast<double>(projected.extent(3))));
  }

  Heads features(Heads heads, const AttentionInput& input) const override {
    auto* cache = cache_of<ScaledSumCache>(input);
    heads.q = query_features(heads, input);
    if (!heads.k) return heads;
    const Keys keys = key_waves(heads.k, input);
    heads.k = keys.waves * exp(keys.half - raise_scale(cache, max(keys.half, 2)));
    return heads;
  }

  Scaled scaled(const Heads& heads, const AttentionInput& input) const override {
    const auto* cache = cache_of<ScaledSumCache>(input);
    const Keys keys = key_waves(heads.k, input);
    const Tensor scale = running_max(keys.half.detach(), cache != nullptr ? cache->scale : Tensor());
    return {.q = query_features(heads, input), .k = keys.waves * exp(keys.half - scale), .scale = scale};
  }

  Tensor query_features(const Heads& heads, const AttentionInput& input) const {
    // sin and cos of padding may be NaN, so padded queries of self-attention are set to zero.
    if (config().cross) return waves(prescaled(heads.q));
    const int64_t first =
        input.cache != nullptr ? input.cache->length : heads.k.extent(2) - heads.q.extent(2);
    const Tensor kept = input.mask.padding_mask(heads.q, first);
    return waves(prescaled(kept ? heads.q * kept : heads.q));
  }

  /// Keys with padding set to zero.
  struct Keys {
    Tensor waves;  ///< [sin W x', cos W x'] / sqrt(m): [B, H, T, 2 m]
    Tensor half;   ///< |x'|^2 / 2, at most longest^2 / 2: [B, H, T, 1]
  };
  Keys key_waves(const Tensor& k, const AttentionInput& input) const {
    const Tensor kept = input.mask.padding_mask(k, input.cache != nullptr ? input.cache->length : 0);
    const Tensor x = prescaled(kept ? k * kept : k);
    return {waves(x), minimum(sum(square(x), -1) * 0.5, options_.longest * options_.longest / 2)};
  }

  RffOptions options_;
  RandomProjection w_;
};

}  // namespace

Variant variant::rff() {
  return describe<FourierAttention, RffOptions>(
      like(feature_map_traits, {.name = "rff",
                                .paper = "Peng et al. 2021",
                                .summary = "Sines and cosines of random projections: unbiased, and signed.",
                                .map = MapKind::signed_,
                                .tolerance = 100}));
}

}  // namespace heed

// Performer (FAVOR+): linear attention with positive random features for exp. Choromanski et al. 2020,
// "Rethinking attention with Performers", arXiv 2009.14794.
//
//   exp(q . k / sqrt(d)) = E[phi(q) . phi(k)],      x' = x d^(-1/4),   w normal
//
//   positive     phi(x) = exp(W x' - |x'|^2 / 2)
//   hyperbolic   phi(x) = exp(-|x'|^2 / 2) [exp(W x'), exp(-W x')]
//
// The largest exponent of each query, and that of all keys, are subtracted before exp, then epsilon is added;
// with epsilon = 0 this does not change the result. When causal, the largest exponent of keys is the largest
// so far: weights are phi(q) . e^(a_j) + epsilon e^(M_i) sum(phi(q)), which do not depend on later keys, and
// the last output equals the bidirectional one.
//
// Parameters: W [m, d], the random directions, drawn and not trained; all heads share them.
#include <cmath>

#include "heed/attention/support/random_projections.h"
#include "heed/attention/support/running_exponential.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct PerformerOptions {
  enum class Kind { positive, hyperbolic } features = Kind::positive;
  ProjectionOptions projection;
  enum class Lengths { normal, equal } lengths = Lengths::normal;
  double epsilon = 1e-6, scale = 0;
  void fields(Fields& f) {
    f("features", Choice(features, {"positive", "hyperbolic"}), "exp(Wx), or that and exp(-Wx)");
    projection.fields(f);
    f("lengths", Choice(lengths, {"normal", "equal"}),
      "lengths of the directions: those of normal vectors, or sqrt(d)");
    f("epsilon", epsilon, "added to each feature; 0: exact");
    f("scale", scale, "multiplies q . k; 0: 1 / sqrt(d)");
  }
};

struct PerformerCache final : ScaledSumCache {
  Tensor largest;  ///< [B, H, 1, 1], the largest exponent so far, with its gradient
  void fields(Fields& f) override {
    ScaledSumCache::fields(f);
    f("largest", largest);
  }
};

class PerformerAttention final : public ExponentialAttention {
 public:
  PerformerAttention(const AttentionConfig& config, const PerformerOptions& o, Rng& rng)
      : ExponentialAttention(config, kernel::PolynomialParams{.coefficients = {0, 1}}, rng),
        options_(o),
        w_("performer", config, o.projection, o.lengths == PerformerOptions::Lengths::equal, rng) {
    if (!(o.epsilon >= 0)) fail("attention 'performer': epsilon = ", o.epsilon, ". It must be at least 0.");
    if (o.scale < 0)
      fail("attention 'performer': scale = ", o.scale, ". It must be above 0, or 0 for 1 / sqrt(d).");
  }
  std::unique_ptr<AttentionCache> new_cache() const override { return std::make_unique<PerformerCache>(); }
  void fields(Fields& f) override {
    ExponentialAttention::fields(f);
    w_.fields(f);
  }

 private:
  Tensor attend(Heads heads, const AttentionInput& input) override {
    w_.redraw_if_due(input.context);
    return ExponentialAttention::attend(std::move(heads), input);
  }

  /// x' of the exponents.
  Tensor prescaled(const Tensor& x) const {
    const double d = static_cast<double>(x.extent(3));
    return x * std::sqrt(options_.scale > 0 ? options_.scale : 1 / std::sqrt(d));
  }
  /// W x', for hyperbolic features followed by -W x': [B, H, T, f].
  Tensor projected(const Tensor& x) const {
    const Tensor y = w_(x);
    return options_.features == PerformerOptions::Kind::positive ? y : concat(std::vector<Tensor>{y, -y}, 3);
  }

  Heads features(Heads heads, const AttentionInput& input) const override {
    auto* cache = cache_of<PerformerCache>(input);
    if (!heads.k && !cache->sums) fail_without_keys();
    Tensor largest = cache != nullptr ? cache->largest : Tensor();
    if (heads.k) {
      const Exponents a = key_exponents(heads.k, input, cache);
      const Tensor largest_of_call = max(a.largest, 2);
      largest = largest ? maximum(largest_of_call, largest) : largest_of_call;
      heads.k = key_features(a, largest);
      raise_scale(cache, scale_of(largest, a.projected));
      if (cache != nullptr) cache->largest = largest;
    }
    heads.q = query_features(heads.q, largest);
    return heads;
  }

  Scaled scaled(const Heads& heads, const AttentionInput& input) const override {
    auto* cache = cache_of<PerformerCache>(input);
    const Exponents a = key_exponents(heads.k, input, cache);
    const Tensor largest = running_max(a.largest, cache != nullptr ? cache->largest : Tensor());
    const int64_t length = largest.extent(2), num_queries = heads.q.extent(2);
    if (cache != nullptr) cache->largest = slice(largest, 2, length - 1, length);
    return {.q = query_features(heads.q, slice(largest, 2, length - num_queries, length)),
            .k = key_features(a, largest),
            .scale = scale_of(largest, a.projected)};
  }

  /// The exponents `projected` - `half` of keys before the subtraction, which is done together with that of
  /// the largest exponent, because `half` has one number per key and `projected` one per feature.
  struct Exponents {
    Tensor projected;  ///< W x': [B, H, T, f]
    Tensor half;       ///< |x'|^2 / 2: [B, H, T, 1]
    Tensor largest;    ///< the largest exponent of each key, about -1e30 at padding: [B, H, T, 1]
    Tensor kept;       ///< 1 for keys and 0 for padding; empty: all are keys
  };
  Exponents key_exponents(const Tensor& k, const AttentionInput& input, const PerformerCache* cache) const {
    const Tensor kept = input.mask.padding_mask(k, cache != nullptr ? cache->length : 0);
    const Tensor x = prescaled(kept ? k * kept : k), half = sum(square(x), -1) * 0.5, y = projected(x);
    return {y, half, mask_padding(max(y, 3) - half, kept), kept};
  }

  /// Key features e^(a - largest), with a column of ones for the term of epsilon. At padding, where a is 0,
  /// they are at most 1.
  Tensor key_features(const Exponents& a, const Tensor& largest) const {
    Tensor offset = a.half + largest.detach();
    if (a.kept) offset = maximum(offset, a.kept * -1e30);  // at padding at least 0
    const Tensor phi = exp(a.projected - offset);
    if (options_.epsilon == 0) return phi;
    return with_column(phi, Tensor::full(Shape{1, 1, 1, 1}, 1, phi.dtype(), phi.device()));
  }
  /// The scale of key_features(): the log of their divisor; 0 for the column of ones.
  Tensor scale_of(const Tensor& largest, const Tensor& a) const {
    const Tensor scale = largest.detach();
    if (options_.epsilon == 0) return scale;
    const Shape expanded{scale.extent(0), scale.extent(1), scale.extent(2), a.extent(3)};
    return with_column(expand(scale, expanded), Tensor::zeros(Shape{1, 1, 1, 1}, a.dtype(), a.device()));
  }
  /// Query features without |q'|^2 / 2, which cancels; their extra column is epsilon sum(phi(q)), the term of
  /// epsilon after division by e^(M_i).
  Tensor query_features(const Tensor& q, const Tensor& largest) const {
    const Tensor exponents = projected(prescaled(q)),
                 phi = exp(exponents - max(exponents, 3)) + options_.epsilon;
    if (options_.epsilon == 0) return phi;
    return with_column(phi, sum(phi, 3) * (exp(largest - largest.detach()) * options_.epsilon));
  }
  /// x [B, H, T, f] with a column appended, which is expanded to [B, H, T, 1].
  static Tensor with_column(const Tensor& x, const Tensor& column) {
    const Tensor expanded = expand(column, Shape{x.extent(0), x.extent(1), x.extent(2), 1});
    return concat(std::vector<Tensor>{x, expanded}, 3);
  }

  PerformerOptions options_;
  RandomProjection w_;
};

}  // namespace

Variant variant::performer() {
  return describe<PerformerAttention, PerformerOptions>(like(
      feature_map_traits, {.name = "performer",
                           .paper = "Choromanski et al. 2020",
                           .summary = "Random positive features whose products are exp(q . k) on average."}));
}

}  // namespace heed

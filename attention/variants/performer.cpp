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
      "of the directions: as normal vectors have, or sqrt(d)");
    f("epsilon", epsilon, "added to each feature; 0: exact");
    f("scale", scale, "of q . k; 0: 1 / sqrt(d)");
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
    w_.settle(input.context);
    return ExponentialAttention::attend(std::move(heads), input);
  }

  /// x' of the exponents.
  Tensor scaled_down(const Tensor& x) const {
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
    if (!heads.k && !cache->sums)
      fail("attention: no keys were given and none are remembered. Give keys in the first call.");
    Tensor largest = cache != nullptr ? cache->largest : Tensor();
    if (heads.k) {
      const Exponents a = of_keys(heads.k, input, cache);
      const Tensor own = max(a.most, 2);
      largest = largest ? maximum(own, largest) : own;
      heads.k = keys(a, largest);
      raised(cache, scale_of(largest, a.projected));
      if (cache != nullptr) cache->largest = largest;
    }
    heads.q = queries(heads.q, largest);
    return heads;
  }

  Scaled scaled(const Heads& heads, const AttentionInput& input) const override {
    auto* cache = cache_of<PerformerCache>(input);
    const Exponents a = of_keys(heads.k, input, cache);
    const Tensor largest = running_max(a.most, cache != nullptr ? cache->largest : Tensor());
    const int64_t length = largest.extent(2), num_queries = heads.q.extent(2);
    if (cache != nullptr) cache->largest = slice(largest, 2, length - 1, length);
    return {.q = queries(heads.q, slice(largest, 2, length - num_queries, length)),
            .k = keys(a, largest),
            .scale = scale_of(largest, a.projected)};
  }

  /// The exponents `projected` - `half` of keys, not subtracted yet: `half` has one number for each key where
  /// `projected` has one for each feature, so what goes off both is joined to `half` first.
  struct Exponents {
    Tensor projected;  ///< W x': [B, H, T, f]
    Tensor half;       ///< |x'|^2 / 2: [B, H, T, 1]
    Tensor most;       ///< the largest exponent of each key, about -1e30 at padding: [B, H, T, 1]
    Tensor kept;       ///< 1 for keys and 0 for padding; empty: all are keys
  };
  Exponents of_keys(const Tensor& k, const AttentionInput& input, const PerformerCache* cache) const {
    const Tensor kept = input.mask.padding_mask(k, cache != nullptr ? cache->length : 0);
    const Tensor x = scaled_down(kept ? k * kept : k), half = sum(square(x), -1) * 0.5, y = projected(x);
    return {y, half, ExponentialAttention::seen(max(y, 3) - half, kept), kept};
  }

  /// Key features e^(a - largest), with a column of ones for epsilon's term. Padding, where a is 0, stays
  /// below 1.
  Tensor keys(const Exponents& a, const Tensor& largest) const {
    Tensor offset = a.half + largest.detach();
    if (a.kept) offset = maximum(offset, a.kept * -1e30);  // at least 0 at padding
    const Tensor phi = exp(a.projected - offset);
    if (options_.epsilon == 0) return phi;
    return with_column(phi, Tensor::full(Shape{1, 1, 1, 1}, 1, phi.dtype(), phi.device()));
  }
  /// The scale of keys(): the log of their divisor; 0 for the column of ones.
  Tensor scale_of(const Tensor& largest, const Tensor& a) const {
    const Tensor scale = largest.detach();
    if (options_.epsilon == 0) return scale;
    const Shape expanded{scale.extent(0), scale.extent(1), scale.extent(2), a.extent(3)};
    return with_column(expand(scale, expanded), Tensor::zeros(Shape{1, 1, 1, 1}, a.dtype(), a.device()));
  }
  /// Query features, of which |q'|^2 / 2 cancels; their extra column is epsilon sum(phi(q)), for epsilon's
  /// term after division by e^(M_i).
  Tensor queries(const Tensor& q, const Tensor& largest) const {
    const Tensor b = projected(scaled_down(q)), phi = exp(b - max(b, 3)) + options_.epsilon;
    if (options_.epsilon == 0) return phi;
    return with_column(phi, sum(phi, 3) * (exp(largest - largest.detach()) * options_.epsilon));
  }
  static Tensor with_column(const Tensor& x, const Tensor& column) {
    const Tensor expanded = expand(column, Shape{x.extent(0), x.extent(1), x.extent(2), 1});
    return concat(std::vector<Tensor>{x, expanded}, 3);
  }

  PerformerOptions options_;
  RandomProjection w_;
};

}  // namespace

Variant variant::performer() {
  return describe<PerformerAttention, PerformerOptions>(
      {.name = "performer",
       .paper = "Choromanski et al. 2020",
       .idea = "Random positive features whose products are exp(q . k) on average.",
       .time = {.length = 1, .width = 2},
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .cross = true,
       .steps = true,
       .map = MapKind::exact});
}

}  // namespace heed

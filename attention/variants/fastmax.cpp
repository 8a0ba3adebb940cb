// Fastmax: linear attention whose weights are a Taylor polynomial of exp. Gerami et al. 2024, "FAST:
// factorizable attention for speeding up transformers", arXiv 2402.07901.
//
//   y_i = sum_j f(s_ij) v_j / sum_j f(s_ij),      f(s) = sum over l <= p of s^l / l!,      s_ij = q^_i . k^_j
//
// f is a sum over monomials of q^ and k^, so neither a T x T map nor the monomials of single tokens are
// stored. Even p give positive weights; odd p may not where s is below -1. The option normalise computes x^:
//
//   std      x^ = (x - mean) / sqrt(variance + 1e-6) over the features (equations 5 and 6)
//   maxnorm  centred, then divided by the largest norm of all tokens, later ones too: |s| <= 1
//   none     s = q . k / (denum_term sqrt(d)), the default of the authors' programs
//   l2       x^ = x / |x|
//   scaled   x divided by the largest norm of all tokens, later ones too, times `lim`
#include <cmath>

#include "heed/attention/base/kernelized_attention.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

using kernel::FeatureMap;
using kernel::PolynomialParams;

struct FastmaxOptions {
  int64_t p = 2;
  enum class Normalise { standard, maxnorm, none, unit, scaled } normalise = Normalise::standard;
  enum class Centre { tokens, features } centre = Centre::tokens;
  double score_scale = 1, denum_term = 8, lim = 1, a0 = 1, a1 = 1, a2 = 0.5, epsilon = 0, delta = 1e-6;
  bool guard = false;
  enum class Drop { automatic, quadratic, standard, token } dropout = Drop::automatic;

  void fields(Fields& f) {
    f("p", p, {0, 64}, "degree of the polynomial, 0 or more");
    f("normalise", Choice(normalise, {"std", "maxnorm", "none", "l2", "scaled"}),
      "normalisation of queries and keys");
    f("centre", Choice(centre, {"tokens", "features"}), "maxnorm: the axis of the mean that is subtracted");
    f("score_scale", score_scale, "multiplies s");
    f("denum_term", denum_term, "none: divides s, as sqrt(d) does");
    f("lim", lim, "scaled: multiplies the largest norm");
    f("a0", a0, "coefficient of 1");
    f("a1", a1, "coefficient of s");
    f("a2", a2, "coefficient of s^2; later ones are 1 / l!");
    f("epsilon", epsilon, "added to the sum of weights");
    f("guard", guard, "sums of weights have an absolute value of at least delta");
    f("delta", delta, "smallest absolute value with guard");
    f("dropout", Choice(dropout, {"auto", "quadratic", "standard", "1d"}),
      "what dropout drops: monomials of degree 2 and more, entries, or tokens; auto: the first for p >= 2, "
      "else the second");
  }
};

class Fastmax final : public KernelizedAttention {
 public:
  Fastmax(const AttentionConfig& config, const FastmaxOptions& o, Rng& rng)
      : KernelizedAttention(config, params_of(o, config), rng), options_(o) {}

 private:
  static PolynomialParams params_of(const FastmaxOptions& o, const AttentionConfig& config) {
    if (o.denum_term == 0 || !(o.lim > 0) || !(o.delta > 0) || o.epsilon < 0)
      fail(
          "attention 'fastmax': denum_term must not be 0, lim and delta must be above 0, epsilon at least "
          "0.");
    if (o.dropout == FastmaxOptions::Drop::quadratic && o.p < 2)
      fail("attention 'fastmax': dropout = quadratic, but p = ", o.p,
           " has no monomials of degree 2. Use standard.");
    PolynomialParams params{.coefficients = {}, .scale = o.score_scale, .epsilon = o.epsilon};
    const double given[] = {o.a0, o.a1, o.a2};
    double factorial = 1;
    for (int64_t l = 0; l <= o.p; ++l) {
      factorial *= static_cast<double>(std::max<int64_t>(l, 1));
      params.coefficients.push_back(l < 3 ? given[l] : 1 / factorial);
    }
    if (o.guard) params.guard = o.delta;
    if (o.normalise == FastmaxOptions::Normalise::standard) params.prepare = FeatureMap::standard;
    if (o.normalise == FastmaxOptions::Normalise::unit) {
      params.prepare = FeatureMap::unit;
      params.prepare_epsilon = 1e-12;
    }
    if (o.normalise == FastmaxOptions::Normalise::none)
      params.scale /= o.denum_term * std::sqrt(static_cast<double>(config.width_of_head()));
    return params;
  }

  /// True where all tokens are divided by the largest norm of any.
  bool needs_largest_norm() const {
    return options_.normalise == FastmaxOptions::Normalise::maxnorm ||
           options_.normalise == FastmaxOptions::Normalise::scaled;
  }
  bool attends_packed(const AttentionInput&) const override { return !needs_largest_norm(); }
  Heads features(Heads heads, const AttentionInput& input) const override {
    if (!needs_largest_norm()) return heads;
    if (input.cache != nullptr) {
      fail(
          "attention 'fastmax': the largest norm is that of all tokens, so there are no steps. Use "
          "normalise=std.");
    }
    heads.q =
        divided_by_largest_norm(heads.q, config().cross ? Tensor() : input.mask.padding_mask(heads.q, 0));
    heads.k = divided_by_largest_norm(heads.k, input.mask.padding_mask(heads.k, 0));
    return heads;
  }
  /// x divided by the largest norm of its tokens; `kept` [B, 1, T, 1] is 0 at padding, or empty.
  Tensor divided_by_largest_norm(const Tensor& x, const Tensor& kept) const {
    Tensor y = kept ? x * kept : x;
    if (options_.normalise == FastmaxOptions::Normalise::maxnorm &&
        options_.centre == FastmaxOptions::Centre::features) {
      y = y - mean(y, -1);
    } else if (options_.normalise == FastmaxOptions::Normalise::maxnorm) {
      const Tensor total = sum(y, 2);
      y = y - (kept ? total / maximum(sum(kept, 2), 1) : total / static_cast<double>(x.extent(2)));
      if (kept) y = y * kept;
    }
    const Tensor norm = sqrt(sum(square(y), -1) + 1e-24);
    const double lim = options_.normalise == FastmaxOptions::Normalise::scaled ? options_.lim : 1;
    return y / (max(norm, 2) * lim);
  }

  Heads feature_dropout(Heads phi, PolynomialParams& params, Rng& rng) const override {
    using Drop = FastmaxOptions::Drop;
    using kernel::PolynomialDropout;
    const Drop automatic = options_.p >= 2 ? Drop::quadratic : Drop::standard;
    const Drop drop = options_.dropout == Drop::automatic ? automatic : options_.dropout;
    params.drops = drop == Drop::quadratic  ? PolynomialDropout::monomials
                   : drop == Drop::standard ? PolynomialDropout::entries
                                            : PolynomialDropout::tokens;
    params.dropout = config().dropout;
    params.draw = rng.next();
    return phi;
  }

  FastmaxOptions options_;
};

}  // namespace

Variant variant::fastmax() {
  return describe<Fastmax, FastmaxOptions>(like(
      feature_map_traits,
      {.name = "fastmax",
       .paper = "Gerami et al. 2024",
       .summary =
           "A polynomial of normalised scores instead of exp, so that all queries share sums over monomials.",
       .time = {.length = 1, .width = 3}}));
}

}  // namespace heed

// Performer with ReLU features: linear attention whose weights are a kernel of the angle. Choromanski et al.
// 2020, arXiv 2009.14794, section 4.1 ("generalised attention"); Choi 2024.
//
//   performer     phi(x) = relu(W x') + epsilon,                 x' = x d^(-1/4), w normal
//   casinoformer  phi(x) = R^(-1/2) [relu(W x), relu(-W x)],     w of length sqrt(d), R rows in all
//
// The mean of phi(q) . phi(k) is an arc-cosine kernel of the angle between q and k, not exp(q . k).
//
// Parameters: W [m, d], the random directions, drawn and not trained; all heads share them.
#include <cmath>

#include "heed/attention/base/kernelized.h"
#include "heed/attention/support/random_projections.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct PerformerReluOptions {
  enum class Form { performer, casinoformer } form = Form::performer;
  ProjectionOptions projection;
  double epsilon = 1e-3, scale = 0;
  void fields(Fields& f) {
    f("form", Choice(form, {"performer", "casinoformer"}), "relu(Wx) + epsilon, or relu of both signs");
    projection.fields(f);
    f("epsilon", epsilon,
      "of performer: added to each feature; of casinoformer: added to the sum of weights");
    f("scale", scale, "of q . k; 0: 1 / sqrt(d) for performer, 1 for casinoformer");
  }
};

class ReluAttention final : public KernelizedAttention {
 public:
  ReluAttention(const AttentionConfig& config, const PerformerReluOptions& o, Rng& rng)
      : KernelizedAttention(config, terms_of(o), rng),
        options_(o),
        w_("performer_relu", config, o.projection, o.form == PerformerReluOptions::Form::casinoformer, rng) {}
  void fields(Fields& f) override {
    KernelizedAttention::fields(f);
    w_.fields(f);
  }

 private:
  static kernel::PolynomialTerms terms_of(const PerformerReluOptions& o) {
    if (!(o.epsilon > 0)) {
      fail("attention 'performer_relu': epsilon = ", o.epsilon,
           ". It must be above 0, or a query that no direction likes divides by zero.");
    }
    if (o.scale < 0) fail("attention 'performer_relu': scale = ", o.scale, ". It must be at least 0.");
    return {.coefficients = {0, 1},
            .epsilon = o.form == PerformerReluOptions::Form::casinoformer ? o.epsilon : 0};
  }
  Tensor attend(Heads heads, const AttentionInput& input) override {
    w_.settle(input.context);
    return KernelizedAttention::attend(std::move(heads), input);
  }
  Tensor feature(const Tensor& x) const override {
    const double d = static_cast<double>(x.extent(3));
    const bool both = options_.form == PerformerReluOptions::Form::casinoformer;
    const double scale = options_.scale > 0 ? options_.scale : both ? 1 : 1 / std::sqrt(d);
    const Tensor along = w_(x * std::sqrt(scale));
    if (!both) return relu(along) + options_.epsilon;
    const Tensor features = concat(std::vector<Tensor>{relu(along), relu(-along)}, 3);
    return features * (1 / std::sqrt(static_cast<double>(features.extent(3))));
  }

  PerformerReluOptions options_;
  RandomProjection w_;
};

}  // namespace

Variant variant::performer_relu() {
  return describe<ReluAttention, PerformerReluOptions>(
      {.name = "performer_relu",
       .paper = "Choromanski et al. 2020",
       .idea = "Rectified random projections: a kernel of the angle.",
       .time = {.length = 1, .width = 2},
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .cross = true,
       .steps = true,
       .map = MapKind::exact});
}

}  // namespace heed

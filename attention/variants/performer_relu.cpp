// Performer with ReLU features: linear attention whose weights are a kernel of the angle. Choromanski et al.
// 2020, arXiv 2009.14794, section 4.1 ("generalised attention"); Choi 2024.
//
//   performer     phi(x) = relu(W x') + epsilon,                 x' = x d^(-1/4), w normal
//   casinoformer  phi(x) = R^(-1/2) [relu(W x), relu(-W x)],     w of length sqrt(d), R rows in all
//   entries       phi(x) = relu(x) + epsilon, without directions: the default of google-research/
//                 long-range-arena, lra_benchmarks/models/performer/performer_attention.py
//
// The mean of phi(q) . phi(k) over directions is an arc-cosine kernel of the angle between q and k, not
// exp(q . k).
//
// Parameters: W [m, d], the random directions, drawn and not trained; all heads share them. None of entries.
#include <cmath>
#include <optional>

#include "heed/attention/base/kernelized_attention.h"
#include "heed/attention/support/random_projections.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct PerformerReluOptions {
  enum class Form { performer, casinoformer, entries } form = Form::performer;
  ProjectionOptions projection;
  double epsilon = 1e-3, scale = 0;
  void fields(Fields& f) {
    f("form", Choice(form, {"performer", "casinoformer", "entries"}),
      "relu(Wx) + epsilon, relu of both signs, or relu(x) + epsilon");
    projection.fields(f);
    f("epsilon", epsilon, "casinoformer: added to the sum of weights; else: added to each feature");
    f("scale", scale, "multiplies q . k; 0: 1 / sqrt(d) for performer, else 1");
  }
};

class ReluAttention final : public KernelizedAttention {
 public:
  ReluAttention(const AttentionConfig& config, const PerformerReluOptions& o, Rng& rng)
      : KernelizedAttention(config, params_of(o), rng), options_(o) {
    if (o.form == Form::entries) return;
    w_.emplace("performer_relu", config, o.projection, o.form == Form::casinoformer, rng);
  }
  void fields(Fields& f) override {
    KernelizedAttention::fields(f);
    if (w_) w_->fields(f);
  }

 private:
  using Form = PerformerReluOptions::Form;

  static kernel::PolynomialParams params_of(const PerformerReluOptions& o) {
    if (!(o.epsilon > 0)) {
      fail("attention 'performer_relu': epsilon = ", o.epsilon,
           ". It must be above 0, or a query with negative projections on all directions divides by zero.");
    }
    if (o.scale < 0) fail("attention 'performer_relu': scale = ", o.scale, ". It must be at least 0.");
    return {.coefficients = {0, 1}, .epsilon = o.form == Form::casinoformer ? o.epsilon : 0};
  }
  bool attends_packed(const AttentionInput&) const override { return true; }
  Tensor attend(Heads heads, const AttentionInput& input) override {
    if (w_) w_->redraw_if_due(input.context);
    return KernelizedAttention::attend(std::move(heads), input);
  }
  Tensor feature(const Tensor& x) const override {
    const double d = static_cast<double>(x.extent(3));
    const double default_scale = options_.form == Form::performer ? 1 / std::sqrt(d) : 1;
    const double scale = options_.scale > 0 ? options_.scale : default_scale;
    const Tensor scaled = scale == 1 ? x : x * std::sqrt(scale);
    const Tensor projected = w_ ? (*w_)(scaled) : scaled;
    if (options_.form != Form::casinoformer) return relu(projected) + options_.epsilon;
    const Tensor features = concat(std::vector<Tensor>{relu(projected), relu(-projected)}, 3);
    return features * (1 / std::sqrt(static_cast<double>(features.extent(3))));
  }

  PerformerReluOptions options_;
  std::optional<RandomProjection> w_;
};

}  // namespace

Variant variant::performer_relu() {
  return describe<ReluAttention, PerformerReluOptions>(
      like(feature_map_traits, {.name = "performer_relu",
                                .paper = "Choromanski et al. 2020",
                                .summary = "Rectified random projections: a kernel of the angle."}));
}

}  // namespace heed

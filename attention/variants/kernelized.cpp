// Kernelized attention: a Gaussian kernel of query and key, not normalised. Chen et al. 2021, "Skyformer:
// remodel self-attention with Gaussian kernel and Nystrom method", arXiv 2111.00035, section 4.1.
//
//   y_i = sum_j exp(-|q_i - k_j|^2 s / 2) v_j,      s = 1 / sqrt(d)
//
// It is softmax attention with |q_i|^2 s / 2 and |k_j|^2 s / 2 subtracted from the scores and without the
// division of rows by their sums: weights are between 0 and 1, and a row sums to at most the number of its
// keys. It equals SoftmaxAttention_RBF of github.com/pkuzengqi/Skyformer, src/models/attention.py.
//
// Squared distances are expanded after subtracting a centre of the keys, so that a common offset costs no
// precision. The whole map is computed; `skyformer` approximates it. No parameters of its own.
#include "heed/attention/base/scored_attention.h"
#include "heed/attention/support/gaussian_kernel.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct GaussianOptions {
  double scale = 0;
  void fields(Fields& f) {
    f("scale", scale, "s, above 0; half of it multiplies squared distances; 0: 1 / sqrt(d)");
  }
};

class GaussianAttention final : public ScoredAttention {
 public:
  GaussianAttention(const AttentionConfig& config, const GaussianOptions& o, Rng& rng)
      : ScoredAttention(config, rng), scale_(attention_scale(o.scale, head_dim())) {
    if (!(o.scale >= 0))
      fail("attention 'kernelized': scale = ", o.scale, ". It must be above 0, or 0 for 1 / sqrt(d).");
    if (config.modifiers.sink != Sink::none)
      fail(
          "attention 'kernelized': its rows are not normalised, so a sink has no effect. "
          "Leave sink at none, or use softmax.");
  }

 private:
  Tensor score(const Tensor& q, const Tensor& k, const AttentionInput& input) const override {
    const Tensor centre = centre_of_keys(k, input.mask);
    return log_gaussian(q - centre, k - centre, scale_ / 2);
  }
  // Masked pairs have a score of -inf, and so a weight of 0.
  Tensor weigh(const Tensor& scores, const Tensor&, const AttentionInput&) const override {
    return exp(scores);
  }

  double scale_;
};

}  // namespace

Variant variant::kernelized() {
  return describe<GaussianAttention, GaussianOptions>(like(
      full_map_traits,
      {.name = "kernelized",
       .paper = "Chen et al. 2021",
       .summary = "A Gaussian kernel of query and key in place of softmax, without dividing by a row's sum.",
       .map = MapKind::signed_}));
}

}  // namespace heed

// Band projection: the softmax map with everything outside a band set to zero. Conti 2024, "An
// alternative formulation of the attention pooling function in translation", section 2.1.
//
//   y_i = sum_{|i-j| <= w} a_ij v_j,      a_i = softmax_j(q_i . k_j / sqrt(d)) over all j
//
// Among the matrices with w diagonals on either side, this is the nearest to the map A in the entrywise
// 1-norm and in the Frobenius norm. Its rows sum to less than 1; renormalised it is the band softmax, which
// `window` computes in linear time. The divisor sums over all keys, so time is quadratic in the length;
// memory is linear. No parameters of its own.
#include <cmath>

#include "heed/attention/base/banded_attention.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct BandProjectOptions {
  int64_t width = 32;
  bool renormalise = false;
  double scale = 0;
  void fields(Fields& f) {
    f("width", width, {0, max_distance}, "w, diagonals to either side that are kept");
    f("renormalise", renormalise, "divide the kept weights by their sum");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

class BandProject final : public BandedAttention {
 public:
  BandProject(const AttentionConfig& config, const BandProjectOptions& o, Rng& rng)
      : BandedAttention(config, rng, o.width, o.scale), renormalise_(o.renormalise) {}

 private:
  bool is_renormalised() const override { return renormalise_; }
  Tensor weigh(const Tensor& scores, const Tensor&, const AttentionInput& input) const override {
    const Tensor band = band_mask(scores, first_position(scores, input), band_width());
    if (renormalise_) return softmax(where(band, scores, -HUGE_VAL));
    return where(band, softmax(scores), 0);
  }

  bool renormalise_;
};

}  // namespace

Variant variant::band_project() {
  return describe<BandProject, BandProjectOptions>(like(
      dot_product_traits,
      {.name = "band_project",
       .paper = "Conti 2024",
       .summary = "The map of softmax, projected onto its band.",
       .time = {.length = 2, .width = 0.87},  // the column of sums is padded to whole vectors at any width
       .map = MapKind::signed_,
       .min_cost_length = 1024}));
}

}  // namespace heed

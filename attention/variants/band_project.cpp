// Band projection. Conti 2024, "Attention maps as a sum of a structured and a sparse matrix".
//
//   y_i = sum_{|i-j| <= w} a_ij v_j,      a_i = softmax_j(q_i . k_j / sqrt(d)) over all j
//
// The matrix with a band of w diagonals to either side that is nearest to the map A in the entrywise 1-norm
// and in the Frobenius norm. Its rows sum to less than one; renormalised they are the band softmax, which the
// variant `window` has in linear time. What is divided by is the sum over all keys, so time goes with pairs;
// memory does not. No parameters of its own.
#include <cmath>

#include "attention/banded.h"
#include "attention/variant.h"

namespace heed {
namespace {

struct Options {
  int64_t width = 32;
  bool renormalise = false;
  double scale = 0;
  void fields(Fields& f) {
    f("width", width, {0, max_distance}, "w, diagonals to either side that are kept");
    f("renormalise", renormalise, "divide what is kept by its sum");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

class BandProject final : public BandedAttention {
 public:
  BandProject(const AttentionConfig& config, const Options& o, Rng& rng)
      : BandedAttention(config, rng, o.width, o.scale), renormalise_(o.renormalise) {}

 private:
  bool renormalised() const override { return renormalise_; }
  Tensor weigh(const Tensor& scores, const Tensor&, const Attend& call) const override {
    const Tensor band = band_of(scores, first_position(scores, call), band_width());
    if (renormalise_) return softmax(select(band, scores, -HUGE_VAL));
    return select(band, softmax(scores), 0);
  }

  bool renormalise_;
};

}  // namespace

Variant variant::band_project() {
  return describe<BandProject, Options>(
      {.name = "band_project",
       .paper = "Conti 2024",
       .idea = "The map of softmax, projected onto its band.",
       .time = {.length = 2,
                .width = 0.87},  // vectors that the one column of sums fills up do not know the width
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .cross = true,
       .steps = true,
       .map = MapKind::signed_,
       .from = 1024});
}

}  // namespace heed

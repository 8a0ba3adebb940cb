// Linear attention mechanism: linear attention with weights 1 + cos(q, k). Li et al. 2020, "Linear attention
// mechanism: an efficient attention for semantic segmentation", arXiv 2007.14902.
//
//   y_i = sum_j (1 + q^_i . k^_j) v_j / sum_j (1 + q^_i . k^_j),      x^ = x / |x|
//
// The first-order Taylor polynomial of exp of the cosine, so weights are between 0 and 2: fastmax of degree 1
// with l2 normalisation. epsilon is for a query opposite to its only key, where both sums are rounding
// errors. With epsilon = 0 the formula is exact.
#include "heed/attention/base/kernelized_attention.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct LiOptions {
  double epsilon = 1e-6;
  void fields(Fields& f) { f("epsilon", epsilon, "added to the sum of weights"); }
};

class LiAttention final : public KernelizedAttention {
 public:
  LiAttention(const AttentionConfig& config, const LiOptions& o, Rng& rng)
      : KernelizedAttention(config, params_of(o), rng) {}

 private:
  static kernel::PolynomialParams params_of(const LiOptions& o) {
    if (!(o.epsilon >= 0)) fail("attention 'li': epsilon = ", o.epsilon, ". It must be at least 0.");
    return {.coefficients = {1, 1},
            .prepare = kernel::FeatureMap::unit,
            .prepare_epsilon = 1e-12,
            .epsilon = o.epsilon};
  }
};

}  // namespace

Variant variant::li() {
  return describe<LiAttention, LiOptions>(
      like(feature_map_traits, {.name = "li",
                                .paper = "Li et al. 2020",
                                .summary = "One plus the cosine of query and key: the beginning of exp."}));
}

}  // namespace heed

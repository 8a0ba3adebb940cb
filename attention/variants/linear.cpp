// Linear attention: features elu(x) + 1 instead of a softmax. Katharopoulos et al. 2020, "Transformers are
// RNNs", arXiv 2006.16236.
//
//   y_i = phi(q_i)^T sum_j phi(k_j) v_j^T  /  phi(q_i)^T sum_j phi(k_j),      phi(x) = elu(x) + 1
//
// No T x T map is computed; a causal decoder caches S = sum phi(k) v^T and z = sum phi(k). The kernel
// computes the features as it reads queries and keys.
#include "heed/attention/base/kernelized_attention.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct LinearAttentionOptions {
  double epsilon = 1e-6;
  void fields(Fields& f) { f("epsilon", epsilon, "added to the normaliser"); }
};

class LinearAttention final : public KernelizedAttention {
 public:
  LinearAttention(const AttentionConfig& config, const LinearAttentionOptions& o, Rng& rng)
      : KernelizedAttention(config, params_of(o), rng) {}

 private:
  bool attends_packed(const AttentionInput&) const override { return true; }
  static kernel::PolynomialParams params_of(const LinearAttentionOptions& o) {
    if (!(o.epsilon > 0)) {
      fail("attention 'linear': epsilon = ", o.epsilon,
           ". It must be above 0, or a query without keys divides by zero.");
    }
    return {.coefficients = {0, 1}, .prepare = kernel::FeatureMap::positive, .epsilon = o.epsilon};
  }
};

}  // namespace

Variant variant::linear() {
  return describe<LinearAttention, LinearAttentionOptions>(
      like(feature_map_traits,
           {.name = "linear",
            .paper = "Katharopoulos et al. 2020",
            .summary =
                "Features elu(x) + 1 instead of a softmax: the sums over keys are shared by all queries."}));
}

}  // namespace heed

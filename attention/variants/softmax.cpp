// Scaled dot-product attention. Vaswani et al. 2017, "Attention is all you need", arXiv 1706.03762,
// section 3.2.1.
//
//   y_i = sum_j a_ij v_j,      a_i = softmax_j(q_i . k_j / sqrt(d))
//
// Computed in tiles without storing the map; for a MapRecorder the map is computed separately.
#include "heed/attention/base/scaled_dot_product_attention.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct SoftmaxOptions {
  double scale = 0;
  void fields(Fields& f) { f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)"); }
};

class SoftmaxAttention final : public ScaledDotProductAttention {
 public:
  SoftmaxAttention(const AttentionConfig& config, const SoftmaxOptions& o, Rng& rng)
      : ScaledDotProductAttention(config, rng, attention_scale(o.scale, config.width_of_head())) {}
};

}  // namespace

Variant variant::softmax() {
  return describe<SoftmaxAttention, SoftmaxOptions>(like(
      dot_product_traits, {.name = "softmax",
                           .alias = "tiled",
                           .paper = "Vaswani et al. 2017",
                           .summary = "Softmax of scaled dot products, in tiles that never hold a map."}));
}

}  // namespace heed

// Dot-product attention without scaling. Luong et al. 2015, "Effective approaches to attention-based neural
// machine translation", arXiv 1508.04025, section 3.1.
//
//   a_i = softmax_j( q_i . k_j )
#include "heed/attention/base/scaled_dot_product_attention.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct DotOptions {
  double scale = 1;
  void fields(Fields& f) { f("scale", scale, "multiplies the scores"); }
};

class DotAttention final : public ScaledDotProductAttention {
 public:
  DotAttention(const AttentionConfig& config, const DotOptions& o, Rng& rng)
      : ScaledDotProductAttention(config, rng, o.scale) {}
};

}  // namespace

Variant variant::dot() {
  return describe<DotAttention, DotOptions>(
      like(dot_product_traits, {.name = "dot",
                                .paper = "Luong et al. 2015",
                                .summary = "Softmax of dot products as they are, in tiles."}));
}

}  // namespace heed

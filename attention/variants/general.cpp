// Bilinear attention: dot products with a trained matrix between. Luong et al. 2015, "Effective approaches to
// attention-based neural machine translation", arXiv 1508.04025, section 3.1: "general".
//
//   a_i = softmax_j( q_i . W k_j )
//
// Parameters: general [H, d, d] W, applied as q W k^T
#include <cmath>

#include "heed/attention/base/scaled_dot_product_attention.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct GeneralOptions {
  double scale = 1;
  void fields(Fields& f) { f("scale", scale, "multiplies the scores"); }
};

class GeneralAttention final : public ScaledDotProductAttention {
 public:
  GeneralAttention(const AttentionConfig& config, const GeneralOptions& o, Rng& rng)
      : ScaledDotProductAttention(config, rng, o.scale) {
    const int64_t d = head_dim();
    matrix_ = uniform_parameter(Shape{config.heads, d, d}, std::sqrt(3.0 / static_cast<double>(d)), rng);
  }
  void fields(Fields& f) override {
    ScaledDotProductAttention::fields(f);
    f("general", matrix_);
  }

 private:
  void transform_heads(Heads& heads) const override { heads.q = matmul(heads.q, matrix_); }

  Tensor matrix_;  // [H, d, d]
};

}  // namespace

Variant variant::general() {
  return describe<GeneralAttention, GeneralOptions>(
      like(dot_product_traits, {.name = "general",
                                .paper = "Luong et al. 2015",
                                .summary = "Softmax of dot products with a learned matrix between."}));
}

}  // namespace heed

// Location-based attention: the query alone determines the weights of positions. Luong et al. 2015,
// "Effective approaches to attention-based neural machine translation", arXiv 1508.04025, equation 8.
//
//   a_i = softmax_j( w_j . q_i ),      j below the source's length
//
// Each position has its own row of weights, and scores do not depend on keys. A source longer than the table
// is an error.
//
// Parameters: places [H, length, d] w
#include <cmath>

#include "heed/attention/base/scaled_dot_product_attention.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct LocationOptions {
  int64_t length = 0;
  double scale = 1;
  void fields(Fields& f) {
    f("length", length, {0, max_positions}, "the longest source; 0: the model's max_length");
    f("scale", scale, "multiplies the scores");
  }
};

class LocationAttention final : public ScaledDotProductAttention {
 public:
  LocationAttention(const AttentionConfig& config, const LocationOptions& o, Rng& rng)
      : ScaledDotProductAttention(config, rng, o.scale, Project::qv) {
    const int64_t length = o.length > 0 ? o.length : config.max_length;
    if (length < 1) {
      fail("attention 'location': length = ", o.length,
           ", and the model has no max_length. It has weights for each position: set length.");
    }
    places_ = uniform_parameter(Shape{config.heads, length, head_dim()},
                                std::sqrt(3.0 / static_cast<double>(head_dim())), rng);
  }
  void fields(Fields& f) override {
    ScaledDotProductAttention::fields(f);
    f("places", places_);
  }

 private:
  void transform_heads(Heads& heads) const override {
    const int64_t keys = heads.v.extent(2), length = places_.extent(1);
    if (keys > length) {
      fail("attention 'location': ", keys, " keys, but it has weights for ", length,
           " positions. Set length (or model.max_length) to the longest source.");
    }
    const Tensor rows = reshape(slice(places_, 1, 0, keys), Shape{1, places_.extent(0), keys, -1});
    heads.k = expand(rows, Shape{heads.q.extent(0), heads.q.extent(1), keys, heads.q.extent(3)});
  }

  bool shares_keys() const override { return false; }  // every head has keys of its own
  bool attends_packed(const AttentionInput&) const override { return false; }  // keys are positions

  Tensor places_;  // [H, length, d]
};

}  // namespace

Variant variant::location() {
  return describe<LocationAttention, LocationOptions>(
      like(dot_product_traits, {.name = "location",
                                .paper = "Luong et al. 2015",
                                .summary = "The query alone determines the weights of positions."}));
}

}  // namespace heed

// Additive attention. Bahdanau et al. 2015, "Neural machine translation by jointly learning to align and
// translate", arXiv 1409.0473; "concat" of Luong et al. 2015, arXiv 1508.04025.
//
//   a_i = softmax_j( u . tanh(A q_i + C k_j + b) )
//
// One hidden layer of `hidden` units a head scores each pair; the sums A q and C k are made once a token.
#include <cmath>

#include "attention/scored.h"
#include "attention/variant.h"

namespace heed {
namespace {

struct Options {
  int64_t hidden = 0;
  bool bias = true;
  void fields(Fields& f) {
    f("hidden", hidden, "units that score a pair; 0: the width of a head");
    f("bias", bias, "b in the hidden layer");
  }
};

class AdditiveAttention final : public ScoredAttention {
 public:
  AdditiveAttention(const AttentionConfig& config, const Options& o, Rng& rng)
      : ScoredAttention(config, rng) {
    const int64_t d = head_width();
    const int64_t a = o.hidden > 0 ? o.hidden : d;
    if (o.hidden < 0) fail("attention 'additive': hidden = ", o.hidden, ". It must be at least 0.");
    const double bound = std::sqrt(6.0 / static_cast<double>(a + d));
    from_query_ = uniform_parameter(Shape{config.heads, d, a}, bound, rng);
    from_key_ = uniform_parameter(Shape{config.heads, d, a}, bound, rng);
    if (o.bias) bias_ = constant_parameter(Shape{config.heads, 1, a}, 0);
    weigh_units_ =
        uniform_parameter(Shape{config.heads, 1, a, 1}, std::sqrt(6.0 / static_cast<double>(a + 1)), rng);
  }

  void fields(Fields& f) override {
    ScoredAttention::fields(f);
    f("from_query", from_query_);
    f("from_key", from_key_);
    f("bias", bias_);
    f("units", weigh_units_);
  }

 private:
  Tensor score(const Tensor& q, const Tensor& k, const Attend&) const override {
    Tensor left = matmul(q, from_query_);  // [B, H, Tq, A]
    if (bias_) left = left + bias_;
    const Tensor right = matmul(k, from_key_);  // [B, H, Tk, A]
    const int64_t b = q.extent(0), h = q.extent(1), tq = q.extent(2), tk = k.extent(2), a = right.extent(3);
    const Tensor pairs = tanh(reshape(left, Shape{b, h, tq, 1, a}) + reshape(right, Shape{b, h, 1, tk, a}));
    return reshape(matmul(pairs, weigh_units_), Shape{b, h, tq, tk});
  }

  Tensor from_query_, from_key_;  // [H, d, A]
  Tensor bias_;                   // [H, 1, A]
  Tensor weigh_units_;            // [H, 1, A, 1]
};

}  // namespace

Variant variant::additive() {
  return describe<AdditiveAttention, Options>({.name = "additive",
                                               .paper = "Bahdanau et al. 2015",
                                               .idea = "A small network scores each pair of query and key.",
                                               .time = {.length = 2, .width = 1},
                                               .memory = {.length = 2, .width = 1},
                                               .causal = true,
                                               .cross = true,
                                               .steps = true,
                                               .map = MapKind::exact});
}

}  // namespace heed

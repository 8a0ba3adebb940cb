// Scaled dot-product attention. Vaswani et al. 2017, "Attention is all you need", arXiv 1706.03762,
// section 3.2.1.
//
//   y_i = sum_j a_ij v_j,      a_i = softmax_j(q_i . k_j / sqrt(d))
//
// Computed in tiles that never hold a map; a probe makes the map from the same numbers.
#include <cmath>

#include "attention/scored.h"
#include "attention/variant.h"

namespace heed {
namespace {

struct Options {
  double scale = 0;
  void fields(Fields& f) { f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)"); }
};

class SoftmaxAttention final : public ScoredAttention {
 public:
  SoftmaxAttention(const AttentionConfig& config, const Options& o, Rng& rng)
      : ScoredAttention(config, rng),
        scale_(o.scale != 0 ? o.scale : 1 / std::sqrt(static_cast<double>(config.width / config.heads))) {}

 private:
  Tensor score(const Tensor& q, const Tensor& k, const Attend&) const override {
    return matmul(q, transpose(k, 2, 3)) * scale_;
  }

  bool shares_keys() const override { return true; }

  /// Some gradients need the map: of a bias that is trained, of vectors, of a trained bias below a cap.
  bool needs_map(const Attend& call) const {
    const bool bias = call.mask.bias() && call.mask.bias().node();
    return modifiers().has_vectors() ||
           (recording() && (bias || (modifiers().softcap() > 0 && modifiers().relative_is_trained())));
  }

  Tensor attend(Heads heads, const Attend& call) override {
    const int64_t first_query = recall(heads, call);
    if (needs_map(call)) return attend_by_map(heads, call, first_query);
    if (call.pass.probe != nullptr) {
      const NoTape looking;
      call.pass.probe->see(*this, weights(heads, call, first_query));
    }
    const bool drop = call.pass.noise != nullptr && config().dropout > 0;
    return attention(heads.q, heads.k, heads.v,
                     {.scale = scale_,
                      .causal = call.mask.is_causal(),
                      .first_query = first_query,
                      .key_lengths = call.mask.key_lengths(),
                      .bias = call.mask.bias(),
                      .relative = modifiers().relative(heads.q, heads.k.extent(2), first_query),
                      .sink = modifiers().sink(heads.q),
                      .softcap = modifiers().softcap(),
                      .dropout = drop ? config().dropout : 0,
                      .draw = drop ? call.pass.noise->next() : Draw{}});
  }

  double scale_;
};

}  // namespace

Variant variant::softmax() {
  return describe<SoftmaxAttention, Options>(
      {.name = "softmax",
       .paper = "Vaswani et al. 2017",
       .idea = "Softmax of scaled dot products, in tiles that never hold a map.",
       .time = {.length = 2, .width = 1},
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .cross = true,
       .steps = true,
       .map = MapKind::exact});
}

}  // namespace heed

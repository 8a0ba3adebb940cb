// Additive attention: a hidden layer scores each query-key pair. Bahdanau et al. 2015, "Neural machine
// translation by jointly learning to align and translate", arXiv 1409.0473; "concat" of Luong et al. 2015,
// arXiv 1508.04025.
//
//   a_i = softmax_j( u . tanh(A q_i + C k_j + b) )
//
// The hidden layer has `hidden` units per head. A q and C k are computed once per token; the hidden layer of
// a pair is recomputed in the backward pass instead of being stored. Luong's score "concat" is this one,
// written u . tanh(W [q; k]) with W = [A C].
//
// Parameters: from_query [H, d, hidden] A^T, from_key [H, d, hidden] C^T, bias [H, 1, hidden] b, units
// [H, hidden] u
#include "heed/attention/base/score_function.h"
#include "heed/attention/base/scored_attention.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct AdditiveOptions {
  int64_t hidden = 0;
  bool bias = true, project_keys = true;
  double scale = 1;
  void fields(Fields& f) {
    f("hidden", hidden, {0, max_width}, "units that score a pair; 0: the width of a head");
    f("bias", bias, "b in the hidden layer");
    f("project_keys", project_keys, "C; without it keys enter the hidden layer as they are");
    f("scale", scale, "multiplies the scores");
  }
};

class AdditiveAttention final : public ScoredAttention {
 public:
  AdditiveAttention(const AttentionConfig& config, const AdditiveOptions& o, Rng& rng)
      : ScoredAttention(config, rng),
        score_(make_score(ScoreKind::additive,
                          {.heads = config.heads,
                           .width = head_dim(),
                           .hidden = o.hidden,
                           .bias = o.bias,
                           .project_keys = o.project_keys},
                          rng)),
        scale_(o.scale) {}

  void fields(Fields& f) override {
    ScoredAttention::fields(f);
    score_->fields(f);
  }

 private:
  Tensor score(const Tensor& q, const Tensor& k, const AttentionInput&) const override {
    const Tensor scores = (*score_)(q, k);
    return scale_ == 1 ? scores : scores * scale_;
  }

  std::unique_ptr<ScoreFunction> score_;
  double scale_;
};

}  // namespace

Variant variant::additive() {
  return describe<AdditiveAttention, AdditiveOptions>(
      like(full_map_traits, {.name = "additive",
                             .alias = "concat",
                             .paper = "Bahdanau et al. 2015",
                             .summary = "A small network scores each pair of query and key."}));
}

}  // namespace heed

// Based: linear attention with the second-order Taylor polynomial of exp on narrow queries and keys, in
// alternation with window attention. Arora et al. 2024, "Simple linear attention language models balance the
// recall-throughput tradeoff", arXiv 2402.18668.
//
//   a_ij = 1 + s + s^2 / 2,      s = q_i . k_j / sqrt(f),      q and k of f = 16 features
//
// This is fastmax of degree 2 on narrow, unnormalised queries and keys: global context in a state of constant
// size. In self-attention, every second layer (1, 3, ... counted from 0) is softmax over a window instead,
// for exact local recall.
//
// Parameters: to_query, to_key [H, d, f] project the heads to f features; none when heads are at most f wide.
#include <cmath>

#include "heed/attention/base/kernelized_attention.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct BasedOptions {
  int64_t features = 16, window = 64;
  double epsilon = 1e-12;
  void fields(Fields& f) {
    f("features", features, {0, max_width}, "width that queries and keys are projected to; 0: no projection");
    f("window", window, {0, max_distance},
      "keys of a query in every second layer, which is softmax over a window; 0: no such layers");
    f("epsilon", epsilon, "added to the sum of weights");
  }
};

class BasedAttention final : public KernelizedAttention {
 public:
  BasedAttention(const AttentionConfig& config, const BasedOptions& o, Rng& rng)
      : KernelizedAttention(config, params_of(config, o), rng) {
    const int64_t d = head_dim();
    if (o.features == 0 || o.features >= d) return;
    const double deviation = 1 / std::sqrt(static_cast<double>(d));
    to_query_ = normal_parameter(Shape{config.heads, d, o.features}, deviation, rng);
    to_key_ = normal_parameter(Shape{config.heads, d, o.features}, deviation, rng);
  }
  static std::unique_ptr<Attention> make(const AttentionConfig& config, const BasedOptions& o, Rng& rng) {
    params_of(config, o);  // fails on illegal options, also in layers of a window
    if (o.window == 0 || config.cross || config.layer % 2 == 0)
      return std::make_unique<BasedAttention>(config, o, rng);
    const int64_t left = config.causal ? o.window - 1 : o.window / 2, right = config.causal ? 0 : left;
    return make_attention(text("window:left=", left, ",right=", right), config, rng);
  }
  void fields(Fields& f) override {
    KernelizedAttention::fields(f);
    f("to_query", to_query_);
    f("to_key", to_key_);
  }

 private:
  static kernel::PolynomialParams params_of(const AttentionConfig& config, const BasedOptions& o) {
    if (!(o.epsilon >= 0)) fail("attention 'based': epsilon = ", o.epsilon, ". It must be at least 0.");
    const int64_t d = config.width_of_head();
    const int64_t width = o.features > 0 ? std::min(o.features, d) : d;
    return {.coefficients = {1, 1, 0.5},
            .scale = 1 / std::sqrt(static_cast<double>(width)),
            .epsilon = o.epsilon};
  }
  bool attends_packed(const AttentionInput&) const override { return true; }
  Heads features(Heads heads, const AttentionInput&) const override {
    if (!to_query_) return heads;
    heads.q = matmul(heads.q, to_query_);
    if (heads.k) heads.k = matmul(heads.k, to_key_);
    return heads;
  }

  Tensor to_query_, to_key_;
};

}  // namespace

Variant variant::based() {
  return describe<BasedAttention, BasedOptions>(like(
      feature_map_traits,
      {.name = "based",
       .paper = "Arora et al. 2024",
       .summary =
           "The second-order Taylor polynomial of exp on narrow queries and keys, alternating with a window.",
       .time = {.length = 1, .width = 1},
       .memory = {.length = 1, .width = 0.77},
       .min_cost_length = 1024}));
}

}  // namespace heed

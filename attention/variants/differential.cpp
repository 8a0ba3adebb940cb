// Differential attention: the difference of two softmax maps, which cancels common noise. Ye et al. 2024,
// "Differential transformer", arXiv 2410.05258, section 2.1.
//
//   y = (softmax(q1 k1 / sqrt(d / 2)) - lambda softmax(q2 k2 / sqrt(d / 2))) v,
//   lambda = exp(lq1 . lk1) - exp(lq2 . lk2) + lambda_init,      lambda_init = 0.8 - 0.6 exp(-0.3 layer)
//
// q1 and q2 are the halves of a head (for an odd width both include the middle element); layers count from 0.
// Each head is then divided by its root mean square and multiplied by 1 - lambda_init. Parameters: lq1, lk1,
// lq2, lk2 [d / 2, rounded up], shared by all heads.
#include <cmath>

#include "heed/attention/base/grouped_query.h"
#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct DifferentialOptions {
  double lambda = 0, scale = 0, epsilon = 1e-5;
  bool norm = true;
  void fields(Fields& f) {
    f("lambda", lambda, "lambda_init; 0: 0.8 - 0.6 exp(-0.3 layer)");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d / 2)");
    f("norm", norm, "divide each head by its root mean square, and multiply by 1 - lambda_init");
    f("epsilon", epsilon, "added to the mean square");
  }
};

class DifferentialAttention final : public MultiHeadAttention {
 public:
  DifferentialAttention(const AttentionConfig& config, const DifferentialOptions& o, Rng& rng)
      : MultiHeadAttention(config, rng), options_(o) {
    const int64_t d = head_dim();
    if (!(o.epsilon > 0)) fail("attention 'differential': epsilon = ", o.epsilon, ". It must be above 0.");
    if (!(o.lambda >= 0 && o.lambda < 1))
      fail("attention 'differential': lambda = ", o.lambda, ". It must be at least 0 and below 1.");
    lambda_init_ = o.lambda > 0 ? o.lambda : 0.8 - 0.6 * std::exp(-0.3 * static_cast<double>(config.layer));
    for (Tensor* each : {&lq1_, &lk1_, &lq2_, &lk2_}) *each = normal_parameter(Shape{(d + 1) / 2}, 0.1, rng);
  }
  std::unique_ptr<AttentionCache> new_cache() const override { return std::make_unique<KeyValueCache>(); }
  void fields(Fields& f) override {
    MultiHeadAttention::fields(f);
    f("lq1", lq1_);
    f("lk1", lk1_);
    f("lq2", lq2_);
    f("lk2", lk2_);
  }

 private:
  bool shares_keys() const override { return true; }
  bool attends_packed(const AttentionInput&) const override { return true; }

  Tensor attend(Heads heads, const AttentionInput& input) override {
    const int64_t first_query = read_cache(heads, input), half = (heads.q.extent(3) + 1) / 2;
    const Tensor lambda = exp(sum(lq1_ * lk1_)) - exp(sum(lq2_ * lk2_)) + lambda_init_;
    const double scale = attention_scale(options_.scale, half);
    const auto attend_to_half = [&](int64_t n) {
      const kernel::AttentionParams call = masked_params(input, scale, first_query);
      return attention(half_of_heads(heads.q, n), half_of_heads(heads.k, n), heads.v, call);
    };
    const Tensor first_half = attend_to_half(0);  // each draws its own dropout, in this order
    const Tensor y = first_half - attend_to_half(1) * lambda;
    record_map(input, [&] {
      const int64_t num_heads = heads.q.extent(1);
      const Tensor keys = repeat_heads(heads.k, num_heads);
      const auto map_of_half = [&](int64_t n) {
        return softmax_map(half_of_heads(heads.q, n), half_of_heads(keys, n), scale, input.mask, first_query);
      };
      const Tensor map = map_of_half(0) - map_of_half(1) * lambda;
      return options_.norm ? map * norm_factor(matmul(map, repeat_heads(heads.v, num_heads))) : map;
    });
    return options_.norm ? y * norm_factor(y) : y;
  }

  /// The first (n = 0) or second (n = 1) half of the vectors of a head.
  static Tensor half_of_heads(const Tensor& x, int64_t n) {
    const int64_t d = x.extent(3), half = (d + 1) / 2;
    return slice(x, 3, n * (d - half), n * (d - half) + half);
  }

  /// (1 - lambda_init) / root mean square of each row of y.
  Tensor norm_factor(const Tensor& y) const {
    return (1 - lambda_init_) * reciprocal(sqrt(mean(square(y), 3) + options_.epsilon));
  }

  DifferentialOptions options_;
  double lambda_init_ = 0;
  Tensor lq1_, lk1_, lq2_, lk2_;  // [(d + 1) / 2]
};

}  // namespace

Variant variant::differential() {
  return describe<DifferentialAttention, DifferentialOptions>(like(
      dot_product_traits, {.name = "differential",
                           .paper = "Ye et al. 2024",
                           .summary = "The difference of two softmax maps, in which common noise cancels.",
                           .map = MapKind::signed_}));
}

}  // namespace heed

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
    start_ = o.lambda > 0 ? o.lambda : 0.8 - 0.6 * std::exp(-0.3 * static_cast<double>(config.layer));
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

  Tensor attend(Heads heads, const AttentionInput& input) override {
    const int64_t first_query = read_cache(heads, input), half = (heads.q.extent(3) + 1) / 2;
    const Tensor lambda = exp(sum(lq1_ * lk1_)) - exp(sum(lq2_ * lk2_)) + start_;
    kernel::AttentionParams params{
        .scale = options_.scale != 0 ? options_.scale : 1 / std::sqrt(static_cast<double>(half)),
        .causal = input.mask.is_causal(),
        .first_query = first_query,
        .key_lengths = input.mask.key_lengths(),
        .bias = input.mask.bias()};
    const auto one = [&](int64_t n) {
      if (input.context.training() && config().dropout > 0) {
        params.dropout = config().dropout;
        params.draw = input.context.rng->next();
      }
      return attention(part(heads.q, n), part(heads.k, n), heads.v, params);
    };
    const Tensor first = one(0);
    const Tensor y = first - one(1) * lambda;
    if (input.context.recorder != nullptr) show(heads, input, params, lambda);
    return options_.norm ? y * shrink(y) : y;
  }

  /// Half n (0 or 1) of the vectors of a head.
  static Tensor part(const Tensor& x, int64_t n) {
    const int64_t d = x.extent(3), half = (d + 1) / 2;
    return slice(x, 3, n * (d - half), n * (d - half) + half);
  }

  /// The factor of each row: (1 - lambda_init) / its root mean square.
  Tensor shrink(const Tensor& y) const {
    return (1 - start_) * reciprocal(sqrt(mean(square(y), 3) + options_.epsilon));
  }

  void show(const Heads& heads, const AttentionInput& input, const kernel::AttentionParams& params,
            const Tensor& lambda) const {
    const NoGrad no_grad;
    const int64_t all = heads.q.extent(1);
    const Tensor keys = repeated(heads.k, all);
    const auto map = [&](int64_t n) {
      const Tensor scores = matmul(part(heads.q, n), transpose(part(keys, n), 2, 3)) * params.scale;
      const Tensor mask = input.mask.dense(scores, params.first_query);
      return softmax(mask ? scores + mask : scores);
    };
    const Tensor both = map(0) - map(1) * lambda;
    input.context.recorder->record(
        *this, options_.norm ? both * shrink(matmul(both, repeated(heads.v, all))) : both);
  }

  DifferentialOptions options_;
  double start_ = 0;
  Tensor lq1_, lk1_, lq2_, lk2_;  // [(d + 1) / 2]
};

}  // namespace

Variant variant::differential() {
  return describe<DifferentialAttention, DifferentialOptions>(
      {.name = "differential",
       .paper = "Ye et al. 2024",
       .idea = "The difference of two softmax maps: what both pay for nothing cancels.",
       .time = {.length = 2, .width = 1},
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .cross = true,
       .steps = true,
       .map = MapKind::signed_});
}

}  // namespace heed

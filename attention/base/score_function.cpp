// Dot, general and additive scores. Luong et al. 2015, arXiv 1508.04025, equation 8; Bahdanau et al. 2015.
#include "heed/attention/base/score_function.h"

#include <cmath>

#include "heed/autograd/ops.h"
#include "heed/nn/init.h"

namespace heed {
namespace {

/// scale q . k
class DotScore final : public ScoreFunction {
 public:
  explicit DotScore(double scale) : scale_(scale) {}
  Tensor operator()(const Tensor& q, const Tensor& k) const override {
    const Tensor products = matmul(q, transpose(k, 2, 3));
    return scale_ == 1 ? products : products * scale_;
  }
  void fields(Fields&) override {}

 private:
  double scale_;
};

/// q W . k
class GeneralScore final : public ScoreFunction {
 public:
  GeneralScore(const ScoreOptions& options, Rng& rng)
      : matrix_(uniform_parameter(Shape{options.heads, options.width, options.width},
                                  std::sqrt(3.0 / static_cast<double>(options.width)), rng)) {}
  Tensor operator()(const Tensor& q, const Tensor& k) const override {
    return matmul(matmul(q, matrix_), transpose(k, 2, 3));
  }
  void fields(Fields& f) override { f("general", matrix_); }

 private:
  Tensor matrix_;  // [H, d, d]
};

/// u . tanh(A q + C k + b)
class AdditiveScore final : public ScoreFunction {
 public:
  AdditiveScore(const ScoreOptions& options, Rng& rng) {
    if (options.hidden < 0) fail("attention: hidden = ", options.hidden, ". It must be at least 0.");
    const int64_t d = options.width, hidden = options.hidden > 0 ? options.hidden : d;
    if (!options.project_keys && hidden != d) {
      fail("attention: hidden = ", hidden, " without a projection of the keys, which have ", d,
           " numbers. Leave hidden out, or set project_keys=true.");
    }
    const double bound = std::sqrt(6.0 / static_cast<double>(hidden + d));
    from_query_ = uniform_parameter(Shape{options.heads, d, hidden}, bound, rng);
    if (options.project_keys) from_key_ = uniform_parameter(Shape{options.heads, d, hidden}, bound, rng);
    if (options.bias) bias_ = constant_parameter(Shape{options.heads, 1, hidden}, 0);
    units_ = uniform_parameter(Shape{options.heads, hidden}, std::sqrt(6.0 / static_cast<double>(hidden + 1)),
                               rng);
  }
  Tensor operator()(const Tensor& q, const Tensor& k) const override {
    Tensor query_layer = matmul(q, from_query_);  // A q + b: [B, H, Tq, hidden]
    if (bias_) query_layer = query_layer + bias_;
    return additive_scores(query_layer, from_key_ ? matmul(k, from_key_) : k, units_);
  }
  void fields(Fields& f) override {
    f("from_query", from_query_);
    if (from_key_) f("from_key", from_key_);
    if (bias_) f("bias", bias_);
    f("units", units_);
  }

 private:
  Tensor from_query_, from_key_;  // A^T and C^T: [H, d, hidden]
  Tensor bias_;                   // b: [H, 1, hidden]
  Tensor units_;                  // u: [H, hidden]
};

}  // namespace

std::unique_ptr<ScoreFunction> make_score(ScoreKind kind, const ScoreOptions& options, Rng& rng) {
  switch (kind) {
    case ScoreKind::softmax:
      return std::make_unique<DotScore>(1 / std::sqrt(static_cast<double>(options.width)));
    case ScoreKind::dot:
      return std::make_unique<DotScore>(1);
    case ScoreKind::general:
      return std::make_unique<GeneralScore>(options, rng);
    case ScoreKind::additive:
      return std::make_unique<AdditiveScore>(options, rng);
  }
  return nullptr;
}

}  // namespace heed

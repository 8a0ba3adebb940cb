// Local attention, predictive: each query predicts a position and attends around it. Luong et al. 2015,
// "Effective approaches to attention-based neural machine translation", arXiv 1508.04025, section 3.2:
// local-p.
//
//   p_i = n sigmoid(u . tanh(W q_i)),        n: the number of keys that query i may attend to
//   a_i = softmax over |j - p_i| <= window of q_i . k_j,  times exp(-(j - p_i)^2 / (2 sigma^2))
//
// Weights are not renormalised, so rows sum to at most 1. W and u get a gradient through the Gaussian only,
// because the window is a step function. Dropout is not applied: there is no map. The authors' code differs:
// convention=code puts p in 0..n-1 and centres the window on floor(p); it can also put the Gaussian on the
// scores. span, window_center and gauss choose each separately.
//
// Parameters: place_hidden [H, d, hidden] W^T, place_units [H, hidden, 1] u; with score=general: general
// [H, d, d], applied as q W
#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/variant.h"
#include "heed/core/constant_table.h"

namespace heed {
namespace {

enum class Convention { paper, code };
enum class Span { convention, length, last };  // named "S" and "S-1"
enum class Centre { convention, real, floor };
enum class PredictiveScore { dot, general };

struct LocalPOptions {
  int64_t window = 10, hidden = 0;
  double sigma = 0, scale = 1;
  PredictiveScore score = PredictiveScore::dot;
  Convention convention = Convention::paper;
  Span span = Span::convention;
  Centre window_center = Centre::convention;
  kernel::Gauss gauss = kernel::Gauss::post;
  void fields(Fields& f) {
    f("window", window, {0, max_distance}, "D: largest distance of a key from p");
    f("sigma", sigma, "standard deviation of the Gaussian; 0: window / 2");
    f("score", Choice(score, {"dot", "general"}), "q . k, or q . W k");
    f("scale", scale, "multiplies the scores");
    f("hidden", hidden, {0, max_width}, "units that predict p; 0: the width of a head");
    f("convention", Choice(convention, {"paper", "code"}),
      "source of the formulas of span and window_center");
    f("span", Choice(span, {"convention", "S", "S-1"}), "factor of the sigmoid; paper: S, code: S-1");
    f("window_center", Choice(window_center, {"convention", "real", "floor"}),
      "the window lies around p or floor(p); paper: real, code: floor");
    f("gauss", Choice(gauss, {"none", "post", "pre_score"}),
      "the Gaussian multiplies nothing, the weights, or the scores before the softmax");
  }
};

class LocalPredictiveAttention final : public MultiHeadAttention {
 public:
  LocalPredictiveAttention(const AttentionConfig& config, const LocalPOptions& o, Rng& rng)
      : MultiHeadAttention(config, rng), options_(o) {
    if (!(o.sigma >= 0))
      fail("attention 'local_p': sigma = ", o.sigma, ". It must be above 0, or 0 for window / 2.");
    const int64_t h = config.heads, d = head_dim(), hidden = o.hidden > 0 ? o.hidden : d;
    const auto bound = [](int64_t in, int64_t out) { return std::sqrt(6.0 / static_cast<double>(in + out)); };
    place_hidden_ = uniform_parameter(Shape{h, d, hidden}, bound(d, hidden), rng);
    place_units_ = uniform_parameter(Shape{h, hidden, 1}, bound(hidden, 1), rng);
    if (o.score == PredictiveScore::general) matrix_ = uniform_parameter(Shape{h, d, d}, bound(d, d), rng);
  }
  std::unique_ptr<AttentionCache> new_cache() const override { return std::make_unique<KeyValueCache>(); }
  void fields(Fields& f) override {
    MultiHeadAttention::fields(f);
    f("place_hidden", place_hidden_);
    f("place_units", place_units_);
    if (matrix_) f("general", matrix_);
  }

 private:
  Tensor attend(Heads heads, const AttentionInput& input) override {
    refuse_bias(input, "a window around a predicted position");
    const int64_t first_query = read_cache(heads, input);
    const Tensor centre = centres(heads, input, first_query);
    const Tensor q = matrix_ ? matmul(heads.q, matrix_) : heads.q;
    const bool is_code = options_.convention == Convention::code;
    const bool is_floored =
        options_.window_center == Centre::convention ? is_code : options_.window_center == Centre::floor;
    const kernel::LocalParams params{
        .scale = options_.scale,
        .half_width = options_.window,
        .sigma =
            options_.sigma > 0 ? options_.sigma : std::max(static_cast<double>(options_.window) / 2, 0.5),
        .window = is_floored ? kernel::WindowCentre::floor : kernel::WindowCentre::real,
        .gauss = options_.gauss,
        .causal = input.mask.is_causal(),
        .first_query = first_query,
        .key_lengths = input.mask.key_lengths()};
    record_map(input, [&] { return local_attention(q, heads.k, identity_values(heads.k), centre, params); });
    return local_attention(q, heads.k, heads.v, centre, params);
  }

  /// p of each query, [B, H, Tq].
  Tensor centres(const Heads& heads, const AttentionInput& input, int64_t first_query) const {
    const Tensor& q = heads.q;
    const Tensor fraction = sigmoid(matmul(tanh(matmul(q, place_hidden_)), place_units_));  // [B, H, Tq, 1]
    const bool is_code = options_.convention == Convention::code;
    const bool ends_at_last = options_.span == Span::convention ? is_code : options_.span == Span::last;
    Tensor span = num_allowed_keys(heads, input, first_query);
    if (ends_at_last) span = span - 1;
    return reshape(fraction * span, Shape{q.extent(0), q.extent(1), q.extent(2)});
  }

  /// The number of keys that each query may attend to, [1|B, 1, 1|Tq, 1], computed without reading the
  /// device.
  static Tensor num_allowed_keys(const Heads& heads, const AttentionInput& input, int64_t first_query) {
    const Tensor& q = heads.q;
    const auto keys = static_cast<double>(heads.k.extent(2));
    Tensor count = Tensor::full(Shape{1, 1, 1, 1}, keys, q.dtype(), q.device());
    if (input.mask.is_causal()) {
      std::vector<double> counts;
      for (int64_t i = 0; i < q.extent(2); ++i)
        counts.push_back(std::min(static_cast<double>(first_query + i + 1), keys));
      count = constant_table<double>(counts, Shape{1, 1, q.extent(2), 1}, q.device(), q.dtype());
    }
    if (const Tensor lengths = input.mask.key_lengths()) {
      count = minimum(count, reshape(cast(lengths, q.dtype()), Shape{lengths.extent(0), 1, 1, 1}));
    }
    return count;
  }

  LocalPOptions options_;
  Tensor place_hidden_, place_units_;  // [H, d, hidden], [H, hidden, 1]
  Tensor matrix_;                      // [H, d, d]
};

}  // namespace

Variant variant::local_p() {
  return describe<LocalPredictiveAttention, LocalPOptions>(
      like(dot_product_traits,
           {.name = "local_p",
            .paper = "Luong et al. 2015",
            .summary = "Each query predicts a position and attends around it, with Gaussian weights.",
            .time = {.length = 1, .width = 2},
            .map = MapKind::signed_}));
}

}  // namespace heed

// Local attention, predictive. Luong et al. 2015, "Effective approaches to attention-based neural machine
// translation", arXiv 1508.04025, section 3.2: local-p.
//
//   p_i = n sigmoid(u . tanh(W q_i)),        n: the keys that query i may look at
//   a_i = softmax over |j - p_i| <= window of q_i . k_j,  times exp(-(j - p_i)^2 / (2 sigma^2))
//
// Weights are not normalised again, so rows sum to at most 1. The gradient reaches W and u through the
// Gaussian alone: which keys are in the window is a step. Dropout is not applied: no map is made. The
// authors' code differs: convention=code puts p in 0..n-1, centres the window on floor(p); it also knows a
// Gaussian on the scores. span, window_center and gauss choose each by itself.
//
// Parameters: place_hidden [H, d, hidden] W turned, place_units [H, hidden, 1] u; with score=general: general
// [H, d, d], its rows take the query
#include <cmath>

#include "attention/headed.h"
#include "attention/variant.h"
#include "core/table.h"

namespace heed {
namespace {

enum class Convention { paper, code };
enum class Span { convention, length, last };
enum class Centre { convention, real, floor };
enum class Product { dot, general };

struct Options {
  int64_t window = 10, hidden = 0;
  double sigma = 0, scale = 1;
  Product score = Product::dot;
  Convention convention = Convention::paper;
  Span span = Span::convention;
  Centre window_center = Centre::convention;
  kernel::Gauss gauss = kernel::Gauss::post;
  void fields(Fields& f) {
    f("window", window, "D: how far from p keys are looked at");
    f("sigma", sigma, "of the Gaussian; 0: window / 2");
    f("score", Choice(score, {"dot", "general"}), "q . k, or q . W k");
    f("scale", scale, "multiplies the scores");
    f("hidden", hidden, "units that predict p; 0: the width of a head");
    f("convention", Choice(convention, {"paper", "code"}), "of span and window_center");
    f("span", Choice(span, {"convention", "S", "S-1"}), "what sigmoid is multiplied by; paper: S, code: S-1");
    f("window_center", Choice(window_center, {"convention", "real", "floor"}),
      "the window lies around p or floor(p); paper: real, code: floor");
    f("gauss", Choice(gauss, {"none", "post", "pre_score"}),
      "the Gaussian multiplies nothing, the weights, or the scores before the softmax");
  }
};

class LocalPredictiveAttention final : public HeadedAttention {
 public:
  LocalPredictiveAttention(const AttentionConfig& config, const Options& o, Rng& rng)
      : HeadedAttention(config, rng), options_(o) {
    if (o.window < 0) fail("attention 'local_p': window = ", o.window, ". It must be at least 0.");
    if (o.hidden < 0) fail("attention 'local_p': hidden = ", o.hidden, ". It must be at least 0.");
    if (!(o.sigma >= 0))
      fail("attention 'local_p': sigma = ", o.sigma, ". It must be above 0, or 0 for window / 2.");
    const int64_t h = config.heads, d = head_width(), hidden = o.hidden > 0 ? o.hidden : d;
    const auto bound = [](int64_t in, int64_t out) { return std::sqrt(6.0 / static_cast<double>(in + out)); };
    place_hidden_ = uniform_parameter(Shape{h, d, hidden}, bound(d, hidden), rng);
    place_units_ = uniform_parameter(Shape{h, hidden, 1}, bound(hidden, 1), rng);
    if (o.score == Product::general) between_ = uniform_parameter(Shape{h, d, d}, bound(d, d), rng);
  }
  std::unique_ptr<Memory> start() const override { return std::make_unique<KeyValueMemory>(); }
  void fields(Fields& f) override {
    HeadedAttention::fields(f);
    f("place_hidden", place_hidden_);
    f("place_units", place_units_);
    if (between_) f("general", between_);
  }

 private:
  Tensor attend(Heads heads, const Attend& call) override {
    if (call.mask.bias())
      fail("attention 'local_p': a window takes no bias on its scores. Leave the bias out, or use softmax.");
    const int64_t first_query = recall(heads, call);
    const Tensor centre = centres(heads, call, first_query);
    const Tensor q = between_ ? matmul(heads.q, between_) : heads.q;
    const bool code = options_.convention == Convention::code;
    const bool floor =
        options_.window_center == Centre::convention ? code : options_.window_center == Centre::floor;
    const kernel::LocalTerms terms{.scale = options_.scale,
                                   .reach = options_.window,
                                   .sigma = options_.sigma > 0
                                                ? options_.sigma
                                                : std::max(static_cast<double>(options_.window) / 2, 0.5),
                                   .window = floor ? kernel::WindowCentre::floor : kernel::WindowCentre::real,
                                   .gauss = options_.gauss,
                                   .causal = call.mask.is_causal(),
                                   .first_query = first_query,
                                   .key_lengths = call.mask.key_lengths()};
    if (call.pass.probe != nullptr) {
      // The map is what comes out where values are the unit vectors.
      const NoTape looking;
      const int64_t keys = heads.k.extent(2);
      const Tensor values = expand(identity(keys, q), Shape{q.extent(0), q.extent(1), keys, keys});
      call.pass.probe->see(*this, local_attention(q, heads.k, values, centre, terms));
    }
    return local_attention(q, heads.k, heads.v, centre, terms);
  }

  /// p of each query, [B, H, Tq].
  Tensor centres(const Heads& heads, const Attend& call, int64_t first_query) const {
    const Tensor& q = heads.q;
    const Tensor share = sigmoid(matmul(tanh(matmul(q, place_hidden_)), place_units_));  // [B, H, Tq, 1]
    const bool code = options_.convention == Convention::code;
    const bool last = options_.span == Span::convention ? code : options_.span == Span::last;
    Tensor span = open(heads, call, first_query);
    if (last) span = span - 1;
    return reshape(share * span, Shape{q.extent(0), q.extent(1), q.extent(2)});
  }

  /// How many keys each query may look at, [1|B, 1, 1|Tq, 1]. Nothing is read on the host.
  static Tensor open(const Heads& heads, const Attend& call, int64_t first_query) {
    const Tensor& q = heads.q;
    const auto keys = static_cast<double>(heads.k.extent(2));
    Tensor open = Tensor::full(Shape{1, 1, 1, 1}, keys, q.dtype(), q.device());
    if (call.mask.is_causal()) {
      std::vector<double> counts;
      for (int64_t i = 0; i < q.extent(2); ++i)
        counts.push_back(std::min(static_cast<double>(first_query + i + 1), keys));
      open = constant_table<double>(counts, Shape{1, 1, q.extent(2), 1}, q.device(), q.dtype());
    }
    if (const Tensor lengths = call.mask.key_lengths()) {
      const Tensor own = reshape(cast(lengths, q.dtype()), Shape{lengths.extent(0), 1, 1, 1});
      open = minimum(open, own);
    }
    return open;
  }

  Options options_;
  Tensor place_hidden_, place_units_;  // [H, d, hidden], [H, hidden, 1]
  Tensor between_;                     // [H, d, d]
};

}  // namespace

Variant variant::local_p() {
  return describe<LocalPredictiveAttention, Options>(
      {.name = "local_p",
       .paper = "Luong et al. 2015",
       .idea = "Each query predicts a place and looks around it, more softly further away.",
       .time = {.length = 1, .width = 2},
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .cross = true,
       .steps = true,
       .map = MapKind::signed_});
}

}  // namespace heed

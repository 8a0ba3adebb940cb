// Local attention, monotonic: query i attends to the keys around position i. Luong et al. 2015, "Effective
// approaches to attention-based neural machine translation", arXiv 1508.04025, section 3.2: local-m.
//
//   y_i = sum_j a_ij v_j,      a_i = softmax of q_i . k_j over |j - i| <= window
//
// There is no Gaussian; a query whose window is past the last key gets zeros. A decoder caches the last
// `window` keys and values.
//
// Parameters: with score=general: general [H, d, d], applied as q W
#include <cmath>

#include "heed/attention/base/patterned_attention.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

enum class LocalScore { dot, general };

struct LocalMOptions {
  int64_t window = 10;
  LocalScore score = LocalScore::dot;
  double scale = 1;
  void fields(Fields& f) {
    f("window", window, {0, max_distance}, "D: largest distance of a key from the position of its query");
    f("score", Choice(score, {"dot", "general"}), "q . k, or q . W k");
    f("scale", scale, "multiplies the scores");
  }
};

class LocalMonotonicAttention final : public PatternedAttention {
 public:
  LocalMonotonicAttention(const AttentionConfig& config, const LocalMOptions& o, Rng& rng)
      : PatternedAttention(config, rng, o.scale), window_(o.window) {
    if (o.scale == 0) fail("attention 'local_m': scale = 0. It multiplies the scores: give another number.");
    const int64_t d = head_dim();
    if (o.score == LocalScore::general) {
      matrix_ = uniform_parameter(Shape{config.heads, d, d}, std::sqrt(3.0 / static_cast<double>(d)), rng);
    }
  }
  void fields(Fields& f) override {
    PatternedAttention::fields(f);
    if (matrix_) f("general", matrix_);
  }

 private:
  void keys(int64_t, int64_t i, int64_t, KeySet& out) const override {
    out.add_range(i - window_, i + window_ + 1);
  }
  int64_t window() const override { return window_; }
  Tensor attend(Heads heads, const AttentionInput& input) override {
    if (matrix_) heads.q = matmul(heads.q, matrix_);
    return PatternedAttention::attend(std::move(heads), input);
  }

  int64_t window_;
  Tensor matrix_;  // [H, d, d]
};

}  // namespace

Variant variant::local_m() {
  return describe<LocalMonotonicAttention, LocalMOptions>(
      like(sparse_pattern_traits, {.name = "local_m",
                                   .paper = "Luong et al. 2015",
                                   .summary = "Each query attends to the keys around its position.",
                                   .cross = true}));
}

}  // namespace heed

// Linformer. Wang et al. 2020, "Linformer: self-attention with linear complexity", arXiv 2006.04768,
// equation 7.
//
//   Y = softmax( Q (E K)^T / sqrt(d) ) F V,      E, F: [k, M]
//
// Keys and values are mixed into k slots by trained matrices, so the map has k columns. Positions have their
// own columns in E and F: inputs shorter than they were made for use the first ones, longer ones are refused.
// The mixing looks at all positions, so there is no causal form. Padded keys and values count as zeros; slots
// that mix only zeros keep their share of the softmax, as the paper's would.
//
// Parameters: E [H or 1, k, length] mixes keys, F [H or 1, k, length] mixes values. sharing = none: for each
// head its own; headwise: one E and one F; key_value: one E for keys and values.
#include <algorithm>
#include <cmath>

#include "attention/headed.h"
#include "attention/variant.h"

namespace heed {
namespace {

enum class Sharing { none, headwise, key_value };

struct Options {
  int64_t k = 64;
  Sharing sharing = Sharing::headwise;
  int64_t length = 0;
  double scale = 0;
  void fields(Fields& f) {
    f("k", k, "slots that keys and values are mixed into; at most the length");
    f("sharing", Choice(sharing, {"none", "headwise", "key_value"}), "what E and F serve together");
    f("length", length, "positions that E and F are made for; 0: the longest input of the host");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

class LinformerAttention final : public HeadedAttention {
 public:
  LinformerAttention(const AttentionConfig& config, const Options& o, Rng& rng)
      : HeadedAttention(config, rng),
        length_(o.length > 0 ? o.length : config.max_length),
        scale_(o.scale != 0 ? o.scale : 1 / std::sqrt(static_cast<double>(head_width()))) {
    if (o.k < 1) fail("attention 'linformer': k = ", o.k, ". It must be at least 1.");
    if (o.length < 0) fail("attention 'linformer': length = ", o.length, ". It must be at least 0.");
    if (length_ < 1) {
      fail("attention 'linformer': the host does not say how long inputs get, and E has a column for each ",
           "position. Give length=N.");
    }
    const int64_t slots = std::min(o.k, length_);
    const Shape shape{o.sharing == Sharing::none ? config.heads : 1, slots, length_};
    const double bound = 1 / std::sqrt(static_cast<double>(slots));
    e_ = uniform_parameter(shape, bound, rng);
    if (o.sharing != Sharing::key_value) f_ = uniform_parameter(shape, bound, rng);
  }

  void fields(Fields& f) override {
    HeadedAttention::fields(f);
    f("E", e_);
    f("F", f_);
  }

 private:
  Tensor attend(Heads heads, const Attend& call) override {
    refuse_extras("linformer", call);
    const int64_t length = heads.k.extent(2);
    if (length > length_) {
      fail("attention 'linformer': ", length, " keys, but E has columns for ", length_,
           ". Make it with length=", length, " or more.");
    }
    const Tensor e = slice(e_, 2, 0, length), f = f_ ? slice(f_, 2, 0, length) : e;
    const Tensor kept = call.mask.kept(heads.k, 0);
    const Tensor k = mixed(e, kept ? heads.k * kept : heads.k), v = mixed(f, kept ? heads.v * kept : heads.v);
    if (call.pass.probe != nullptr) {
      const NoTape looking;
      const Tensor seen = kept ? f * transpose(kept, 2, 3) : f;  // [B or 1, H or 1, k, M]
      call.pass.probe->see(*this, matmul(softmax(matmul(heads.q, transpose(k, 2, 3)) * scale_), seen));
    }
    return attention(heads.q, k, v, terms(call, scale_));
  }

  /// [H or 1, k, M] times [B, H, M, d] -> [B, H, k, d]. The batch becomes columns of one product, so that no
  /// gradient of E is made for each of its rows.
  static Tensor mixed(const Tensor& e, const Tensor& x) {
    const int64_t b = x.extent(0), h = x.extent(1), m = x.extent(2), d = x.extent(3), k = e.extent(1);
    if (e.extent(0) == h) {
      const Tensor columns = reshape(permute(x, {1, 2, 0, 3}), Shape{h, m, b * d});
      return permute(reshape(matmul(e, columns), Shape{h, k, b, d}), {2, 0, 1, 3});
    }
    const Tensor columns = reshape(permute(x, {2, 0, 1, 3}), Shape{1, m, b * h * d});
    return permute(reshape(matmul(e, columns), Shape{k, b, h, d}), {1, 2, 0, 3});
  }

  int64_t length_;
  double scale_;
  Tensor e_, f_;
};

}  // namespace

Variant variant::linformer() {
  return describe<LinformerAttention, Options>(
      {.name = "linformer",
       .paper = "Wang et al. 2020",
       .idea = "Keys and values are mixed into k slots by trained matrices.",
       .time = {.length = 1, .width = 1},
       .memory = {.length = 1, .width = 1},
       .cross = true,
       .map = MapKind::signed_,
       .from = 1024});
}

}  // namespace heed

// Linformer: trained matrices project keys and values along the sequence to k slots. Wang et al. 2020,
// "Linformer: self-attention with linear complexity", arXiv 2006.04768, equation 7.
//
//   Y = softmax( Q (E K)^T / sqrt(d) ) F V,      E, F: [k, M]
//
// The map has k columns. Each position has its own column in E and F: shorter inputs use the first columns,
// longer ones are an error. The projection mixes all positions, so there is no causal form. Padded keys and
// values count as zeros; slots of zeros keep their share of the softmax, as in the paper.
//
// Parameters: E [H or 1, k, length] for keys, F [H or 1, k, length] for values. sharing = none: separate per
// head; headwise: one E and one F; key_value: one E for keys and values; layerwise: the same E in all layers
// of a stack.
#include <algorithm>
#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

enum class Sharing { none, headwise, key_value, layerwise };

struct LinformerOptions {
  int64_t k = 64;
  Sharing sharing = Sharing::headwise;
  int64_t length = 0;
  double scale = 0;
  void fields(Fields& f) {
    f("k", k, {1, max_width}, "slots that keys and values are projected to; at most the length");
    f("sharing", Choice(sharing, {"none", "headwise", "key_value", "layerwise"}), "what shares E and F");
    f("length", length, {0, max_positions},
      "number of positions that E and F have columns for; 0: the model's max_length");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

/// The projected keys and values of cross-attention: k slots for a source of any length.
struct SlotCache final : AttentionCache {
  Tensor keys, values;  ///< [B, H, k, d]
  void fields(Fields& f) override {
    f("keys", keys);
    f("values", values);
  }
};

class LinformerAttention final : public MultiHeadAttention {
 public:
  LinformerAttention(const AttentionConfig& config, const LinformerOptions& o, Rng& rng)
      : MultiHeadAttention(config, rng),
        length_(o.length > 0 ? o.length : config.max_length),
        scale_(attention_scale(o.scale, head_dim())) {
    if (length_ < 1) {
      fail("attention 'linformer': E has a column for each position, and the model has no max_length. ",
           "Give length=N.");
    }
    const int64_t slots = std::min(o.k, length_);
    const Shape shape{o.sharing == Sharing::none ? config.heads : 1, slots, length_};
    const double bound = 1 / std::sqrt(static_cast<double>(slots));
    const bool is_shared_by_layers = o.sharing == Sharing::layerwise && config.shared;
    Tensor& e = is_shared_by_layers ? config.shared->tensors["linformer.E"] : e_;
    if (!e) e = uniform_parameter(shape, bound, rng);
    e_ = e;
    if (o.sharing == Sharing::none || o.sharing == Sharing::headwise)
      f_ = uniform_parameter(shape, bound, rng);
  }

  std::unique_ptr<AttentionCache> new_cache() const override { return std::make_unique<SlotCache>(); }
  void fields(Fields& f) override {
    MultiHeadAttention::fields(f);
    f("E", e_);
    f("F", f_);
  }

 private:
  Tensor attend(Heads heads, const AttentionInput& input) override {
    refuse_bias(input, "a projection of all keys");
    auto* cache = cache_of<SlotCache>(input);
    SlotCache slots_of_call;
    SlotCache& slots = cache != nullptr ? *cache : slots_of_call;
    if (heads.k) fill_slots(heads, input.mask, slots);
    if (slots.length == 0) fail_without_keys();
    record_map(input, [&] {
      const Tensor f = slice(f_ ? f_ : e_, 2, 0, slots.length);
      const Tensor positions =
          Tensor::zeros(Shape{heads.q.extent(0), 1, slots.length, 1}, f.dtype(), f.device());
      const Tensor kept = input.mask.padding_mask(positions, 0);
      const Tensor masked_f = kept ? f * transpose(kept, 2, 3) : f;  // [B or 1, H or 1, k, M]
      return matmul(softmax_map(heads.q, slots.keys, scale_, Mask::none(), 0), masked_f);
    });
    return attention(heads.q, slots.keys, slots.values, params(input, scale_));
  }

  /// Projects all keys and values into slots. Fails when slots exist already, and on too many keys.
  void fill_slots(const Heads& heads, const Mask& mask, SlotCache& slots) const {
    const int64_t length = heads.k.extent(2);
    if (slots.length > 0) {
      fail("attention 'linformer': its slots are computed from all keys at once, and ", slots.length,
           " keys were given before. Give all of them in the first call.");
    }
    if (length > length_) {
      fail("attention 'linformer': ", length, " keys, but E has columns for ", length_,
           ". Make it with length=", length, " or more.");
    }
    const Tensor e = slice(e_, 2, 0, length), f = f_ ? slice(f_, 2, 0, length) : e;
    const Tensor kept = mask.padding_mask(heads.k, 0);
    slots.keys = projected(e, kept ? heads.k * kept : heads.k);
    slots.values = projected(f, kept ? heads.v * kept : heads.v);
    slots.length = length;
  }

  /// E [H or 1, k, M] times x [B, H, M, d] -> [B, H, k, d]. The batch becomes columns of one product, so that
  /// E gets one gradient instead of one per sequence.
  static Tensor projected(const Tensor& e, const Tensor& x) {
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
  return describe<LinformerAttention, LinformerOptions>(
      {.name = "linformer",
       .paper = "Wang et al. 2020",
       .summary = "Keys and values are projected to k slots by trained matrices.",
       .time = {.length = 1, .width = 1},
       .memory = {.length = 1, .width = 1},
       .cross = true,
       .steps = true,
       .map = MapKind::signed_,
       .min_cost_length = 1024});
}

}  // namespace heed

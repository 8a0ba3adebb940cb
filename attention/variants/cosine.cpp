// Cosine attention: softmax of sharpened cosines (content addressing), optionally with all addressing steps
// of a neural Turing machine. Graves et al. 2014, "Neural Turing machines", arXiv 1410.5401, equations 5
// to 9.
//
//   c_i = softmax_j( b cos(q_i, k_j) ),      b > 0 for each head; |x| is taken as at least 1e-8
//
// The options gate, shift and sharpen compute the weights w_i of query i from c_i and from w_(i-1):
//
//   w_g = g c_i + (1 - g) w_(i-1),      g = sigmoid(u_g . q_i + b_g);  for the first query w_g = c_0
//   w~(j) = sum over -r <= s <= r of p_s w_g(j - s),      p = softmax(U_s q_i + b_s);  positions are taken
//           modulo the number of keys that query i may attend to
//   w_i = w~^y / sum,      y = 1 + softplus(u_y . q_i + b_y)
//
// Queries are processed one after another, in one call or step by step.
//
// Parameters: sharpness [H, 1, 1], b = softplus(sharpness); with predict: sharpness_weight [H, d, 1], b =
// softplus(sharpness + sharpness_weight . q); with gate: gate_weight [H, d, 1], gate_bias [H, 1, 1]; with
// shift = r: shift_weight [H, d, 2r + 1], shift_bias [H, 1, 2r + 1], from p_-r to p_r; with sharpen:
// sharpen_weight [H, d, 1], sharpen_bias [H, 1, 1]
#include <cmath>

#include "heed/attention/base/scaled_dot_product_attention.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct CosineOptions {
  double sharpness = 5;
  bool predict = false, gate = false, sharpen = false;
  int64_t shift = 0;
  void fields(Fields& f) {
    f("sharpness", sharpness, "b at the start; it is trained");
    f("predict", predict, "b from the query");
    f("gate", gate, "mix with the weights of the query before");
    f("shift", shift, {0, max_rounds},
      "how far weights may move to either side, around the keys; 0: they do not");
    f("sharpen", sharpen, "raise the weights to a power from the query");
  }
};

/// x / max(|x|, 1e-8)
Tensor unit_vectors(const Tensor& x) { return x / sqrt(maximum(sum(square(x), 3), 1e-16)); }

/// A key-value cache with the weights of the last query.
struct AddressingCache final : KeyValueCache {
  Tensor weights;  ///< [B, H, number of keys at that query]
  void fields(Fields& f) override {
    KeyValueCache::fields(f);
    f("weights", weights);
  }
};

class CosineAttention final : public ScaledDotProductAttention {
 public:
  CosineAttention(const AttentionConfig& config, const CosineOptions& o, Rng& rng)
      : ScaledDotProductAttention(config, rng, 1), options_(o) {
    if (!(o.sharpness > 0)) fail("attention 'cosine': sharpness = ", o.sharpness, ". It must be above 0.");
    if (config.modifiers.qk_norm == QkNorm::l2)
      fail("attention 'cosine': it divides queries and keys by their length itself. Set qk_norm to none.");
    const int64_t h = config.heads, d = head_dim();
    const double bound = std::sqrt(6.0 / static_cast<double>(d + 1));
    sharpness_ = constant_parameter(Shape{h, 1, 1}, std::log(std::expm1(o.sharpness)));
    if (o.predict) sharpness_weight_ = uniform_parameter(Shape{h, d, 1}, bound, rng);
    if (o.gate) {
      gate_weight_ = uniform_parameter(Shape{h, d, 1}, bound, rng);
      gate_bias_ = constant_parameter(Shape{h, 1, 1}, 0);
    }
    if (o.shift > 0) {
      const int64_t shifts = 2 * o.shift + 1;
      shift_weight_ =
          uniform_parameter(Shape{h, d, shifts}, std::sqrt(6.0 / static_cast<double>(d + shifts)), rng);
      shift_bias_ = constant_parameter(Shape{h, 1, shifts}, 0);
    }
    if (o.sharpen) {
      sharpen_weight_ = uniform_parameter(Shape{h, d, 1}, bound, rng);
      sharpen_bias_ = constant_parameter(Shape{h, 1, 1}, 0);
    }
  }

  std::unique_ptr<AttentionCache> new_cache() const override {
    if (options_.gate) return std::make_unique<AddressingCache>();
    return ScaledDotProductAttention::new_cache();
  }

  void fields(Fields& f) override {
    ScaledDotProductAttention::fields(f);
    f("sharpness", sharpness_);
    // Only the tensors that the options use are listed: an empty field is a tensor that users may give.
    if (options_.predict) f("sharpness_weight", sharpness_weight_);
    if (options_.gate) {
      f("gate_weight", gate_weight_);
      f("gate_bias", gate_bias_);
    }
    if (options_.shift > 0) {
      f("shift_weight", shift_weight_);
      f("shift_bias", shift_bias_);
    }
    if (options_.sharpen) {
      f("sharpen_weight", sharpen_weight_);
      f("sharpen_bias", sharpen_bias_);
    }
  }

 private:
  void transform_heads(Heads& heads) const override {
    const Tensor sharpness =
        sharpness_weight_ ? matmul(heads.q, sharpness_weight_) + sharpness_ : sharpness_;  // [B, H, Tq, 1]
    heads.q = unit_vectors(heads.q) * softplus(sharpness);
    heads.k = unit_vectors(heads.k);
  }

  /// True where weights depend on the content alone.
  bool is_by_content() const { return !options_.gate && options_.shift == 0 && !options_.sharpen; }
  bool attends_packed(const AttentionInput& input) const override {
    return is_by_content() && ScaledDotProductAttention::attends_packed(input);
  }

  Tensor attend(Heads heads, const AttentionInput& input) override {
    if (is_by_content()) return ScaledDotProductAttention::attend(std::move(heads), input);
    if (input.mask.bias() && (options_.gate || options_.shift > 0)) {
      fail(
          "attention 'cosine': gate and shift move weight to keys whatever their scores are, so a bias "
          "cannot mask keys. Leave the bias out, or gate and shift.");
    }
    const int64_t first_query = read_cache(heads, input);
    const AddressingSteps steps = addressing_steps(heads, input);
    transform_heads(heads);
    const Tensor map = ntm_addressing(weights(heads, input, first_query), steps,
                                      {.causal = input.mask.is_causal(),
                                       .first_query = first_query,
                                       .key_lengths = input.mask.key_lengths()});
    if (auto* cache = dynamic_cast<AddressingCache*>(input.cache)) cache->weights = last_row(map);
    if (input.context.recorder != nullptr) input.context.recorder->record(*this, map);
    return apply_map(map, heads, input, first_query);
  }

  /// Gate, shift and sharpness of each query, and the weights of the query before the first one.
  AddressingSteps addressing_steps(const Heads& heads, const AttentionInput& input) const {
    const Tensor& q = heads.q;
    const Shape queries{q.extent(0), q.extent(1), q.extent(2)};
    AddressingSteps steps;
    if (options_.gate) steps.gate = reshape(sigmoid(matmul(q, gate_weight_) + gate_bias_), queries);
    if (options_.shift > 0) steps.shift = softmax(matmul(q, shift_weight_) + shift_bias_);
    if (options_.sharpen)
      steps.sharp = reshape(softplus(matmul(q, sharpen_weight_) + sharpen_bias_) + 1, queries);
    const auto* cache = dynamic_cast<const AddressingCache*>(input.cache);
    if (cache == nullptr || !cache->weights) return steps;
    steps.before = cache->weights;
    const int64_t added = heads.k.extent(2) - steps.before.extent(2);
    if (added > 0) {  // keys of this call had weight 0
      const Tensor zeros = Tensor::zeros(Shape{q.extent(0), q.extent(1), added}, q.dtype(), q.device());
      steps.before = concat(std::vector<Tensor>{steps.before, zeros}, 2);
    }
    return steps;
  }

  /// The weights of the last query of a map [B, H, Tq, Tk]: [B, H, Tk].
  static Tensor last_row(const Tensor& map) {
    const int64_t queries = map.extent(2);
    return reshape(slice(map, 2, queries - 1, queries), Shape{map.extent(0), map.extent(1), map.extent(3)});
  }

  CosineOptions options_;
  Tensor sharpness_, sharpness_weight_;  // [H, 1, 1], [H, d, 1]
  Tensor gate_weight_, gate_bias_, shift_weight_, shift_bias_, sharpen_weight_, sharpen_bias_;
};

}  // namespace

Variant variant::cosine() {
  return describe<CosineAttention, CosineOptions>(
      like(dot_product_traits,
           {.name = "cosine",
            .paper = "Graves et al. 2014",
            .summary = "Softmax of sharpened cosines; optionally with addressing by location."}));
}

}  // namespace heed

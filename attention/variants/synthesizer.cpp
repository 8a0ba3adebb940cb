// Synthesizer: scores that do not depend on keys. Tay et al. 2020, "Synthesizer: rethinking self-attention in
// transformer models", arXiv 2005.00743, section 3.
//
//   Y = softmax(B) V,  causal or padded as any other
//   random:             B = R,          R [L, L] trained, or as drawn (trained=false)
//   factorized_random:  B = R1 R2,      R1 [L, k], R2 [k, L]
//   dense:              B_i = relu(q_i + b) W + c,          [d] -> [L], q_i = x_i W^Q
//   factorized_dense:   B_ij = a_i[j mod n] e_i[j div n],   a_i = relu(q_i + b) W_a + c_a of n numbers, e_i
//                       computed alike, of ceil(L / n) numbers
//   dense+random:       their sum
//   dot_product=true:   q_i . k_j / sqrt(d) is added: the mixtures of section 3.5, whose shares are not
//   trained
//
// Each position has its own row and column: shorter inputs use the first ones, longer ones are an error.
// There is no cross-attention: random scores would not depend on the queries' tokens at all. Defaults are
// those of google-research/long-range-arena, models/synthesizer/synthesizer_attention.py; the models there
// use random with dot_product=true. There dense has one W for all heads, and reads its scores in another
// order than it computes them; here each head has its own, as in the paper. With dot_product=true one W^Q
// serves both terms.
//
// Parameters: those of the mode. random [H, L, L]; random1 [H, L, k], random2 [H, k, L]; hidden_bias [H, 1,
// d] with to_places [H, d, L] and places_bias [H, 1, L], or with to_columns [H, d, n], columns_bias [H, 1,
// n], to_rows [H, d, L / n], rows_bias [H, 1, L / n].
#include <cmath>

#include "heed/attention/base/scored_attention.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct SynthesizerOptions {
  enum class Mode { random, factorized_random, dense, factorized_dense, dense_random };

  Mode mode = Mode::factorized_random;
  bool dot_product = false, trained = true;
  int64_t k = 32, columns = 0, length = 0;
  double scale = 0;
  void fields(Fields& f) {
    f("mode", Choice(mode, {"random", "factorized_random", "dense", "factorized_dense", "dense+random"}),
      "computation of the scores");
    f("dot_product", dot_product, "dot products of queries and keys are added");
    f("trained", trained, "random scores are trained; false: they keep their random values");
    f("k", k, {1, max_width}, "rank of factorized_random");
    f("columns", columns, {0, max_width}, "n of factorized_dense; 0: the root of the length");
    f("length", length, {0, max_width}, "L, number of positions with scores; 0: the longest input");
    f("scale", scale, "multiplies the dot products; 0: 1 / sqrt(d)");
  }
};

class SynthesizerAttention final : public ScoredAttention {
 public:
  using Mode = SynthesizerOptions::Mode;

  SynthesizerAttention(const AttentionConfig& config, const SynthesizerOptions& o, Rng& rng)
      : ScoredAttention(config, rng,
                        o.dot_product      ? Project::qkv
                        : is_dense(o.mode) ? Project::qv
                                           : Project::v),
        options_(o) {
    if (options_.length == 0) options_.length = config.max_length;
    if (options_.length < 1) {
      fail("attention 'synthesizer': length = ", o.length,
           ", and the model has no max_length. It has scores for each position: set length.");
    }
    options_.scale = attention_scale(o.scale, head_dim());
    refuse_modifiers(config.modifiers);
    if (o.mode == Mode::random || o.mode == Mode::dense_random) {
      random_ = random_scores(options_.length, options_.length, rng);
    } else if (o.mode == Mode::factorized_random) {
      random1_ = random_scores(options_.length, o.k, rng);
      random2_ = random_scores(o.k, options_.length, rng);
    }
    if (!is_dense(o.mode)) return;
    hidden_bias_ = constant_parameter(Shape{config.heads, 1, head_dim()}, 0);
    if (o.mode != Mode::factorized_dense) {
      places_ = layer(options_.length, rng);
      return;
    }
    if (o.columns == 0)
      options_.columns = std::llround(std::ceil(std::sqrt(static_cast<double>(options_.length))));
    columns_ = layer(options_.columns, rng);
    rows_ = layer((options_.length + options_.columns - 1) / options_.columns, rng);
  }

  void fields(Fields& f) override {
    ScoredAttention::fields(f);
    f("random", random_);
    f("random1", random1_);
    f("random2", random2_);
    f("hidden_bias", hidden_bias_);
    f("to_places", places_.weight);
    f("places_bias", places_.bias);
    f("to_columns", columns_.weight);
    f("columns_bias", columns_.bias);
    f("to_rows", rows_.weight);
    f("rows_bias", rows_.bias);
  }

 private:
  /// The second layer of a dense mode: [H, d, n] and [H, 1, n].
  struct Layer {
    Tensor weight, bias;
    /// x [B, H, T, d] -> [B, H, T, n] of the first n outputs.
    Tensor operator()(const Tensor& x, int64_t n) const {
      return matmul(x, slice(weight, 2, 0, n)) + slice(bias, 2, 0, n);
    }
  };

  static bool is_dense(Mode mode) {
    return mode == Mode::dense || mode == Mode::factorized_dense || mode == Mode::dense_random;
  }

  void refuse_modifiers(const Modifiers& m) const {
    if (!options_.dot_product && !is_dense(options_.mode) &&
        (m.position == PositionKind::shaw || m.position == PositionKind::shaw_keys)) {
      fail(
          "attention 'synthesizer': shaw scores queries, and its random modes have none. Choose another "
          "position, or dot_product=true.");
    }
    if (options_.dot_product && is_dense(options_.mode) &&
        (is_rotary(m.position) || m.qk_norm != QkNorm::none)) {
      fail(
          "attention 'synthesizer': its dense modes use queries without rope and qk_norm, so these cannot "
          "act on the dot product alone. Set them to none, or choose mode=random.");
    }
  }

  /// Random scores of all heads, [H, rows, columns].
  Tensor random_scores(int64_t rows, int64_t columns, Rng& rng) const {
    const Shape shape{config().heads, rows, columns};
    const double bound = std::sqrt(6 / static_cast<double>(config().heads * (rows + columns)));
    if (options_.trained) return uniform_parameter(shape, bound, rng);
    Tensor fixed(shape);
    fill_uniform(fixed, -bound, bound, rng);
    return fixed;
  }

  Layer layer(int64_t n, Rng& rng) const {
    const double bound = std::sqrt(6 / static_cast<double>(head_dim() + n));
    return {uniform_parameter(Shape{config().heads, head_dim(), n}, bound, rng),
            constant_parameter(Shape{config().heads, 1, n}, 0)};
  }

  Tensor score(const Tensor& q, const Tensor& k, const AttentionInput&) const override {
    const int64_t queries = q.extent(2), keys = k.extent(2);
    const int64_t first = keys - queries;
    if (keys > options_.length) {
      fail("attention 'synthesizer': ", keys, " positions, but it has scores for ", options_.length,
           ". Set length (or model.max_length) to the longest input.");
    }
    Tensor scores = options_.dot_product ? matmul(q, transpose(k, 2, 3)) * options_.scale : Tensor();
    const auto add = [&scores](const Tensor& more) { scores = scores ? scores + more : more; };
    if (random_) add(slice(slice(random_, 1, first, first + queries), 2, 0, keys));
    if (random1_) add(matmul(slice(random1_, 1, first, first + queries), slice(random2_, 2, 0, keys)));
    if (hidden_bias_) add(dense(relu(q + hidden_bias_), keys));
    return expand(scores, Shape{q.extent(0), q.extent(1), queries, keys});
  }

  /// Scores of the first `keys` positions: [B, H, T, d] -> [B, H, T, keys].
  Tensor dense(const Tensor& hidden, int64_t keys) const {
    if (places_.weight) return places_(hidden, keys);
    const int64_t n = columns_.weight.extent(2), rows = (keys + n - 1) / n;
    const int64_t B = hidden.extent(0), H = hidden.extent(1), T = hidden.extent(2);
    const Tensor row = reshape(rows_(hidden, rows), Shape{B, H, T, rows, 1});
    const Tensor column = reshape(columns_(hidden, n), Shape{B, H, T, 1, n});
    return slice(reshape(row * column, Shape{B, H, T, rows * n}), 3, 0, keys);
  }

  SynthesizerOptions options_;
  Tensor random_, random1_, random2_, hidden_bias_;
  Layer places_, columns_, rows_;
};

}  // namespace

Variant variant::synthesizer() {
  return describe<SynthesizerAttention, SynthesizerOptions>(
      {.name = "synthesizer",
       .paper = "Tay et al. 2020",
       .summary =
           "Scores are trained for pairs of positions, or computed from the query alone, without keys.",
       .time = {.length = 2, .width = 0.5},
       .memory = {.length = 2, .width = 0},
       .causal = true,
       .steps = true,
       .map = MapKind::exact});
}

}  // namespace heed

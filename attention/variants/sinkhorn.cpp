// Sparse Sinkhorn attention: a doubly stochastic matrix mixes blocks of keys, and a query attends to its own
// block and the mixed one. Tay et al. 2020, "Sparse Sinkhorn attention", arXiv 2002.11296, sections 3 and 4.
//
//   L = (means of query blocks) . (means of key blocks) / sqrt(d),
//   R = exp(L / t) scaled so that rows and columns sum to 1
//
// The input is cut into blocks. R is computed by rounds of row and column normalisation in the log domain; it
// mixes key and value blocks position by position. When causal, a block mixes earlier blocks only: its first
// query represents it, and columns are summed over the rows so far.
//
// Parameters: sort [1 or H, blocks, blocks], optional: R itself, instead of the computed one.
#include <cmath>
#include <limits>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/variant.h"
#include "heed/core/constant_table.h"

namespace heed {
namespace {

struct SinkhornOptions {
  int64_t block = 0;
  int64_t iterations = 8;
  double temperature = 0.75;
  bool gumbel = false;
  double scale = 0;
  void fields(Fields& f) {
    f("block", block, {0, max_block},
      "tokens of a block; 0: the root of the longest input, 16 if it is not known");
    f("iterations", iterations, {1, max_rounds}, "rounds over rows and columns");
    f("temperature", temperature, "divides the logits: lower is closer to a permutation");
    f("gumbel", gumbel, "Gumbel noise on the logits while training");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

class SinkhornAttention final : public MultiHeadAttention {
 public:
  SinkhornAttention(const AttentionConfig& config, const SinkhornOptions& o, Rng& rng)
      : MultiHeadAttention(config, rng), options_(o) {
    if (!(o.temperature > 0))
      fail("attention 'sinkhorn': temperature = ", o.temperature, ". It must be above 0.");
    const auto max_length = static_cast<double>(config.max_length);
    if (o.block == 0)
      options_.block = max_length == 0 ? 16 : std::max<int64_t>(1, std::llround(std::sqrt(max_length)));
    options_.scale = attention_scale(o.scale, head_dim());
  }

  void fields(Fields& f) override {
    MultiHeadAttention::fields(f);
    f("sort", sort_);
  }

 private:
  Tensor attend(Heads heads, const AttentionInput& input) override {
    refuse_bias_and_cache("sinkhorn", input);
    const int64_t N = heads.q.extent(2), b = options_.block, blocks = (N + b - 1) / b;
    check_equal_lengths("sinkhorn", N, heads.v.extent(2), "Give as many of each.");
    const Tensor padding = input.mask.padding_mask(heads.k, 0);
    const Tensor ones = Tensor::full(Shape{1, 1, N, 1}, 1, heads.q.dtype(), heads.q.device());
    const Tensor kept = in_blocks(padding ? padding : ones, blocks);  // [B or 1, 1, n, b, 1]
    const auto masked_blocks = [&](const Tensor& x) { return in_blocks(padding ? x * padding : x, blocks); };
    const Tensor q = masked_blocks(heads.q), k = masked_blocks(heads.k), v = masked_blocks(heads.v);
    const Tensor order = sort_matrix(q, k, kept, input);
    const Tensor keys = sorted_and_own(order, k),
                 bias = block_bias(kept, q, input.mask.is_causal(), static_cast<bool>(padding));
    const auto attended = [&](const Tensor& values, const kernel::AttentionParams& call) {
      const Tensor y = attention(join_batch_and_heads(q), keys, sorted_and_own(order, values), call);
      const Shape flat{heads.q.extent(0), heads.q.extent(1), blocks * b, values.extent(4)};
      return slice(reshape(y, flat), 2, 0, N);
    };
    kernel::AttentionParams call = params(input, options_.scale);
    call.bias = bias;
    record_map(input, [&] {
      return attended(masked_blocks(identity_values(heads.v)), {.scale = options_.scale, .bias = bias});
    });
    return attended(v, call);
  }

  /// [B, H, N, d] -> [B, H, n, b, d], zero-padded.
  Tensor in_blocks(const Tensor& x, int64_t blocks) const {
    const Shape shape{x.extent(0), x.extent(1), blocks, options_.block, x.extent(3)};
    Shape rest = x.shape();
    rest[2] = blocks * options_.block - x.extent(2);
    if (rest[2] == 0) return reshape(x, shape);
    return reshape(concat(std::vector<Tensor>{x, Tensor::zeros(rest, x.dtype(), x.device())}, 2), shape);
  }

  /// [B, H, n, b, d] -> [B H, n, b, d].
  static Tensor join_batch_and_heads(const Tensor& x) {
    return reshape(x, Shape{x.extent(0) * x.extent(1), x.extent(2), x.extent(3), x.extent(4)});
  }

  /// The keys (or values) of each block [B H, n, 2 b, d]: those that R sorts to it from x [B, H, n, b, d],
  /// then its own.
  static Tensor sorted_and_own(const Tensor& order, const Tensor& x) {
    const int64_t n = x.extent(2), b = x.extent(3), d = x.extent(4);
    const Tensor rows = reshape(x, Shape{x.extent(0), x.extent(1), n, b * d});
    return join_batch_and_heads(concat(std::vector<Tensor>{reshape(matmul(order, rows), x.shape()), x}, 3));
  }

  /// 1 where row block i may mix block j: [1, 1, n, n].
  static Tensor may_mix(int64_t n, bool causal, const Tensor& like) {
    std::vector<float> values(static_cast<size_t>(n * n));
    for (int64_t i = 0; i < n * n; ++i) values[static_cast<size_t>(i)] = !causal || i % n < i / n ? 1 : 0;
    return constant_table<float>(values, Shape{1, 1, n, n}, like.device(), like.dtype());
  }

  /// R: [B, H, n, n], or [1, 1 or H, n, n] if it is given.
  Tensor sort_matrix(const Tensor& q, const Tensor& k, const Tensor& kept,
                     const AttentionInput& input) const {
    const int64_t B = q.extent(0), H = q.extent(1), n = q.extent(2), d = q.extent(4);
    const bool causal = input.mask.is_causal();
    if (sort_) {
      const bool fits = sort_.rank() == 3 && (sort_.extent(0) == 1 || sort_.extent(0) == H) &&
                        sort_.extent(1) == n && sort_.extent(2) == n;
      if (!fits)
        fail("attention 'sinkhorn': sort is ", sort_.shape(), " for ", n, " blocks. It must be [1 or ", H,
             ", ", n, ", ", n, "].");
      return reshape(sort_, Shape{1, sort_.extent(0), n, n}) * may_mix(n, causal, q);
    }
    const Tensor counts = maximum(sum(kept, 3), 1);
    const Shape means{B, H, n, d};
    const Tensor key_means = reshape(sum(k, 3) / counts, means);
    const Tensor query_means = reshape(causal ? slice(q, 3, 0, 1) : sum(q, 3) / counts, means);
    Tensor logits = matmul(query_means, transpose(key_means, 2, 3)) * (1 / std::sqrt(static_cast<double>(d)));
    if (options_.gumbel && input.context.training()) {
      const Tensor u = empty_like(logits);
      fill_uniform(u, 1e-6, 1 - 1e-6, *input.context.rng);
      logits = logits - log(-log(u));
    }
    // A block is real if its first token is not padding.
    const Tensor real = reshape(slice(kept, 3, 0, 1), Shape{kept.extent(0), 1, n, 1});
    const Tensor can_mix = may_mix(n, causal, q) * real * transpose(real, 2, 3);
    return balanced(logits * (1 / options_.temperature), cast(can_mix.detach(), DType::u8), causal);
  }

  /// exp(logits) after dividing rows by their sums (over axis 3) and columns by theirs (over axis 2),
  /// alternately; 0 where `can_mix` is 0.
  Tensor balanced(Tensor logits, const Tensor& can_mix, bool causal) const {
    constexpr double min_sum = 1e-30;
    const auto masked = [&] { return where(can_mix, logits, -std::numeric_limits<double>::infinity()); };
    // Less the maximum of each row, exp() cannot overflow; the first division by sums of rows cancels it. A
    // row may have no block to mix, whose maximum must be finite.
    logits = logits - max(where(can_mix, logits, -1e30), 3).detach();
    for (int64_t i = 0; i < options_.iterations; ++i) {
      logits = logits - log(maximum(sum(exp(masked()), 3), min_sum));
      const Tensor columns = exp(masked());
      logits = logits - log(maximum(causal ? cumulative_sum(columns, 2) : sum(columns, 2), min_sum));
    }
    return exp(masked());
  }

  /// 0 or -inf for the keys of each block: [1 or B H, n, 1 or b, 2 b], B H if padded, b queries if causal.
  Tensor block_bias(const Tensor& kept, const Tensor& q, bool causal, bool padded) const {
    const int64_t B = q.extent(0), H = q.extent(1), n = q.extent(2), b = q.extent(3);
    // A sorted key exists if any block has a token at its place in the block; the first block has the most
    // tokens. When causal, block 0 has none, and a later block that holds a token comes after full ones.
    const Tensor own = transpose(kept, 3, 4);  // [B or 1, 1, n, 1, b]
    Tensor sorted = expand(slice(own, 2, 0, 1), own.shape());
    if (causal) {
      std::vector<float> has_earlier_block(static_cast<size_t>(n), 1);
      has_earlier_block[0] = 0;
      sorted = sorted * constant_table<float>(has_earlier_block, Shape{1, 1, n, 1, 1}, q.device(), q.dtype());
    }
    Tensor visible = concat(std::vector<Tensor>{sorted, own}, 4);
    if (causal) {
      std::vector<float> is_not_later(static_cast<size_t>(2 * b * b),
                                      1);  // [b, 2 b]: sorted keys, then own ones
      for (int64_t i = 0; i < b; ++i)
        for (int64_t j = i + 1; j < b; ++j) is_not_later[static_cast<size_t>(i * 2 * b + b + j)] = 0;
      visible =
          visible * constant_table<float>(is_not_later, Shape{1, 1, 1, b, 2 * b}, q.device(), q.dtype());
    }
    const Tensor bias = where(cast(visible, DType::u8), Tensor::zeros(visible.shape(), q.dtype(), q.device()),
                              -std::numeric_limits<double>::infinity());
    if (!padded) return reshape(bias, Shape{1, n, visible.extent(3), 2 * b});
    return reshape(expand(bias, Shape{B, H, n, visible.extent(3), 2 * b}),
                   Shape{B * H, n, visible.extent(3), 2 * b});
  }

  SinkhornOptions options_;
  Tensor sort_;
};

}  // namespace

Variant variant::sinkhorn() {
  return describe<SinkhornAttention, SinkhornOptions>(
      {.name = "sinkhorn",
       .paper = "Tay et al. 2020",
       .summary = "A doubly stochastic matrix sorts blocks; a query attends to its own block and the one "
                  "sorted to it.",
       .time = {.length = 1.5, .width = 1},
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .last_row = false,
       .map = MapKind::signed_,
       .min_cost_length = 1024});
}

}  // namespace heed

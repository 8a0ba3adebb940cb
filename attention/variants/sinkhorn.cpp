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
    const auto longest = static_cast<double>(config.max_length);
    if (o.block == 0)
      options_.block = config.max_length == 0 ? 16 : std::max<int64_t>(1, std::llround(std::sqrt(longest)));
    if (o.scale == 0) options_.scale = 1 / std::sqrt(static_cast<double>(head_dim()));
  }

  void fields(Fields& f) override {
    MultiHeadAttention::fields(f);
    f("sort", sort_);
  }

 private:
  Tensor attend(Heads heads, const AttentionInput& input) override {
    refuse_extras("sinkhorn", input);
    const int64_t N = heads.q.extent(2), b = options_.block, blocks = (N + b - 1) / b;
    if (heads.v.extent(2) != N)
      fail("attention 'sinkhorn': ", N, " queries for ", heads.v.extent(2), " keys. Give as many of each.");
    const Tensor given = input.mask.padding_mask(heads.k, 0);
    const Tensor all = Tensor::full(Shape{1, 1, N, 1}, 1, heads.q.dtype(), heads.q.device());
    const Tensor kept = in_blocks(given ? given : all, blocks);  // [B or 1, 1, n, b, 1]
    const auto real = [&](const Tensor& x) { return in_blocks(given ? x * given : x, blocks); };
    const Tensor q = real(heads.q), k = real(heads.k), v = real(heads.v);
    const Tensor order = sorted(q, k, kept, input);
    const Tensor keys = mixed(order, k),
                 bias = bias_of(kept, q, input.mask.is_causal(), static_cast<bool>(given));
    const auto attended = [&](const Tensor& values, const kernel::AttentionParams& params) {
      const Tensor y = attention(grouped(q), keys, mixed(order, values), params);
      const Shape flat{heads.q.extent(0), heads.q.extent(1), blocks * b, values.extent(4)};
      return slice(reshape(y, flat), 2, 0, N);
    };
    kernel::AttentionParams params = this->params(input, options_.scale);
    params.bias = bias;
    if (input.context.recorder != nullptr) {
      const NoGrad no_grad;
      const Tensor whole = expand(identity(N, heads.v), Shape{heads.v.extent(0), heads.v.extent(1), N, N});
      input.context.recorder->record(*this, attended(real(whole), {.scale = options_.scale, .bias = bias}));
    }
    return attended(v, params);
  }

  /// [B, H, N, d] -> [B, H, n, b, d], zero-padded.
  Tensor in_blocks(const Tensor& x, int64_t blocks) const {
    const Shape shape{x.extent(0), x.extent(1), blocks, options_.block, x.extent(3)};
    Shape rest = x.shape();
    rest[2] = blocks * options_.block - x.extent(2);
    if (rest[2] == 0) return reshape(x, shape);
    return reshape(concat(std::vector<Tensor>{x, Tensor::zeros(rest, x.dtype(), x.device())}, 2), shape);
  }

  static Tensor grouped(const Tensor& x) {
    return reshape(x, Shape{x.extent(0) * x.extent(1), x.extent(2), x.extent(3), x.extent(4)});
  }

  /// The keys (or values) of each block: the blocks that R mixes from x [B, H, n, b, d], then x itself:
  /// [B H, n, 2 b, d].
  static Tensor mixed(const Tensor& order, const Tensor& x) {
    const int64_t n = x.extent(2), b = x.extent(3), d = x.extent(4);
    const Tensor rows = reshape(x, Shape{x.extent(0), x.extent(1), n, b * d});
    return grouped(concat(std::vector<Tensor>{reshape(matmul(order, rows), x.shape()), x}, 3));
  }

  /// 1 where row block i may mix block j: [1, 1, n, n].
  static Tensor allowed(int64_t n, bool causal, const Tensor& as) {
    std::vector<float> values(static_cast<size_t>(n * n));
    for (int64_t i = 0; i < n * n; ++i) values[static_cast<size_t>(i)] = !causal || i % n < i / n ? 1 : 0;
    return constant_table<float>(values, Shape{1, 1, n, n}, as.device(), as.dtype());
  }

  /// R: [B, H, n, n], or [1, 1 or H, n, n] if it is given.
  Tensor sorted(const Tensor& q, const Tensor& k, const Tensor& kept, const AttentionInput& input) const {
    const int64_t B = q.extent(0), H = q.extent(1), n = q.extent(2), d = q.extent(4);
    const bool causal = input.mask.is_causal();
    if (sort_) {
      const bool fits = sort_.rank() == 3 && (sort_.extent(0) == 1 || sort_.extent(0) == H) &&
                        sort_.extent(1) == n && sort_.extent(2) == n;
      if (!fits)
        fail("attention 'sinkhorn': sort is ", sort_.shape(), " for ", n, " blocks. It must be [1 or ", H,
             ", ", n, ", ", n, "].");
      return reshape(sort_, Shape{1, sort_.extent(0), n, n}) * allowed(n, causal, q);
    }
    const Tensor one = Tensor::full(Shape{1, 1, 1, 1, 1}, 1, q.dtype(), q.device());
    const Tensor counted = maximum(sum(kept, 3), one);
    const Shape means{B, H, n, d};
    const Tensor of_keys = reshape(sum(k, 3) / counted, means);
    const Tensor of_queries = reshape(causal ? slice(q, 3, 0, 1) : sum(q, 3) / counted, means);
    Tensor logits = matmul(of_queries, transpose(of_keys, 2, 3)) * (1 / std::sqrt(static_cast<double>(d)));
    if (options_.gumbel && input.context.training()) {
      const Tensor chance = empty_like(logits);
      fill_uniform(chance, 1e-6, 1 - 1e-6, *input.context.rng);
      logits = logits - log(-log(chance));
    }
    // A block is real if its first token is not padding.
    const Tensor real = reshape(slice(kept, 3, 0, 1), Shape{kept.extent(0), 1, n, 1});
    const Tensor open = allowed(n, causal, q) * real * transpose(real, 2, 3);
    return balanced(logits * (1 / options_.temperature), cast(open.detach(), DType::u8), causal);
  }

  /// exp(logits) after dividing rows and columns by their sums, alternately; 0 where `open` is 0.
  Tensor balanced(Tensor logits, const Tensor& open, bool causal) const {
    constexpr double hidden = -std::numeric_limits<double>::infinity();
    const Tensor least = Tensor::full(Shape{1, 1, 1, 1}, 1e-30, logits.dtype(), logits.device());
    const auto weights = [&] { return where(open, logits, hidden); };
    logits = logits - max(where(open, logits, -1e30), 3).detach();
    for (int64_t i = 0; i < options_.iterations; ++i) {
      logits = logits - log(maximum(sum(exp(weights()), 3), least));
      const Tensor columns = exp(weights());
      logits = logits - log(maximum(causal ? cumulative_sum(columns, 2) : sum(columns, 2), least));
    }
    return exp(weights());
  }

  /// 0 or -inf for the keys of each block: [1 or B H, n, 1 or b, 2 b].
  Tensor bias_of(const Tensor& kept, const Tensor& q, bool causal, bool padded) const {
    const int64_t B = q.extent(0), H = q.extent(1), n = q.extent(2), b = q.extent(3);
    // A mixed key is real if any block has that position, and the first block has every position that any
    // block has. When causal it is real if there is an earlier block, which is always full.
    const Tensor own = transpose(kept, 3, 4);  // [B or 1, 1, n, 1, b]
    Tensor other = expand(slice(own, 2, 0, 1), own.shape());
    if (causal) {
      std::vector<float> later(static_cast<size_t>(n), 1);
      later[0] = 0;
      other = other * constant_table<float>(later, Shape{1, 1, n, 1, 1}, q.device(), q.dtype());
    }
    Tensor seen = concat(std::vector<Tensor>{other, own}, 4);
    if (causal) {
      std::vector<float> before(static_cast<size_t>(2 * b * b), 1);
      for (int64_t i = 0; i < b * b; ++i)
        before[static_cast<size_t>(i / b * 2 * b + b + i % b)] = i % b <= i / b ? 1 : 0;
      seen = seen * constant_table<float>(before, Shape{1, 1, 1, b, 2 * b}, q.device(), q.dtype());
    }
    const Tensor bias = where(cast(seen, DType::u8), Tensor::zeros(seen.shape(), q.dtype(), q.device()),
                              -std::numeric_limits<double>::infinity());
    if (!padded) return reshape(bias, Shape{1, n, seen.extent(3), 2 * b});
    return reshape(expand(bias, Shape{B, H, n, seen.extent(3), 2 * b}),
                   Shape{B * H, n, seen.extent(3), 2 * b});
  }

  SinkhornOptions options_;
  Tensor sort_;
};

}  // namespace

Variant variant::sinkhorn() {
  return describe<SinkhornAttention, SinkhornOptions>(
      {.name = "sinkhorn",
       .paper = "Tay et al. 2020",
       .idea =
           "A doubly stochastic matrix sorts blocks; a query sees its own and the one sorted to its place.",
       .time = {.length = 1.5, .width = 1},
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .last_row = false,
       .map = MapKind::signed_,
       .from = 1024});
}

}  // namespace heed

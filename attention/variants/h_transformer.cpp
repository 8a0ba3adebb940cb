// H-Transformer-1D: hierarchical attention, exact between neighbours, between clusters further away. Zhu and
// Soricut 2021, "H-Transformer-1D: fast one-dimensional hierarchical attention for sequences", arXiv
// 2107.11906; numerics as in flaxformer's h_attention.
//
//   y_i = sum_j e_ij v_j / sum_j e_ij,      e_ij = exp(Q_l[i / 2^l] . K_l[j / 2^l] / sqrt(d)),  l = l(i, j)
//
// Level 0 holds tokens, level l clusters of 2^l tokens. Tokens in the same block of Nr or in neighbouring
// blocks attend exactly; other pairs use the lowest level on which the blocks of their clusters are
// neighbours, so each pair counts once. K_l is a mean; Q_l is a mean or, when causal, the first query of the
// cluster. Levels are combined by their log-sum-exp. Means are over children that are not padding; when
// causal, padding counts as zero there, which no real query attends to.
//
// Parameters, with bias=true: bias [levels, H, 4 Nr - 1], added to the scores: on each level, column
// j' - i' + 2 Nr - 1 for clusters i' and j'. Its levels are those of the longest input.
#include <cmath>

#include "heed/attention/support/clusters.h"
#include "heed/attention/support/tree.h"
#include "heed/attention/variant.h"
#include "heed/core/constant_table.h"
#include "heed/core/kernels/content/tree.h"
#include "heed/core/parallel/recent_values.h"

namespace heed {
namespace {

struct HTransformerOptions {
  int64_t block = 16;
  bool bias = false;
  double scale = 0;
  void fields(Fields& f) {
    f("block", block, {2, max_block}, "Nr: tokens or clusters of a block; even");
    f("bias", bias, "a trained bias for each level and distance");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

/// Sums over clusters, and for each level the first query of its current cluster.
struct ClusterCache final : AttentionCache {
  TreeCache tree;
  Tensor firsts;  ///< [B, H, levels, d]
  void fields(Fields& f) override {
    tree.fields(f);
    f("firsts", firsts);
  }
};

class HTransformer final : public MultiHeadAttention {
 public:
  HTransformer(const AttentionConfig& config, const HTransformerOptions& o, Rng& rng)
      : MultiHeadAttention(config, rng),
        block_(o.block),
        scale_(o.scale != 0 ? o.scale : 1 / std::sqrt(static_cast<double>(head_dim()))) {
    if (o.block % 2 != 0) fail("attention 'h_transformer': block = ", o.block, ". It must be even.");
    if (!o.bias) return;
    if (config.max_length < 1)
      fail(
          "attention 'h_transformer': a bias has a row for each level of the longest input, which is not "
          "known "
          "here. Set max_length, or bias=false.");
    const int64_t levels = Clusters{.block = block_}.height(config.max_length) + 1;
    bias_ = constant_parameter(Shape{levels, config.heads, 4 * block_ - 1}, 0);
  }
  void fields(Fields& f) override {
    MultiHeadAttention::fields(f);
    if (bias_) f("bias", bias_);
  }
  std::unique_ptr<AttentionCache> new_cache() const override { return std::make_unique<ClusterCache>(); }

 private:
  Tensor attend(Heads heads, const AttentionInput& input) override;
  Tensor full_call(const Clusters& clusters, const Tensor& q, const ClusterLevels& levels, bool padded,
                   Rng* rng);
  Tensor level_attention(const Tensor& queries, const Tensor& keys, const Tensor& values,
                         const std::shared_ptr<const kernel::Pattern>& pattern, Rng* rng) const;
  Tensor step(Heads heads, const AttentionInput& input);

  kernel::Pattern make_pattern(const Clusters& clusters, const ClusterLevels& levels) const;

  /// The index of a cluster modulo three blocks: unique among the keys of a query, which are in three
  /// adjacent blocks.
  int32_t place(int64_t index) const { return static_cast<int32_t>(index % (3 * block_)); }
  int32_t query_place(int64_t level, int64_t index) const {
    return static_cast<int32_t>(level * 3 * block_) + place(index);
  }
  Tensor with_bias(const Tensor& queries, const std::vector<int32_t>& query_places) const;
  Tensor with_places(const Tensor& keys, const std::vector<int32_t>& places) const;

  int64_t block_;
  double scale_;
  RecentValues<std::pair<int64_t, bool>, kernel::Pattern> patterns_;  // by number of clusters, and causal
  Tensor bias_;                                                       // [levels, H, 4 Nr - 1] or empty
};

namespace {

/// x [B, H, n, d] with rows of a table [1, 1 or H, T, w] appended as columns: [B, H, n, d + w].
Tensor beside(const Tensor& x, const Tensor& table, const std::vector<int32_t>& rows) {
  const Tensor ids =
      constant_table<int32_t>(rows, Shape{1, 1, static_cast<int64_t>(rows.size())}, x.device());
  Shape wide = x.shape();
  wide[3] = table.extent(3);
  return concat(std::vector<Tensor>{x, expand(gather_rows(table, ids), wide)}, 3);
}

}  // namespace

/// Queries with the bias of each place() of a key appended as columns; `query_places`: query_place() of each
/// query.
Tensor HTransformer::with_bias(const Tensor& queries, const std::vector<int32_t>& query_places) const {
  const int64_t levels = bias_.extent(0), heads = bias_.extent(1), distances = bias_.extent(2),
                period = 3 * block_;
  std::vector<int32_t> cells;
  for (int64_t level = 0; level < levels; ++level) {
    for (int64_t i = 0; i < period; ++i) {
      for (int64_t j = 0; j < period; ++j) {
        // The key's block is the query's own or adjacent to it.
        int64_t blocks = j / block_ - i / block_;
        blocks += blocks > 1 ? -3 : blocks < -1 ? 3 : 0;
        const int64_t away = blocks * block_ + j % block_ - i % block_;
        cells.push_back(static_cast<int32_t>(level * distances + away + 2 * block_ - 1));
      }
    }
  }
  const Tensor all = reshape(transpose(bias_, 0, 1), Shape{1, heads, levels * distances, 1});
  const Tensor ids =
      constant_table<int32_t>(cells, Shape{1, 1, static_cast<int64_t>(cells.size())}, bias_.device());
  const Tensor table = reshape(gather_rows(all, ids), Shape{1, heads, levels * period, period});
  return beside(queries, table * (1 / scale_), query_places);
}

/// Keys with a one-hot vector of their place() appended as columns, which selects the bias in q . k.
Tensor HTransformer::with_places(const Tensor& keys, const std::vector<int32_t>& places) const {
  return beside(keys, identity(3 * block_, keys), places);
}

kernel::Pattern HTransformer::make_pattern(const Clusters& clusters, const ClusterLevels& levels) const {
  kernel::Pattern pattern;
  pattern.queries = pattern.keys = levels.keys.extent(2);
  pattern.first.push_back(0);
  for (size_t level = 0; level < levels.first.size(); ++level) {
    const auto base = static_cast<int32_t>(levels.first[level]);
    for (int64_t index = 0; index < levels.count(level); ++index) {
      for (const auto& run : clusters.attended(static_cast<int64_t>(level), index, levels.count(level))) {
        if (run.begin < run.end) pattern.runs.push_back({run.begin + base, run.end + base});
      }
      pattern.first.push_back(static_cast<int64_t>(pattern.runs.size()));
    }
  }
  return pattern;
}

/// Attention of each query on its level: weighted values, the weighted count (last column of `values`), and
/// the log-sum-exp. Dropout applies to the weights of values but not of the count, which is the divisor.
Tensor HTransformer::level_attention(const Tensor& queries, const Tensor& keys, const Tensor& values,
                                     const std::shared_ptr<const kernel::Pattern>& pattern, Rng* rng) const {
  const kernel::PatternParams plain{.scale = scale_, .pattern = pattern};
  if (rng == nullptr || config().dropout == 0)
    return pattern_attention_with_sums(queries, keys, values, plain);
  kernel::PatternParams dropped = plain;
  dropped.dropout = config().dropout;
  dropped.draw = rng->next();
  const int64_t width = values.extent(3) - 1;
  return concat(std::vector<Tensor>{pattern_attention(queries, keys, slice(values, 3, 0, width), dropped),
                                    pattern_attention_with_sums(queries, keys,
                                                                slice(values, 3, width, width + 1), plain)},
                3);
}

Tensor HTransformer::full_call(const Clusters& clusters, const Tensor& q, const ClusterLevels& levels,
                               bool padded, Rng* rng) {
  Tensor queries = cluster_queries(clusters, q, levels), keys = levels.keys;
  if (bias_) {
    std::vector<int32_t> query_places, key_places;
    for (size_t level = 0; level < levels.first.size(); ++level) {
      for (int64_t index = 0; index < levels.count(level); ++index) {
        query_places.push_back(query_place(static_cast<int64_t>(level), index));
        key_places.push_back(place(index));
      }
    }
    queries = with_bias(queries, query_places);
    keys = with_places(keys, key_places);
  }
  if (padded && levels.present) {  // an extra column masks clusters that are all padding
    const Shape column{q.extent(0), q.extent(1), keys.extent(2), 1};
    queries = concat(std::vector<Tensor>{queries, Tensor::full(column, 1, q.dtype(), q.device())}, 3);
    keys = concat(std::vector<Tensor>{keys, expand(affine(levels.present, 1e30, -1e30), column)}, 3);
  }
  const auto pattern =
      patterns_.get({levels.keys.extent(2), clusters.causal}, [&] { return make_pattern(clusters, levels); });
  const Tensor all = level_attention(queries, keys, levels.values, pattern, rng);
  // From the coarsest level down: the result of a cluster is added to those of both its children.
  Gathered total;
  for (size_t level = levels.first.size(); level-- > 0;) {
    const int64_t count = levels.count(level);
    const Gathered own = gathered(slice(all, 2, levels.first[level], levels.first[level] + count));
    if (!total.sums) {
      total = own;
      continue;
    }
    const auto twice = [count](const Tensor& x) {
      const int64_t half = x.extent(2), width = x.extent(3);
      const Tensor pairs = expand(reshape(x, Shape{x.extent(0), x.extent(1), half, 1, width}),
                                  Shape{x.extent(0), x.extent(1), half, 2, width});
      return slice(reshape(pairs, Shape{x.extent(0), x.extent(1), 2 * half, width}), 2, 0, count);
    };
    const Tensor above = twice(total.most), max_sum = maximum(above, own.most);
    total = {twice(total.sums) * exp(above - max_sum) + own.sums * exp(own.most - max_sum), max_sum};
  }
  return per_count(total.sums);
}

Tensor HTransformer::step(Heads heads, const AttentionInput& input) {
  auto* cache = cache_of<ClusterCache>(input);
  if (!input.mask.is_causal())
    fail("attention 'h_transformer': steps look back only. Give all keys in one call instead of a memory.");
  if (input.context.recorder != nullptr)
    fail(
        "attention: sums do not tell single keys apart, so a step with a memory has no map. Look at a full "
        "call.");
  if (heads.k && heads.k.extent(2) != heads.q.extent(2))
    fail("attention 'h_transformer': ", heads.q.extent(2), " queries with ", heads.k.extent(2),
         " keys. Give each query its key.");
  const int64_t before = cache->length, fresh = heads.q.extent(2);
  const TreeNodes nodes = cache->tree.append_to_cache(heads, [](const Tensor&, int64_t) { return Tensor(); });
  const int64_t length = cache->length = cache->tree.length;
  if (length != before + fresh)
    fail("attention 'h_transformer': ", fresh, " queries without their keys. Give each query its key.");
  // While gradients are recorded, cluster levels are rebuilt; otherwise the tree holds them as sums.
  const bool taped = static_cast<bool>(cache->tree.taped_keys);
  const Clusters clusters{.block = block_, .causal = true};
  const ClusterLevels levels = taped ? cluster_levels(clusters, heads.k, heads.v, {}) : ClusterLevels{};
  const int64_t high = clusters.height(length) + 1;
  auto pattern = std::make_shared<kernel::Pattern>();
  pattern->queries = fresh * high;
  pattern->keys = taped ? levels.keys.extent(2) : kernel::tree_rows(length);
  pattern->first.push_back(0);
  const int64_t kept = cache->firsts ? cache->firsts.extent(2) : 0;
  // The row of the first query of the cluster of position i.
  const auto first_of = [&](int64_t level, int64_t i) {
    const int64_t begin = i >> level << level;
    return static_cast<int32_t>(begin >= before ? kept + begin - before : level - 1);
  };
  std::vector<int32_t> query_rows, firsts;
  std::vector<int32_t> query_places, key_places,
      key_rows;  // with a bias: query_place() of queries, place() of keys, and their rows
  std::vector<double> shares;
  for (int64_t i = before; i < length; ++i) {
    for (int64_t level = 0; level < high; ++level) {
      const size_t own = pattern->runs.size();
      for (const auto& run : clusters.attended(level, i >> level, length)) {
        for (int32_t n = run.begin; n < run.end; ++n) {
          auto row = static_cast<int32_t>(taped ? levels.first[static_cast<size_t>(level)] + n
                                                : kernel::TreeNode{level, n}.row());
          if (bias_) {
            key_rows.push_back(row);
            key_places.push_back(place(n));
            row = static_cast<int32_t>(key_rows.size()) - 1;
          }
          pattern->runs.push_back({row, row + 1});
        }
      }
      pattern->first.push_back(static_cast<int64_t>(pattern->runs.size()));
      query_rows.push_back(pattern->runs.size() > own ? first_of(level, i) : -1);
      shares.push_back(taped ? 1 : std::ldexp(1.0, static_cast<int>(-level)));
      if (bias_) query_places.push_back(query_place(level, i >> level));
    }
  }
  for (int64_t level = 1; level < high; ++level) firsts.push_back(first_of(level, length - 1));
  const Tensor source = kept > 0 ? concat(std::vector<Tensor>{cache->firsts, heads.q}, 2) : heads.q;
  const auto picked = [&](const std::vector<int32_t>& ids) {
    const auto count = static_cast<int64_t>(ids.size());
    return gather_rows(source, constant_table<int32_t>(ids, Shape{1, 1, count}, source.device()));
  };
  const Tensor share =
      constant_table<double>(shares, Shape{1, 1, fresh * high, 1}, source.device(), source.dtype());
  Tensor keys = taped ? levels.keys : view::slice(nodes.keys, 2, 0, pattern->keys);
  Tensor values = taped ? levels.values : view::slice(nodes.values, 2, 0, pattern->keys);
  Tensor queries = picked(query_rows) * share;
  if (bias_) {  // append places only to the keys in use
    const Tensor ids =
        constant_table<int32_t>(key_rows, Shape{1, 1, static_cast<int64_t>(key_rows.size())}, keys.device());
    pattern->keys = static_cast<int64_t>(key_rows.size());
    queries = with_bias(queries, query_places);
    keys = with_places(gather_rows(keys, ids), key_places);
    values = gather_rows(values, ids);
  }
  const Tensor all = level_attention(queries, keys, values, pattern, input.context.rng);
  cache->firsts = firsts.empty() ? Tensor() : picked(firsts);
  const Gathered own =
      gathered(reshape(all, Shape{all.extent(0), all.extent(1), fresh, high, all.extent(3)}));
  const Tensor total = sum(own.sums * exp(own.most - max(own.most, 3)), 3);
  return per_count(reshape(total, Shape{all.extent(0), all.extent(1), fresh, total.extent(4)}));
}

Tensor HTransformer::attend(Heads heads, const AttentionInput& input) {
  if (bias_) {
    const int64_t reached =
        (input.cache != nullptr ? input.cache->length : 0) + (heads.k ? heads.k.extent(2) : 0);
    if (Clusters{.block = block_}.height(reached) >= bias_.extent(0))
      fail("attention 'h_transformer': ", reached, " keys, but the bias is there for ", bias_.extent(0),
           " levels of clusters. Raise max_length.");
  }
  if (input.mask.bias())
    fail("attention: clusters of tokens take no bias on their scores. Leave the bias out, or use softmax.");
  const int64_t before = input.cache != nullptr ? input.cache->length : 0;
  const bool causal = input.mask.is_causal();
  Tensor kept;
  const auto counted = [&](const Tensor& v) {
    Shape column = v.shape();
    column[-1] = 1;
    const Tensor wide = concat(std::vector<Tensor>{v, Tensor::full(column, 1, v.dtype(), v.device())}, 3);
    return kept ? wide * kept : wide;
  };
  if (heads.k) {
    kept = input.mask.padding_mask(heads.k, before);
    if (kept) heads.k = heads.k * kept;
    if (kept && !causal) heads.q = heads.q * kept;
    heads.v = counted(heads.v);
  }
  if (input.cache != nullptr) return step(std::move(heads), input);
  const int64_t length = heads.k.extent(2);
  if (heads.q.extent(2) != length)
    fail("attention 'h_transformer': ", heads.q.extent(2), " queries for ", length,
         " keys. Both are cut into the same blocks, so give as many.");
  const Clusters clusters{.block = block_, .causal = causal};
  const auto run = [&](const Tensor& values, Rng* rng) {
    return full_call(clusters, heads.q, cluster_levels(clusters, heads.k, values, kept),
                     static_cast<bool>(kept), rng);
  };
  if (input.context.recorder != nullptr) {
    const NoGrad no_grad;
    const Shape whole{heads.q.extent(0), heads.q.extent(1), length, length};
    const Tensor values = counted(expand(identity(length, heads.q), whole));
    input.context.recorder->record(*this, run(values, nullptr));
  }
  return run(heads.v, input.context.rng);
}

}  // namespace

Variant variant::h_transformer() {
  return describe<HTransformer, HTransformerOptions>(
      {.name = "h_transformer",
       .paper = "Zhu and Soricut 2021",
       .idea = "Neighbours meet as tokens, what is farther as means of ever larger clusters.",
       .time = {.length = 1, .width = 1},
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .cross = false,
       .steps = true,
       .last_row = false,
       .map = MapKind::exact});
}

}  // namespace heed

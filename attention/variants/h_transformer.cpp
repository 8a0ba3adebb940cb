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
#include "heed/core/kernels/content/tree_node.h"
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

/// Sums over clusters, and for each level above 0 the first query of its current cluster.
struct ClusterCache final : AttentionCache {
  TreeCache tree;
  Tensor first_queries;  ///< [B, H, levels - 1, d]; empty with one level
  void fields(Fields& f) override {
    tree.fields(f);
    f("firsts", first_queries);
  }
};

class HTransformer final : public MultiHeadAttention {
 public:
  HTransformer(const AttentionConfig& config, const HTransformerOptions& o, Rng& rng)
      : MultiHeadAttention(config, rng), block_(o.block), scale_(attention_scale(o.scale, head_dim())) {
    if (o.block % 2 != 0) fail("attention 'h_transformer': block = ", o.block, ". It must be even.");
    if (!o.bias) return;
    if (config.max_length < 1)
      fail(
          "attention 'h_transformer': a bias has a row for each level of the longest input, which is not "
          "known here. Set max_length, or bias=false.");
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
  /// Self-attention of a whole sequence; `has_padding` masks clusters that are all padding.
  Tensor attend_to_all(const Clusters& clusters, const Tensor& q, const ClusterLevels& levels,
                       bool has_padding, Rng* rng);
  Tensor level_attention(const Tensor& queries, const Tensor& keys, const Tensor& values,
                         const std::shared_ptr<const kernel::Pattern>& pattern, Rng* rng) const;
  Tensor attend_to_cache(Heads heads, const AttentionInput& input);

  /// The pairs of clusters that attend_to_all() computes: rows and keys are the clusters of all levels.
  static kernel::Pattern make_pattern(const Clusters& clusters, const ClusterLevels& levels);

  /// The index of a cluster modulo three blocks, which identifies a key of a query: its keys are in three
  /// adjacent blocks.
  int32_t slot(int64_t index) const { return static_cast<int32_t>(index % (3 * block_)); }
  /// The row of a cluster in with_bias()'s table: slot() of the cluster, counted on through the levels.
  int32_t query_slot(int64_t level, int64_t index) const {
    return static_cast<int32_t>(level * 3 * block_) + slot(index);
  }
  Tensor with_bias(const Tensor& queries, const std::vector<int32_t>& query_slots) const;
  Tensor with_slots(const Tensor& keys, const std::vector<int32_t>& slots) const;

  int64_t block_;
  double scale_;
  RecentValues<std::pair<int64_t, bool>, kernel::Pattern> patterns_;  // by number of clusters, and causal
  Tensor bias_;                                                       // [levels, H, 4 Nr - 1] or empty
};

namespace {

/// Row indices i32 [1, 1, n] on the device of x.
Tensor row_ids(const std::vector<int32_t>& rows, const Tensor& x) {
  return constant_table<int32_t>(rows, Shape{1, 1, static_cast<int64_t>(rows.size())}, x.device());
}

/// x [B, H, n, d] with rows of a table [1, 1 or H, T, w] appended as columns: [B, H, n, d + w].
Tensor with_columns(const Tensor& x, const Tensor& table, const std::vector<int32_t>& rows) {
  Shape wide = x.shape();
  wide[3] = table.extent(3);
  return concat(std::vector<Tensor>{x, expand(gather_rows(table, row_ids(rows, x)), wide)}, 3);
}

/// Each row of x [B, H, n, w] twice, for both children of a cluster, cut to `count` rows: [B, H, count, w].
Tensor repeated_for_children(const Tensor& x, int64_t count) {
  const int64_t B = x.extent(0), H = x.extent(1), n = x.extent(2), width = x.extent(3);
  const Tensor pairs = expand(reshape(x, Shape{B, H, n, 1, width}), Shape{B, H, n, 2, width});
  return slice(reshape(pairs, Shape{B, H, 2 * n, width}), 2, 0, count);
}

}  // namespace

/// Queries with 3 Nr columns appended: the bias that a key of each slot() gets, divided by the scale.
/// query_slots has the query_slot() of each query.
Tensor HTransformer::with_bias(const Tensor& queries, const std::vector<int32_t>& query_slots) const {
  const int64_t levels = bias_.extent(0), heads = bias_.extent(1), distances = bias_.extent(2),
                period = 3 * block_;
  std::vector<int32_t> entries;  // entries of the bias, for each level, slot of the query and slot of the key
  for (int64_t level = 0; level < levels; ++level) {
    for (int64_t i = 0; i < period; ++i) {
      for (int64_t j = 0; j < period; ++j) {
        // Slots wrap around after three blocks, and the key's block is the query's own or adjacent to it.
        int64_t block_distance = j / block_ - i / block_;
        block_distance += block_distance > 1 ? -3 : block_distance < -1 ? 3 : 0;
        const int64_t distance = block_distance * block_ + j % block_ - i % block_;
        entries.push_back(static_cast<int32_t>(level * distances + distance + 2 * block_ - 1));
      }
    }
  }
  const Tensor all = reshape(transpose(bias_, 0, 1), Shape{1, heads, levels * distances, 1});
  const Tensor table =
      reshape(gather_rows(all, row_ids(entries, bias_)), Shape{1, heads, levels * period, period});
  return with_columns(queries, table * (1 / scale_), query_slots);
}

/// Keys with 3 Nr columns appended: 1 in the column of their slot(), else 0. In q . k that selects the bias.
Tensor HTransformer::with_slots(const Tensor& keys, const std::vector<int32_t>& slots) const {
  return with_columns(keys, identity(3 * block_, keys), slots);
}

kernel::Pattern HTransformer::make_pattern(const Clusters& clusters, const ClusterLevels& levels) {
  kernel::Pattern pattern;
  pattern.queries = pattern.keys = levels.keys.extent(2);
  pattern.first.push_back(0);
  for (size_t level = 0; level < levels.first.size(); ++level) {
    const auto first_row = static_cast<int32_t>(levels.first[level]);
    for (int64_t index = 0; index < levels.count(level); ++index) {
      for (const auto& run : clusters.attended(static_cast<int64_t>(level), index, levels.count(level))) {
        if (run.begin < run.end) pattern.runs.push_back({run.begin + first_row, run.end + first_row});
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

Tensor HTransformer::attend_to_all(const Clusters& clusters, const Tensor& q, const ClusterLevels& levels,
                                   bool has_padding, Rng* rng) {
  Tensor queries = cluster_queries(clusters, q, levels), keys = levels.keys;
  if (bias_) {
    std::vector<int32_t> query_slots, key_slots;
    for (size_t level = 0; level < levels.first.size(); ++level) {
      for (int64_t index = 0; index < levels.count(level); ++index) {
        query_slots.push_back(query_slot(static_cast<int64_t>(level), index));
        key_slots.push_back(slot(index));
      }
    }
    queries = with_bias(queries, query_slots);
    keys = with_slots(keys, key_slots);
  }
  if (has_padding && levels.present) {  // an extra column of q . k masks clusters that are all padding
    const Shape column{q.extent(0), q.extent(1), keys.extent(2), 1};
    queries = concat(std::vector<Tensor>{queries, Tensor::full(column, 1, q.dtype(), q.device())}, 3);
    keys = concat(std::vector<Tensor>{keys, expand(affine(levels.present, 1e30, -1e30), column)}, 3);
  }
  const auto pattern =
      patterns_.get({levels.keys.extent(2), clusters.causal}, [&] { return make_pattern(clusters, levels); });
  const Tensor all = level_attention(queries, keys, levels.values, pattern, rng);
  // From the coarsest level down: the sums of a cluster are added to those of both its children.
  ScaledSums total;
  for (size_t level = levels.first.size(); level-- > 0;) {
    const int64_t count = levels.count(level);
    const ScaledSums of_level = scaled_sums(slice(all, 2, levels.first[level], levels.first[level] + count));
    if (!total.sums) {
      total = of_level;
      continue;
    }
    const Tensor coarser = repeated_for_children(total.log_scale, count),
                 log_scale = maximum(coarser, of_level.log_scale);
    total = {.sums = repeated_for_children(total.sums, count) * exp(coarser - log_scale) +
                     of_level.sums * exp(of_level.log_scale - log_scale),
             .log_scale = log_scale};
  }
  return divided_by_count(total.sums);
}

Tensor HTransformer::attend_to_cache(Heads heads, const AttentionInput& input) {
  auto* cache = cache_of<ClusterCache>(input);
  if (!input.mask.is_causal())
    fail(
        "attention 'h_transformer': it decodes step by step only with a causal mask. Give all keys in one "
        "call instead of a cache.");
  refuse_map_of_cached_call(input);
  if (heads.k)
    check_equal_lengths("h_transformer", heads.q.extent(2), heads.k.extent(2), "Give each query its key.");
  const int64_t first_position = cache->length, num_queries = heads.q.extent(2);
  const TreeNodes nodes = cache->tree.append_to_cache(heads, [](const Tensor&, int64_t) { return Tensor(); });
  const int64_t length = cache->length = cache->tree.length;
  if (length != first_position + num_queries)
    fail("attention 'h_transformer': ", num_queries, " queries without their keys. Give each query its key.");
  // While gradients are recorded, cluster levels are rebuilt; otherwise the tree holds them as sums.
  const bool has_history = static_cast<bool>(cache->tree.recorded_keys);
  const Clusters clusters{.block = block_, .causal = true};
  const ClusterLevels levels = has_history ? cluster_levels(clusters, heads.k, heads.v, {}) : ClusterLevels{};
  const int64_t num_levels = clusters.height(length) + 1;
  auto pattern = std::make_shared<kernel::Pattern>();
  pattern->queries = num_queries * num_levels;
  pattern->keys = has_history ? levels.keys.extent(2) : kernel::tree_rows(length);
  pattern->first.push_back(0);
  const int64_t num_cached = cache->first_queries ? cache->first_queries.extent(2) : 0;
  const Tensor source =
      num_cached > 0 ? concat(std::vector<Tensor>{cache->first_queries, heads.q}, 2) : heads.q;
  // The row of `source` with the first query of the cluster of position i on a level.
  const auto first_query_row = [&](int64_t level, int64_t i) {
    const int64_t begin = i >> level << level;
    return static_cast<int32_t>(begin >= first_position ? num_cached + begin - first_position : level - 1);
  };
  // The row of keys and values with cluster n of a level.
  const auto cluster_row = [&](int64_t level, int64_t n) {
    return static_cast<int32_t>(has_history ? levels.first[static_cast<size_t>(level)] + n
                                            : kernel::TreeNode{level, n}.row());
  };
  // Each position has one query per level, which attends to clusters of that level; a cluster is one row of
  // the tree, or with a bias one entry of key_rows.
  std::vector<int32_t> query_rows, query_slots, key_rows, key_slots;
  std::vector<double> factors;  // 1 / number of keys in a cluster, whose node holds their sum
  for (int64_t i = first_position; i < length; ++i) {
    for (int64_t level = 0; level < num_levels; ++level) {
      const size_t first_run = pattern->runs.size();
      for (const auto& run : clusters.attended(level, i >> level, length)) {
        for (int32_t n = run.begin; n < run.end; ++n) {
          int32_t row = cluster_row(level, n);
          if (bias_) {
            key_rows.push_back(row);
            key_slots.push_back(slot(n));
            row = static_cast<int32_t>(key_rows.size()) - 1;
          }
          pattern->runs.push_back({row, row + 1});
        }
      }
      pattern->first.push_back(static_cast<int64_t>(pattern->runs.size()));
      query_rows.push_back(pattern->runs.size() > first_run ? first_query_row(level, i) : -1);
      factors.push_back(has_history ? 1 : std::ldexp(1.0, static_cast<int>(-level)));
      if (bias_) query_slots.push_back(query_slot(level, i >> level));
    }
  }
  const auto source_rows = [&](const std::vector<int32_t>& rows) {
    return gather_rows(source, row_ids(rows, source));
  };
  const Tensor factor = constant_table<double>(factors, Shape{1, 1, num_queries * num_levels, 1},
                                               source.device(), source.dtype());
  Tensor keys = has_history ? levels.keys : view::slice(nodes.keys, 2, 0, pattern->keys);
  Tensor values = has_history ? levels.values : view::slice(nodes.values, 2, 0, pattern->keys);
  Tensor queries = source_rows(query_rows) * factor;
  if (bias_) {  // slots are appended only to the keys in use
    const Tensor ids = row_ids(key_rows, keys);
    pattern->keys = static_cast<int64_t>(key_rows.size());
    queries = with_bias(queries, query_slots);
    keys = with_slots(gather_rows(keys, ids), key_slots);
    values = gather_rows(values, ids);
  }
  const Tensor all = level_attention(queries, keys, values, pattern, input.context.rng);
  std::vector<int32_t> first_rows;  // rows of `source` with the first query of each level's current cluster
  for (int64_t level = 1; level < num_levels; ++level)
    first_rows.push_back(first_query_row(level, length - 1));
  cache->first_queries = first_rows.empty() ? Tensor() : source_rows(first_rows);
  const ScaledSums by_level =
      scaled_sums(reshape(all, Shape{all.extent(0), all.extent(1), num_queries, num_levels, all.extent(3)}));
  const Tensor total = sum(by_level.sums * exp(by_level.log_scale - max(by_level.log_scale, 3)), 3);
  return divided_by_count(reshape(total, Shape{all.extent(0), all.extent(1), num_queries, total.extent(4)}));
}

Tensor HTransformer::attend(Heads heads, const AttentionInput& input) {
  if (bias_) {
    const int64_t num_keys =
        (input.cache != nullptr ? input.cache->length : 0) + (heads.k ? heads.k.extent(2) : 0);
    if (Clusters{.block = block_}.height(num_keys) >= bias_.extent(0))
      fail("attention 'h_transformer': ", num_keys, " keys, but the bias has only ", bias_.extent(0),
           " levels of clusters. Raise max_length.");
  }
  refuse_bias(input, "a cluster of tokens");
  const int64_t first_key = input.cache != nullptr ? input.cache->length : 0;
  const bool causal = input.mask.is_causal();
  Tensor kept;  // 0 at padding, 1 elsewhere: [B, 1, Tk, 1]; empty without padding
  // Values with a column of ones, which counts keys; both are 0 at padding.
  const auto with_count = [&](const Tensor& v) {
    Shape column = v.shape();
    column[-1] = 1;
    const Tensor joined = concat(std::vector<Tensor>{v, Tensor::full(column, 1, v.dtype(), v.device())}, 3);
    return kept ? joined * kept : joined;
  };
  if (heads.k) {
    kept = input.mask.padding_mask(heads.k, first_key);
    if (kept) heads.k = heads.k * kept;
    if (kept && !causal) heads.q = heads.q * kept;
    heads.v = with_count(heads.v);
  }
  if (input.cache != nullptr) return attend_to_cache(std::move(heads), input);
  const int64_t length = heads.k.extent(2);
  check_equal_lengths("h_transformer", heads.q.extent(2), length,
                      "Both are cut into the same blocks, so give as many.");
  const Clusters clusters{.block = block_, .causal = causal};
  const auto attended = [&](const Tensor& values, Rng* rng) {
    return attend_to_all(clusters, heads.q, cluster_levels(clusters, heads.k, values, kept),
                         static_cast<bool>(kept), rng);
  };
  record_map(input, [&] { return attended(with_count(identity_values(heads.q)), nullptr); });
  return attended(heads.v, input.context.rng);
}

}  // namespace

Variant variant::h_transformer() {
  return describe<HTransformer, HTransformerOptions>(
      {.name = "h_transformer",
       .paper = "Zhu and Soricut 2021",
       .summary =
           "Exact attention between neighbours, and between means of ever larger clusters further away.",
       .time = {.length = 1, .width = 1},
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .steps = true,
       .last_row = false,
       .map = MapKind::exact});
}

}  // namespace heed

// Hierarchical attention. Zhu and Soricut 2021, "H-Transformer-1D: fast one-dimensional hierarchical
// attention for sequences", arXiv 2107.11906; numerics as in flaxformer's h_attention.
//
//   y_i = sum_j e_ij v_j / sum_j e_ij,      e_ij = exp(Q_l[i / 2^l] . K_l[j / 2^l] / sqrt(d)),  l = l(i, j)
//
// Level 0 holds tokens, level l their clusters of 2^l. Tokens in one block of Nr or in neighbours meet
// exactly; what is farther meets on the first level on which the blocks of its clusters are neighbours, so
// each pair meets once. K_l is a mean, Q_l a mean or, looking back only, the first of its cluster. Levels
// meet by the logarithms of their sums. A mean runs over children that are not padding; looking back only,
// padding counts as zero there, which no real query sees.
//
// Parameters, with bias=true: bias [levels, H, 4 Nr - 1], added to the scores: on each level, column
// j' - i' + 2 Nr - 1 of clusters i' and j'. It is there for the levels of the longest input.
#include <cmath>

#include "attention/clusters.h"
#include "attention/tree.h"
#include "attention/variant.h"
#include "core/kernels/tree.h"
#include "core/table.h"

namespace heed {
namespace {

struct Options {
  int64_t block = 16;
  bool bias = false;
  double scale = 0;
  void fields(Fields& f) {
    f("block", block, "Nr: tokens or clusters of a block; even");
    f("bias", bias, "a trained bias for each level and distance");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

/// Sums over clusters, and for each level the query that its present cluster began with.
struct ClusterMemory final : Memory {
  TreeMemory tree;
  Tensor firsts;  ///< [B, H, levels, d]
  void fields(Fields& f) override {
    tree.fields(f);
    f("firsts", firsts);
  }
};

class HTransformer final : public HeadedAttention {
 public:
  HTransformer(const AttentionConfig& config, const Options& o, Rng& rng)
      : HeadedAttention(config, rng),
        block_(o.block),
        scale_(o.scale != 0 ? o.scale : 1 / std::sqrt(static_cast<double>(head_width()))) {
    if (o.block < 2 || o.block % 2 != 0)
      fail("attention 'h_transformer': block = ", o.block, ". It must be even and at least 2.");
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
    HeadedAttention::fields(f);
    if (bias_) f("bias", bias_);
  }
  std::unique_ptr<Memory> start() const override { return std::make_unique<ClusterMemory>(); }

 private:
  Tensor attend(Heads heads, const Attend& call) override;
  Tensor at_once(const Clusters& clusters, const Tensor& q, const ClusterLevels& levels, bool padded,
                 Rng* noise);
  Tensor looked(const Tensor& queries, const Tensor& keys, const Tensor& values,
                const std::shared_ptr<const kernel::Pattern>& pattern, Rng* noise) const;
  Tensor by_steps(Heads heads, const Attend& call);

  std::shared_ptr<const kernel::Pattern> pattern(const Clusters& clusters, const ClusterLevels& levels);

  /// A cluster's place among three blocks of its level: those that meet are in three blocks side by side,
  /// which differ in it.
  int32_t place(int64_t index) const { return static_cast<int32_t>(index % (3 * block_)); }
  int32_t asking(int64_t level, int64_t index) const {
    return static_cast<int32_t>(level * 3 * block_) + place(index);
  }
  Tensor with_bias(const Tensor& queries, const std::vector<int32_t>& asked) const;
  Tensor with_places(const Tensor& keys, const std::vector<int32_t>& places) const;

  int64_t block_;
  double scale_;
  std::shared_ptr<const kernel::Pattern> last_;  // of the last length asked for
  bool last_causal_ = false;
  Tensor bias_;  // [levels, H, 4 Nr - 1] or empty
};

namespace {

/// x [B, H, n, d] and rows of a table [1, 1 or H, T, w] beside it.
Tensor beside(const Tensor& x, const Tensor& table, const std::vector<int32_t>& rows) {
  const Tensor ids =
      constant_table<int32_t>(rows, Shape{1, 1, static_cast<int64_t>(rows.size())}, x.device());
  Shape wide = x.shape();
  wide[3] = table.extent(3);
  return concat(std::vector<Tensor>{x, expand(take_rows(table, ids), wide)}, 3);
}

}  // namespace

/// Queries with, in more columns, the bias of each place that a key may have; asked: asking() of each.
Tensor HTransformer::with_bias(const Tensor& queries, const std::vector<int32_t>& asked) const {
  const int64_t levels = bias_.extent(0), heads = bias_.extent(1), distances = bias_.extent(2),
                period = 3 * block_;
  std::vector<int32_t> cells;
  for (int64_t level = 0; level < levels; ++level) {
    for (int64_t i = 0; i < period; ++i) {
      for (int64_t j = 0; j < period; ++j) {
        // The key's block is the query's own or beside it.
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
  const Tensor table = reshape(take_rows(all, ids), Shape{1, heads, levels * period, period});
  return beside(queries, table * (1 / scale_), asked);
}

/// Keys with a one at their place, and zeros at the others.
Tensor HTransformer::with_places(const Tensor& keys, const std::vector<int32_t>& places) const {
  return beside(keys, identity(3 * block_, keys), places);
}

std::shared_ptr<const kernel::Pattern> HTransformer::pattern(const Clusters& clusters,
                                                             const ClusterLevels& levels) {
  const int64_t rows = levels.keys.extent(2);
  if (last_ && last_->queries == rows && last_causal_ == clusters.causal) return last_;
  auto pattern = std::make_shared<kernel::Pattern>();
  pattern->queries = pattern->keys = rows;
  pattern->first.push_back(0);
  for (size_t level = 0; level < levels.first.size(); ++level) {
    const auto base = static_cast<int32_t>(levels.first[level]);
    for (int64_t index = 0; index < levels.count(level); ++index) {
      for (const auto& run : clusters.met(static_cast<int64_t>(level), index, levels.count(level))) {
        if (run.begin < run.end) pattern->runs.push_back({run.begin + base, run.end + base});
      }
      pattern->first.push_back(static_cast<int64_t>(pattern->runs.size()));
    }
  }
  last_causal_ = clusters.causal;
  return last_ = pattern;
}

/// Of each query on its level: what it takes of values and of their number, the last column, and the
/// logarithm of its sum. Dropout is on the weights of values alone: the number is what they are divided by.
Tensor HTransformer::looked(const Tensor& queries, const Tensor& keys, const Tensor& values,
                            const std::shared_ptr<const kernel::Pattern>& pattern, Rng* noise) const {
  const kernel::BlockTerms plain{.scale = scale_, .pattern = pattern};
  if (noise == nullptr || config().dropout == 0)
    return block_attention_with_sums(queries, keys, values, plain);
  kernel::BlockTerms dropped = plain;
  dropped.dropout = config().dropout;
  dropped.draw = noise->next();
  const int64_t width = values.extent(3) - 1;
  return concat(std::vector<Tensor>{block_attention(queries, keys, slice(values, 3, 0, width), dropped),
                                    block_attention_with_sums(queries, keys,
                                                              slice(values, 3, width, width + 1), plain)},
                3);
}

Tensor HTransformer::at_once(const Clusters& clusters, const Tensor& q, const ClusterLevels& levels,
                             bool padded, Rng* noise) {
  Tensor asked = cluster_queries(clusters, q, levels), keys = levels.keys;
  if (bias_) {
    std::vector<int32_t> who, where;
    for (size_t level = 0; level < levels.first.size(); ++level) {
      for (int64_t index = 0; index < levels.count(level); ++index) {
        who.push_back(asking(static_cast<int64_t>(level), index));
        where.push_back(place(index));
      }
    }
    asked = with_bias(asked, who);
    keys = with_places(keys, where);
  }
  if (padded && levels.present) {  // one more column hides clusters that are all padding
    const Shape column{q.extent(0), q.extent(1), keys.extent(2), 1};
    asked = concat(std::vector<Tensor>{asked, Tensor::full(column, 1, q.dtype(), q.device())}, 3);
    keys = concat(std::vector<Tensor>{keys, expand(affine(levels.present, 1e30, -1e30), column)}, 3);
  }
  const Tensor all = looked(asked, keys, levels.values, pattern(clusters, levels), noise);
  // From the coarsest level down: a cluster hands what it gathered to both of its parts.
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
    const Tensor above = twice(total.most), most = maximum(above, own.most);
    total = {twice(total.sums) * exp(above - most) + own.sums * exp(own.most - most), most};
  }
  return per_count(total.sums);
}

Tensor HTransformer::by_steps(Heads heads, const Attend& call) {
  auto* memory = memory_of<ClusterMemory>(call);
  if (!call.mask.is_causal())
    fail("attention 'h_transformer': steps look back only. Give all keys in one call instead of a memory.");
  if (call.pass.probe != nullptr)
    fail(
        "attention: sums do not tell single keys apart, so a step with a memory has no map. Look at a full "
        "call.");
  if (heads.k && heads.k.extent(2) != heads.q.extent(2))
    fail("attention 'h_transformer': ", heads.q.extent(2), " queries with ", heads.k.extent(2),
         " keys. Give each query its key.");
  const int64_t before = memory->length, fresh = heads.q.extent(2);
  const TreeNodes nodes = memory->tree.remember(heads, [](const Tensor&, int64_t) { return Tensor(); });
  const int64_t length = memory->length = memory->tree.length;
  if (length != before + fresh)
    fail("attention 'h_transformer': ", fresh, " queries without their keys. Give each query its key.");
  // With a tape clusters are made anew, level after level; without one they lie in the tree, as sums.
  const bool taped = static_cast<bool>(memory->tree.taped_keys);
  const Clusters clusters{.block = block_, .causal = true};
  const ClusterLevels levels = taped ? cluster_levels(clusters, heads.k, heads.v, {}) : ClusterLevels{};
  const int64_t high = clusters.height(length) + 1;
  auto pattern = std::make_shared<kernel::Pattern>();
  pattern->queries = fresh * high;
  pattern->keys = taped ? levels.keys.extent(2) : kernel::tree_rows(length);
  pattern->first.push_back(0);
  const int64_t kept = memory->firsts ? memory->firsts.extent(2) : 0;
  // The query that the cluster of position i began with.
  const auto first_of = [&](int64_t level, int64_t i) {
    const int64_t begin = i >> level << level;
    return static_cast<int32_t>(begin >= before ? kept + begin - before : level - 1);
  };
  std::vector<int32_t> asked, firsts;
  std::vector<int32_t> who, where, met;  // with a bias: asking() of queries, place() of keys, and their rows
  std::vector<double> shares;
  for (int64_t i = before; i < length; ++i) {
    for (int64_t level = 0; level < high; ++level) {
      const size_t own = pattern->runs.size();
      for (const auto& run : clusters.met(level, i >> level, length)) {
        for (int32_t n = run.begin; n < run.end; ++n) {
          auto row = static_cast<int32_t>(taped ? levels.first[static_cast<size_t>(level)] + n
                                                : kernel::TreeNode{level, n}.row());
          if (bias_) {
            met.push_back(row);
            where.push_back(place(n));
            row = static_cast<int32_t>(met.size()) - 1;
          }
          pattern->runs.push_back({row, row + 1});
        }
      }
      pattern->first.push_back(static_cast<int64_t>(pattern->runs.size()));
      asked.push_back(pattern->runs.size() > own ? first_of(level, i) : -1);
      shares.push_back(taped ? 1 : std::ldexp(1.0, static_cast<int>(-level)));
      if (bias_) who.push_back(asking(level, i >> level));
    }
  }
  for (int64_t level = 1; level < high; ++level) firsts.push_back(first_of(level, length - 1));
  const Tensor source = kept > 0 ? concat(std::vector<Tensor>{memory->firsts, heads.q}, 2) : heads.q;
  const auto picked = [&](const std::vector<int32_t>& ids) {
    const auto count = static_cast<int64_t>(ids.size());
    return take_rows(source, constant_table<int32_t>(ids, Shape{1, 1, count}, source.device()));
  };
  const Tensor share =
      constant_table<double>(shares, Shape{1, 1, fresh * high, 1}, source.device(), source.dtype());
  Tensor keys = taped ? levels.keys : view::slice(nodes.keys, 2, 0, pattern->keys);
  Tensor values = taped ? levels.values : view::slice(nodes.values, 2, 0, pattern->keys);
  Tensor queries = picked(asked) * share;
  if (bias_) {  // only the keys that are met get a place beside them
    const Tensor ids =
        constant_table<int32_t>(met, Shape{1, 1, static_cast<int64_t>(met.size())}, keys.device());
    pattern->keys = static_cast<int64_t>(met.size());
    queries = with_bias(queries, who);
    keys = with_places(take_rows(keys, ids), where);
    values = take_rows(values, ids);
  }
  const Tensor all = looked(queries, keys, values, pattern, call.pass.noise);
  memory->firsts = firsts.empty() ? Tensor() : picked(firsts);
  const Gathered own =
      gathered(reshape(all, Shape{all.extent(0), all.extent(1), fresh, high, all.extent(3)}));
  const Tensor total = sum(own.sums * exp(own.most - max(own.most, 3)), 3);
  return per_count(reshape(total, Shape{all.extent(0), all.extent(1), fresh, total.extent(4)}));
}

Tensor HTransformer::attend(Heads heads, const Attend& call) {
  if (bias_) {
    const int64_t reached =
        (call.memory != nullptr ? call.memory->length : 0) + (heads.k ? heads.k.extent(2) : 0);
    if (Clusters{.block = block_}.height(reached) >= bias_.extent(0))
      fail("attention 'h_transformer': ", reached, " keys, but the bias is there for ", bias_.extent(0),
           " levels of clusters. Raise max_length.");
  }
  if (call.mask.bias())
    fail("attention: clusters of tokens take no bias on their scores. Leave the bias out, or use softmax.");
  const int64_t before = call.memory != nullptr ? call.memory->length : 0;
  const bool causal = call.mask.is_causal();
  Tensor kept;
  const auto counted = [&](const Tensor& v) {
    Shape column = v.shape();
    column[-1] = 1;
    const Tensor wide = concat(std::vector<Tensor>{v, Tensor::full(column, 1, v.dtype(), v.device())}, 3);
    return kept ? wide * kept : wide;
  };
  if (heads.k) {
    kept = call.mask.kept(heads.k, before);
    if (kept) heads.k = heads.k * kept;
    if (kept && !causal) heads.q = heads.q * kept;
    heads.v = counted(heads.v);
  }
  if (call.memory != nullptr) return by_steps(std::move(heads), call);
  const int64_t length = heads.k.extent(2);
  if (heads.q.extent(2) != length)
    fail("attention 'h_transformer': ", heads.q.extent(2), " queries for ", length,
         " keys. Both are cut into the same blocks, so give as many.");
  const Clusters clusters{.block = block_, .causal = causal};
  const auto run = [&](const Tensor& values, Rng* noise) {
    return at_once(clusters, heads.q, cluster_levels(clusters, heads.k, values, kept),
                   static_cast<bool>(kept), noise);
  };
  if (call.pass.probe != nullptr) {
    const NoTape looking;
    const Shape whole{heads.q.extent(0), heads.q.extent(1), length, length};
    const Tensor values = counted(expand(identity(length, heads.q), whole));
    call.pass.probe->see(*this, run(values, nullptr));
  }
  return run(heads.v, call.pass.noise);
}

}  // namespace

Variant variant::h_transformer() {
  return describe<HTransformer, Options>(
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

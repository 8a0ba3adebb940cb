// What pattern attention on the CPU shares: gathered rows, the masks of a step, and the keys of one query.
#pragma once

#include <algorithm>
#include <cmath>

#include "heed/core/kernels/attention/attention_dropout.h"
#include "heed/core/kernels/attention/attention_single_query.h"
#include "heed/core/kernels/attention/pattern_attention.h"
#include "heed/core/sparse_pattern.h"

namespace heed::kernel {

static_assert(BlockPlan::tile == tile);

/// Extents, plan and dropout of a pattern attention call.
template <class T>
struct PatternAttentionCall {
  int64_t B, H, Tq, Tk, d, dv;
  T scale;
  const Pattern& pattern;
  const BlockPlan& plan;
  const int32_t* key_lengths;
  int64_t first_key;
  uint64_t first_element;  // random number of the first pair: see core/distributed/batch_shard.h
  bool dropped;
  DropoutTerms dropout;
  T keep_scale;

  PatternAttentionCall(const Tensor& q, const Tensor& k, const Tensor& v, const PatternTerms& terms)
      : B(q.extent(0)),
        H(q.extent(1)),
        Tq(q.extent(2)),
        Tk(k.extent(2)),
        d(q.extent(3)),
        dv(v.extent(3)),
        scale(static_cast<T>(terms.scale)),
        pattern(*terms.pattern),
        plan(pattern.plan()),
        key_lengths(terms.key_lengths ? terms.key_lengths.template data<int32_t>() : nullptr),
        first_key(terms.first_key),
        first_element(skipped_draws(B * H * Tq * Tk)),
        dropped(dropout_threshold(terms.dropout) > 0),
        keep_scale(static_cast<T>(dropout_scale(terms.dropout))) {
    if (dropped) dropout = DropoutTerms::of(terms.dropout, terms.draw);
  }

  T scale_log2() const { return static_cast<T>(static_cast<double>(scale) * log2_e); }
  int64_t keys_of(int64_t b) const {
    return key_lengths == nullptr ? Tk : std::clamp<int64_t>(key_lengths[b] - first_key, 0, Tk);
  }
  int64_t flops_of_head() const {
    return 2 * std::max<int64_t>(1, plan.kept() / std::max<int64_t>(1, pattern.heads)) * (d + dv);
  }
  int64_t pairs() const { return plan.kept() * B * (pattern.heads == 1 ? H : 1); }
  /// Index of the random number of the pair (i, key 0).
  uint64_t element(int64_t b, int64_t h, int64_t i) const {
    return first_element + static_cast<uint64_t>(((b * H + h) * Tq + i) * Tk);
  }
};

/// Numbers of a tile of rows, each padded to whole vectors.
template <class T>
int64_t padded_tile(int64_t width) {
  return BumpAllocator<T>::rounded(tile * simd::padded<T>(width));
}

/// How many rows ahead a gather prefetches: enough to hide the latency of the last-level cache.
constexpr int64_t ahead = 32;

template <class T>
void copy_row(const T* from, int64_t width, T* to) {
  constexpr int n = simd::Lanes<T>::count;
  int64_t c = 0;
  for (; c + n <= width; c += n) simd::store(to + c, simd::load(from + c));
  for (; c < width; ++c) to[c] = from[c];
}

/// to [count, padded width] = x[index], padded with zeros.
template <class T>
void gather_rows(const T* x, int64_t ld, const int32_t* index, int64_t count, int64_t width, T* to) {
  const int64_t padded_width = simd::padded<T>(width);
  for (int64_t n = 0; n < std::min(ahead, count); ++n) fetch_rows(x + index[n] * ld, ld, 1, width);
  for (int64_t n = 0; n < count; ++n) {
    if (n + ahead < count) fetch_rows(x + index[n + ahead] * ld, ld, 1, width);
    copy_row(x + index[n] * ld, width, to + n * padded_width);
    std::fill(to + n * padded_width + width, to + (n + 1) * padded_width, T(0));
  }
}

/// True where rows `gap` apart are better read in place. Rows far apart would compete for the same cache
/// lines.
template <class T>
bool in_place(int32_t gap, int64_t ld) {
  return gap == 1 || (gap > 1 && gap * ld * static_cast<int64_t>(sizeof(T)) <= 1024);
}

/// x[index], whose rows are `gap` apart (0: unevenly): in place where in_place() says so and rows are whole
/// vectors, else gathered into `copy`.
template <class T>
Rows<T> rows_at(const T* x, int64_t ld, const int32_t* index, int64_t count, int32_t gap, int64_t width,
                T* copy) {
  const int64_t padded_width = simd::padded<T>(width);
  if (in_place<T>(gap, ld) && padded_width == width) return {x + index[0] * ld, gap * ld};
  gather_rows(x, ld, index, count, width, copy);
  return {copy, padded_width};
}

/// sums[index] += rows [count, padded width]; then zeroes the rows for the next step.
template <class T>
void scatter_rows(T* rows, const int32_t* index, int64_t count, int64_t padded_width, SumRows<T> sums) {
  constexpr int n = simd::Lanes<T>::count;
  for (int64_t r = 0; r < std::min(ahead, count); ++r)
    fetch_rows(sums.row(index[r]), padded_width, 1, padded_width);
  for (int64_t r = 0; r < count; ++r) {
    if (r + ahead < count) fetch_rows(sums.row(index[r + ahead]), padded_width, 1, padded_width);
    T *from = rows + r * padded_width, *to = sums.row(index[r]);
    for (int64_t c = 0; c < padded_width; c += n) {
      simd::store(to + c, simd::load(to + c) + simd::load(from + c));
      simd::store(from + c, simd::Vector<T>{});
    }
  }
}

/// The visibility and dropout masks of one step.
template <class T>
struct StepPairs {
  PairBits<T> visible, keep_mask;

  /// Fills the masks of a group of queries and the first `keys` keys of a step.
  ScoreModifiers<T> prepare(const PatternAttentionCall<T>& call, int64_t b, int64_t h,
                            const BlockPlan::Group& group, const BlockPlan::Step& step, int64_t keys) {
    ScoreModifiers<T> modifiers;
    if (step.pairs >= 0) {
      visible.set_all(call.plan.pairs(step), group.count);
      for (int64_t i = group.count; i < simd::padded<T>(group.count); ++i) visible.set(i, 0);
      modifiers.visible = &visible;
    }
    if (call.dropped) {
      draw(call, b, h, group, call.plan.keys(step), keys);
      modifiers.keep_mask = &keep_mask;
      modifiers.keep_scale = call.keep_scale;
    }
    return modifiers;
  }

 private:
  void draw(const PatternAttentionCall<T>& call, int64_t b, int64_t h, const BlockPlan::Group& group,
            const int32_t* index, int64_t keys) {
    using U = DropoutTerms::U;
    constexpr int lanes = DropoutTerms::lanes;
    const int32_t* queries = call.plan.queries(group);
    for (int64_t i = 0; i < group.count; i += lanes) {
      U row, all = {};
      for (int lane = 0; lane < lanes; ++lane)
        row[lane] = call.element(b, h, queries[std::min<int64_t>(i + lane, group.count - 1)]);
      // Consecutive keys share blocks of random numbers.
      for (int64_t from = 0, to = 0; from < keys; from = to) {
        for (to = from + 1; to < keys && index[to] == index[to - 1] + 1;) ++to;
        const bool aligned = call.Tk % 8 == 0 && call.first_element % 8 == 0 && index[from] % 8 == 0;
        const U bits = call.dropout.from(row + static_cast<uint64_t>(index[from]), to - from, aligned);
        all |= (bits & low_bits(to - from)) << from;
      }
      for (int lane = 0; lane < lanes && i + lane < group.count; ++lane) keep_mask.set(i + lane, all[lane]);
    }
  }
};

/// Which queries of a group see which of a step's first `keys` keys.
inline TileMask tile_mask_of(const BlockPlan::Step& step, int64_t queries, int64_t keys) {
  static_assert(TileMask::group == BlockPlan::lanes);
  TileMask tile_mask;
  for (int64_t g = 0; g * TileMask::group < queries; ++g) {
    const int64_t from = g * TileMask::group;
    tile_mask.add({from, std::min(from + TileMask::group, queries), step.begin[g],
                   std::min<int64_t>(step.end[g], keys)});
  }
  return tile_mask;
}

/// Number of a step's ascending keys that are below `keys`.
inline int64_t count_below(const int32_t* index, int64_t count, int64_t keys) {
  if (count == 0 || index[count - 1] < keys) return count;
  return std::lower_bound(index, index + count, keys) - index;
}

/// Calls f(picked, kept) for the keys of one query that belong to `part`, at most a tile at a time.
/// `keep_mask`: what dropout multiplies their weights by, or null.
template <class T, class F>
void each_pick(const PatternAttentionCall<T>& call, BlockPlan::Part part, int64_t b, int64_t h, int64_t query,
               F&& f) {
  int32_t index[tile];
  T keep_mask[tile];
  int64_t count = 0;
  const auto give = [&] {
    for (int64_t n = 0; call.dropped && n < count; ++n) {
      const uint64_t element = call.element(b, h, query) + static_cast<uint64_t>(index[n]);
      const bool keep = dropout_bits(call.dropout.seed, call.dropout.high, element) >= call.dropout.least;
      keep_mask[n] = keep ? call.keep_scale : T(0);
    }
    f(Picked{index, count}, call.dropped ? static_cast<const T*>(keep_mask) : nullptr);
    count = 0;
  };
  each_run(call.pattern, part, h, query, call.keys_of(b), [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      index[count++] = static_cast<int32_t>(j);
      if (count == tile) give();
    }
  });
  if (count > 0) give();
}

/// Joins the outputs [width] that two sets of keys gave one query into `out`; returns the log of the joint
/// sum.
template <class T>
RowLog<T> merge(T* out, const RowLog<T>& lse, const T* more, const RowLog<T>& more_lse, int64_t width) {
  if (more_lse.log == -std::numeric_limits<T>::infinity()) return lse;
  const JoinedRows<T> both(lse, more_lse);
  for (int64_t c = 0; c < width; ++c) out[c] = (out[c] * both.first + more[c] * both.second) / both.total;
  return both.log;
}

/// Splits the groups of each head into runs for threads where heads are few. Each run has its own sums of dk
/// and dv.
struct GroupRuns {
  struct Slice {
    int64_t begin = 0, end = 0;  ///< keys
    int64_t place = 0;           ///< rows before it, of all shares of one batch row
    int64_t group[3] = {};       ///< its groups of pass p are those from group[p] on
  };
  int64_t count, H, rows = 0;
  std::vector<Slice> shares;  ///< [H, count + 1]

  template <class T>
  explicit GroupRuns(const PatternAttentionCall<T>& call) : H(call.H) {
    constexpr int64_t wanted = 4;
    const int64_t heads = std::max<int64_t>(1, call.B * call.H);
    count =
        std::clamp<int64_t>(wanted / heads, 1, std::max<int64_t>(1, call.flops_of_head() / flops_per_task));
    if (count == 1) return;
    shares.resize(static_cast<size_t>(H * (count + 1)));
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t p = 0; p < call.plan.passes(); ++p) divide(call.plan, h, p);
      for (int64_t c = 0; c < count; ++c) {
        Slice& share = at(h, c);
        share.place = rows;
        rows += share.end - share.begin;
      }
    }
  }
  Slice& at(int64_t h, int64_t c) { return shares[static_cast<size_t>(h * (count + 1) + c)]; }
  const Slice& at(int64_t h, int64_t c) const { return shares[static_cast<size_t>(h * (count + 1) + c)]; }

 private:
  /// Splits the groups of a head into runs with about equal numbers of pairs.
  void divide(const BlockPlan& plan, int64_t h, int64_t p) {
    const BlockPlan::Pass pass = plan.pass(h, p);
    int64_t total = 0, done = 0, g = pass.begin;
    for (int64_t n = pass.begin; n < pass.end; ++n) total += plan.group(n).kept;
    for (int64_t c = 0; c < count; ++c) {
      Slice& share = at(h, c);
      share.group[p] = g;
      for (; g < pass.end && (c + 1 == count || done * count < total * (c + 1)); ++g) {
        const BlockPlan::Group& group = plan.group(g);
        done += group.kept;
        if (group.end == 0) continue;
        share.begin = share.end == 0 ? group.begin : std::min<int64_t>(share.begin, group.begin);
        share.end = std::max<int64_t>(share.end, group.end);
      }
    }
    at(h, count).group[p] = pass.end;
  }
};

}  // namespace heed::kernel

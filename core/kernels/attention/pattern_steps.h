// What the kernels over patterns share: rows brought together, the pairs of a step, its dropout, keys of one
// query.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/kernels/attention_dropout.h"
#include "core/kernels/attention_row.h"
#include "core/kernels/block_attention.h"
#include "core/pattern.h"

namespace heed::kernel {

static_assert(BlockPlan::tile == tile);

/// Everything of a call that its pieces read.
template <class T>
struct BlockAttentionCall {
  int64_t B, H, Tq, Tk, d, dv;
  T scale;
  const Pattern& pattern;
  const BlockPlan& plan;
  const int32_t* key_lengths;
  int64_t first_key;
  uint64_t first_element;  // what the first pair draws: see core/share.h
  bool dropped;
  DropoutTerms dropout;
  T keep_scale;

  BlockAttentionCall(const Tensor& q, const Tensor& k, const Tensor& v, const BlockTerms& terms)
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

  T factor() const { return static_cast<T>(static_cast<double>(scale) * log2_e); }
  int64_t keys_of(int64_t b) const {
    return key_lengths == nullptr ? Tk : std::clamp<int64_t>(key_lengths[b] - first_key, 0, Tk);
  }
  int64_t flops_of_head() const {
    return 2 * std::max<int64_t>(1, plan.kept() / std::max<int64_t>(1, pattern.heads)) * (d + dv);
  }
  int64_t pairs() const { return plan.kept() * B * (pattern.heads == 1 ? H : 1); }
  /// The number that the pair of query i and key 0 draws.
  uint64_t element(int64_t b, int64_t h, int64_t i) const {
    return first_element + static_cast<uint64_t>(((b * H + h) * Tq + i) * Tk);
  }
};

/// Rows that lie apart are asked for so many before they are needed: enough to hide the way to the last
/// cache.
constexpr int64_t ahead = 32;

template <class T>
void copy_row(const T* from, int64_t width, T* to) {
  constexpr int n = simd::Lanes<T>::count;
  int64_t c = 0;
  for (; c + n <= width; c += n) simd::store(to + c, simd::load(from + c));
  for (; c < width; ++c) to[c] = from[c];
}

/// Copies rows `index` of x; columns up to a whole vector become zeros.
template <class T>
void gather_rows(const T* x, int64_t ld, const int32_t* index, int64_t count, int64_t width, T* to) {
  const int64_t wide = simd::padded<T>(width);
  for (int64_t n = 0; n < std::min(ahead, count); ++n) fetch_rows(x + index[n] * ld, ld, 1, width);
  for (int64_t n = 0; n < count; ++n) {
    if (n + ahead < count) fetch_rows(x + index[n + ahead] * ld, ld, 1, width);
    copy_row(x + index[n] * ld, width, to + n * wide);
    std::fill(to + n * wide + width, to + (n + 1) * wide, T(0));
  }
}

/// Whether rows `gap` apart are best read where they lie. Far apart they would fall on the same few lines of
/// the cache.
template <class T>
bool in_place(int32_t gap, int64_t ld) {
  return gap == 1 || (gap > 1 && gap * ld * static_cast<int64_t>(sizeof(T)) <= 1024);
}

/// Rows `index` of x, `gap` apart (0: not evenly): where they lie, or copied where that is better or they are
/// no whole vectors.
template <class T>
Rows<T> rows_at(const T* x, int64_t ld, const int32_t* index, int64_t count, int32_t gap, int64_t width,
                T* copy) {
  const int64_t wide = simd::padded<T>(width);
  if (in_place<T>(gap, ld) && wide == width) return {x + index[0] * ld, gap * ld};
  gather_rows(x, ld, index, count, width, copy);
  return {copy, wide};
}

/// Adds rows of whole vectors to rows `index` of `sums`, and makes them zero again.
template <class T>
void scatter_rows(T* rows, const int32_t* index, int64_t count, int64_t wide, Sums<T> sums) {
  constexpr int n = simd::Lanes<T>::count;
  for (int64_t r = 0; r < std::min(ahead, count); ++r) fetch_rows(sums.row(index[r]), wide, 1, wide);
  for (int64_t r = 0; r < count; ++r) {
    if (r + ahead < count) fetch_rows(sums.row(index[r + ahead]), wide, 1, wide);
    T *from = rows + r * wide, *to = sums.row(index[r]);
    for (int64_t c = 0; c < wide; c += n) {
      simd::store(to + c, simd::load(to + c) + simd::load(from + c));
      simd::store(from + c, simd::Vector<T>{});
    }
  }
}

/// The pairs of one step that exist and that dropout keeps.
template <class T>
struct StepPairs {
  PairBits<T> visible, kept;

  /// The first `keys` keys of a step, for a group of head h in batch row b.
  Between<T> prepare(const BlockAttentionCall<T>& call, int64_t b, int64_t h, const BlockPlan::Group& group,
                     const BlockPlan::Step& step, int64_t keys) {
    Between<T> between;
    if (step.pairs >= 0) {
      visible.set_all(call.plan.pairs(step), group.count);
      for (int64_t i = group.count; i < simd::padded<T>(group.count); ++i) visible.set(i, 0);
      between.visible = &visible;
    }
    if (call.dropped) {
      draw(call, b, h, group, call.plan.keys(step), keys);
      between.kept = &kept;
      between.keep_scale = call.keep_scale;
    }
    return between;
  }

 private:
  void draw(const BlockAttentionCall<T>& call, int64_t b, int64_t h, const BlockPlan::Group& group,
            const int32_t* index, int64_t keys) {
    using U = DropoutTerms::U;
    constexpr int lanes = DropoutTerms::lanes;
    const int32_t* queries = call.plan.queries(group);
    for (int64_t i = 0; i < group.count; i += lanes) {
      U row, all = {};
      for (int lane = 0; lane < lanes; ++lane)
        row[lane] = call.element(b, h, queries[std::min<int64_t>(i + lane, group.count - 1)]);
      // Keys one after the other draw from the same blocks.
      for (int64_t from = 0, to = 0; from < keys; from = to) {
        for (to = from + 1; to < keys && index[to] == index[to - 1] + 1;) ++to;
        const bool aligned = call.Tk % 8 == 0 && call.first_element % 8 == 0 && index[from] % 8 == 0;
        const U bits = call.dropout.from(row + static_cast<uint64_t>(index[from]), to - from, aligned);
        all |= (bits & low_bits(to - from)) << from;
      }
      for (int lane = 0; lane < lanes && i + lane < group.count; ++lane) kept.set(i + lane, all[lane]);
    }
  }
};

/// Which queries meet which of a step's first `keys` keys at all.
inline Stairs stairs_of(const BlockPlan::Step& step, int64_t queries, int64_t keys) {
  static_assert(Stairs::group == BlockPlan::lanes);
  Stairs stairs;
  for (int64_t g = 0; g * Stairs::group < queries; ++g) {
    const int64_t from = g * Stairs::group;
    stairs.add(
        {from, std::min(from + Stairs::group, queries), step.begin[g], std::min<int64_t>(step.end[g], keys)});
  }
  return stairs;
}

/// How many of a step's keys are below `keys`.
inline int64_t count_below(const int32_t* index, int64_t count, int64_t keys) {
  if (count == 0 || index[count - 1] < keys) return count;
  return std::lower_bound(index, index + count, keys) - index;
}

/// Calls f(picked, kept) for the keys of one query that belong to `part`, at most a tile at a time. `kept`:
/// what dropout multiplies their weights by, or null.
template <class T, class F>
void each_pick(const BlockAttentionCall<T>& call, BlockPlan::Part part, int64_t b, int64_t h, int64_t query,
               F&& f) {
  int32_t index[tile];
  T kept[tile];
  int64_t count = 0;
  const auto give = [&] {
    for (int64_t n = 0; call.dropped && n < count; ++n) {
      const uint64_t element = call.element(b, h, query) + static_cast<uint64_t>(index[n]);
      const bool keep = dropout_bits(call.dropout.seed, call.dropout.high, element) >= call.dropout.least;
      kept[n] = keep ? call.keep_scale : T(0);
    }
    f(Picked{index, count}, call.dropped ? static_cast<const T*>(kept) : nullptr);
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

/// Joins what two sets of keys gave one query: out becomes that of both; the log of both comes back.
template <class T>
RowLog<T> merge(T* out, const RowLog<T>& lse, const T* more, const RowLog<T>& more_lse, int64_t width) {
  if (more_lse.log == -std::numeric_limits<T>::infinity()) return lse;
  const JoinedRows<T> both(lse, more_lse);
  for (int64_t c = 0; c < width; ++c) out[c] = (out[c] * both.first + more[c] * both.second) / both.total;
  return both.log;
}

/// Few heads are cut into runs of groups too. Each run has sums of its own for the keys that it meets.
struct Cuts {
  struct Share {
    int64_t begin = 0, end = 0;  ///< keys
    int64_t place = 0;           ///< rows before it, of all shares of one batch row
    int64_t group[3] = {};       ///< its groups of pass p are those from group[p] on
  };
  int64_t count, H, rows = 0;
  std::vector<Share> shares;  ///< [H, count + 1]

  template <class T>
  explicit Cuts(const BlockAttentionCall<T>& call) : H(call.H) {
    constexpr int64_t wanted = 4;
    const int64_t heads = std::max<int64_t>(1, call.B * call.H);
    count = std::clamp<int64_t>(wanted / heads, 1, std::max<int64_t>(1, call.flops_of_head() / piece_flops));
    if (count == 1) return;
    shares.resize(static_cast<size_t>(H * (count + 1)));
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t p = 0; p < call.plan.passes(); ++p) divide(call.plan, h, p);
      for (int64_t c = 0; c < count; ++c) {
        Share& share = at(h, c);
        share.place = rows;
        rows += share.end - share.begin;
      }
    }
  }
  Share& at(int64_t h, int64_t c) { return shares[static_cast<size_t>(h * (count + 1) + c)]; }
  const Share& at(int64_t h, int64_t c) const { return shares[static_cast<size_t>(h * (count + 1) + c)]; }

 private:
  /// Runs with about as many pairs each.
  void divide(const BlockPlan& plan, int64_t h, int64_t p) {
    const BlockPlan::Pass pass = plan.pass(h, p);
    int64_t total = 0, kept = 0, g = pass.begin;
    for (int64_t n = pass.begin; n < pass.end; ++n) total += plan.group(n).kept;
    for (int64_t c = 0; c < count; ++c) {
      Share& share = at(h, c);
      share.group[p] = g;
      for (; g < pass.end && (c + 1 == count || kept * count < total * (c + 1)); ++g) {
        const BlockPlan::Group& group = plan.group(g);
        kept += group.kept;
        if (group.end == 0) continue;
        share.begin = share.end == 0 ? group.begin : std::min<int64_t>(share.begin, group.begin);
        share.end = std::max<int64_t>(share.end, group.end);
      }
    }
    at(h, count).group[p] = pass.end;
  }
};

}  // namespace heed::kernel

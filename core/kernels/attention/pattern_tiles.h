// The tiles of pattern attention: the groups of a plan's queries and the steps of keys that each sees.
#pragma once

#include <algorithm>

#include "heed/core/block_plan.h"
#include "heed/core/kernels/attention/attention_tiles.h"
#include "heed/core/kernels/attention/pattern_attention.h"

namespace heed::kernel {

static_assert(BlockPlan::tile == tile && BlockPlan::lanes == TileMask::group);

/// A pattern attention call as an attention call without causal mask and bias.
template <class T>
struct PatternCall : Call<T> {
  const Pattern& pattern;
  const BlockPlan& plan;

  PatternCall(const Tensor& q, const Tensor& k, const Tensor& v, const PatternParams& params)
      : Call<T>(q, k, v,
                {.scale = params.scale,
                 .key_lengths = params.key_lengths,
                 .dropout = params.dropout,
                 .draw = params.draw}),
        pattern(*params.pattern),
        plan(pattern.plan()) {}
  /// Number of pairs of all heads.
  int64_t pairs() const { return plan.kept() * this->B * (pattern.heads == 1 ? this->H : 1); }
};

/// Number of ascending keys that are below `end`.
inline int64_t count_below(const int32_t* keys, int64_t count, int64_t end) {
  if (count == 0 || keys[count - 1] < end) return count;
  if (keys[0] >= end) return 0;
  return std::lower_bound(keys, keys + count, end) - keys;
}

/// Tiles of a call in which each query sees the keys of its pattern, except those past the key length. See
/// attention_tiles.h for the members.
template <class T>
struct PatternTiles {
  static constexpr bool scattered_rows = true;
  const PatternCall<T>& call;

  struct Queries : QueryTile {
    const BlockPlan::Group* group;
  };

  int64_t passes() const { return call.plan.passes(); }
  int64_t max_query_tiles() const { return call.plan.max_groups(); }
  int64_t query_tiles(int64_t h, int64_t pass) const {
    return call.plan.pass(h, pass).end - call.plan.pass(h, pass).begin;
  }
  Queries query_tile(int64_t b, int64_t h, int64_t pass, int64_t n) const {
    const BlockPlan::Group& group = call.plan.group(call.plan.pass(h, pass).begin + n);
    const int32_t* index = call.plan.queries(group);
    return {{b, h, {index[0], group.count, group.gap, index}, group.alone}, &group};
  }
  int64_t flops_of_head() const {
    return 2 * std::max<int64_t>(1, call.plan.kept() / std::max<int64_t>(1, call.pattern.heads)) *
           (call.d + call.dv);
  }
  int64_t flops_of_tile() const { return flops_of_head() / std::max<int64_t>(1, max_query_tiles()) + 1; }

  int64_t max_key_runs(int64_t heads) const { return std::min(4 / heads, flops_of_head() / flops_per_task); }

  bool sees(const Queries& queries, int64_t key_begin, int64_t key_end) const {
    return queries.group->begin < key_end && key_begin < queries.group->end;
  }

  template <class F>
  void each_key_tile(const Queries& queries, int64_t key_begin, int64_t key_end, StepParams<T>& step,
                     F&& f) const {
    for (int64_t s = queries.group->first_step; s < queries.group->last_step; ++s) {
      const BlockPlan::Step& planned = call.plan.step(s);
      const int32_t* keys = call.plan.keys(planned);
      const int64_t low = count_below(keys, planned.count, key_begin);
      const int64_t high = count_below(keys, planned.count, key_end);
      if (high == 0) return;  // keys ascend from step to step
      if (low == high) continue;
      prepare(queries, planned, low, high, step);
      const int32_t* index = keys + low;
      if (key_begin > 0) {
        std::transform(index, keys + high, step.index,
                       [key_begin](int32_t key) { return key - static_cast<int32_t>(key_begin); });
        index = step.index;
      }
      f(TileRows{index[0], high - low, planned.gap, index});
    }
  }

  template <class F>
  void each_key_list(const Queries& queries, int64_t i, int64_t key_begin, int64_t key_end, F&& f) const {
    int32_t index[tile];
    T keep_mask[tile];
    int64_t count = 0;
    const auto flush = [&] {
      if (call.has_dropout)
        call.dropout.factors(call.dropout_index(queries.b, queries.h, i, key_begin), index, count,
                             call.keep_scale, keep_mask);
      f(KeyList{index, count}, static_cast<const T*>(nullptr),
        call.has_dropout ? static_cast<const T*>(keep_mask) : nullptr);
      count = 0;
    };
    each_run(call.pattern, queries.group->part, queries.h, i, key_end, [&](int64_t begin, int64_t end) {
      for (int64_t j = std::max(begin, key_begin); j < end; ++j) {
        index[count++] = static_cast<int32_t>(j - key_begin);
        if (count == tile) flush();
      }
    });
    if (count > 0) flush();
  }

 private:
  /// Masks and dropout of a group of queries with keys [low, high) of a step.
  void prepare(const Queries& of, const BlockPlan::Step& planned, int64_t low, int64_t high,
               StepParams<T>& step) const {
    const int64_t queries = of.rows.count;
    step.tile_mask.count = 0;
    for (int64_t g = 0; g * TileMask::group < queries; ++g) {
      const int64_t query_begin = g * TileMask::group;
      step.tile_mask.add({query_begin, std::min(query_begin + TileMask::group, queries),
                          std::max<int64_t>(planned.begin[g], low) - low,
                          std::min<int64_t>(planned.end[g], high) - low});
    }
    step.modifiers = {};
    if (planned.pairs >= 0) {
      step.visible.set_all(call.plan.pairs(planned), queries, low);
      for (int64_t i = queries; i < simd::padded<T>(queries); ++i) step.visible.set(i, 0);
      step.modifiers.visible = &step.visible;
    }
    if (call.has_dropout) {
      draw_keep_mask(of, call.plan.keys(planned) + low, step.tile_mask, step.keep_mask);
      step.modifiers.keep_mask = &step.keep_mask;
      step.modifiers.keep_scale = call.keep_scale;
    }
  }

  /// Sets bit n of query i where dropout keeps the pair of this query and key index[n]; only for the pairs of
  /// tile_mask. Vector lanes are queries.
  void draw_keep_mask(const Queries& of, const int32_t* index, const TileMask& tile_mask,
                      PairBits<T>& keep_mask) const {
    using Counters = DropoutParams::Counters;
    constexpr int lanes = DropoutParams::lanes;
    constexpr auto block = static_cast<int64_t>(DropoutParams::block);
    const bool rows_are_aligned = call.Tk % block == 0 && call.dropout_offset % DropoutParams::block == 0;
    tile_mask.each_by_queries([&](const TileMask::Rectangle& r) {
      for (int64_t i = r.query_begin; i < r.query_end; i += lanes) {
        Counters first_of_row, all = {};
        for (int lane = 0; lane < lanes; ++lane) {
          first_of_row[lane] =
              call.dropout_index(of.b, of.h, of.rows[std::min(i + lane, r.query_end - 1)], 0);
        }
        // Runs [begin, end) of consecutive keys share blocks of random numbers.
        for (int64_t begin = r.key_begin, end = begin; begin < r.key_end; begin = end) {
          for (end = begin + 1; end < r.key_end && index[end] == index[end - 1] + 1;) ++end;
          const int64_t max_skipped = rows_are_aligned ? index[begin] % block : block - 1;
          const Counters bits = call.dropout.bits_from(first_of_row + static_cast<uint64_t>(index[begin]),
                                                       end - begin, static_cast<uint64_t>(max_skipped));
          all |= (bits & low_bits(end - begin)) << begin;
        }
        for (int lane = 0; lane < lanes && i + lane < r.query_end; ++lane) keep_mask.set(i + lane, all[lane]);
      }
    });
  }
};

}  // namespace heed::kernel

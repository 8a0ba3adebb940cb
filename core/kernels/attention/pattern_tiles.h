// The tiles of pattern attention: the groups of a plan's queries and the steps of keys that each sees.
#pragma once

#include <algorithm>

#include "heed/core/kernels/attention/attention_tiles.h"
#include "heed/core/kernels/attention/pattern_attention.h"
#include "heed/core/sparse_pattern.h"

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
        plan(pattern.plan()) {
    this->first_key = params.first_key;
  }
  /// Number of pairs of all heads.
  int64_t pairs() const { return plan.kept() * this->B * (pattern.heads == 1 ? this->H : 1); }
};

/// Number of ascending keys that are below `end`.
inline int64_t count_below(const int32_t* keys, int64_t count, int64_t end) {
  if (count == 0 || keys[count - 1] < end) return count;
  if (keys[0] >= end) return 0;
  return std::lower_bound(keys, keys + count, end) - keys;
}

/// Each query sees the keys of its pattern, less those past the key length.
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

  int64_t key_runs(int64_t heads) const { return std::min(4 / heads, flops_of_head() / flops_per_task); }

  bool sees(const Queries& queries, int64_t first, int64_t last) const {
    return queries.group->begin < last && first < queries.group->end;
  }

  template <class F>
  void each_key_tile(const Queries& queries, int64_t first, int64_t last, StepParams<T>& step, F&& f) const {
    for (int64_t s = queries.group->first_step; s < queries.group->last_step; ++s) {
      const BlockPlan::Step& planned = call.plan.step(s);
      const int32_t* keys = call.plan.keys(planned);
      const int64_t low = count_below(keys, planned.count, first);
      const int64_t high = count_below(keys, planned.count, last);
      if (high == 0) return;  // keys ascend from step to step
      if (low == high) continue;
      prepare(queries, planned, low, high, step);
      const int32_t* index = keys + low;
      if (first > 0) {
        std::transform(index, keys + high, step.index,
                       [first](int32_t key) { return key - static_cast<int32_t>(first); });
        index = step.index;
      }
      f(TileRows{index[0], high - low, planned.gap, index});
    }
  }

  template <class F>
  void each_pick(const Queries& queries, int64_t i, int64_t first, int64_t last, F&& f) const {
    int32_t index[tile];
    T keep_mask[tile];
    int64_t count = 0;
    const auto give = [&] {
      if (call.dropped)
        call.dropout.factors(call.element(queries.b, queries.h, i, first), index, count, call.keep_scale,
                             keep_mask);
      f(Picked{index, count}, static_cast<const T*>(nullptr),
        call.dropped ? static_cast<const T*>(keep_mask) : nullptr);
      count = 0;
    };
    each_run(call.pattern, queries.group->part, queries.h, i, last, [&](int64_t begin, int64_t end) {
      for (int64_t j = std::max(begin, first); j < end; ++j) {
        index[count++] = static_cast<int32_t>(j - first);
        if (count == tile) give();
      }
    });
    if (count > 0) give();
  }

 private:
  /// The params of a group of queries against keys [low, high) of a step.
  void prepare(const Queries& of, const BlockPlan::Step& planned, int64_t low, int64_t high,
               StepParams<T>& step) const {
    const int64_t queries = of.rows.count;
    step.tile_mask.steps = 0;
    for (int64_t g = 0; g * TileMask::group < queries; ++g) {
      const int64_t from = g * TileMask::group;
      step.tile_mask.add({from, std::min(from + TileMask::group, queries),
                          std::max<int64_t>(planned.begin[g], low) - low,
                          std::min<int64_t>(planned.end[g], high) - low});
    }
    step.modifiers = {};
    if (planned.pairs >= 0) {
      step.visible.set_all(call.plan.pairs(planned), queries, low);
      for (int64_t i = queries; i < simd::padded<T>(queries); ++i) step.visible.set(i, 0);
      step.modifiers.visible = &step.visible;
    }
    if (call.dropped) {
      draw(of, call.plan.keys(planned) + low, step.tile_mask, step.keep_mask);
      step.modifiers.keep_mask = &step.keep_mask;
      step.modifiers.keep_scale = call.keep_scale;
    }
  }

  /// Bit n of query i: true where dropout keeps the pair of this query and key index[n]; of the keys that
  /// `seen` gives the query alone.
  void draw(const Queries& of, const int32_t* index, const TileMask& seen, PairBits<T>& keep_mask) const {
    using U = DropoutParams::U;
    constexpr int lanes = DropoutParams::lanes;
    constexpr auto block = static_cast<int64_t>(DropoutParams::block);
    const bool aligned = call.Tk % block == 0 && call.first_element % DropoutParams::block == 0;
    seen.each([&](const TileMask::Step& s) {
      for (int64_t i = s.from; i < s.to; i += lanes) {
        U row, all = {};
        for (int lane = 0; lane < lanes; ++lane)
          row[lane] = call.element(of.b, of.h, of.rows[std::min(i + lane, s.to - 1)], 0);
        // Consecutive keys share blocks of random numbers.
        for (int64_t from = s.low, to = s.low; from < s.high; from = to) {
          for (to = from + 1; to < s.high && index[to] == index[to - 1] + 1;) ++to;
          const U bits = call.dropout.from(row + static_cast<uint64_t>(index[from]), to - from,
                                           static_cast<uint64_t>(aligned ? index[from] % block : block - 1));
          all |= (bits & low_bits(to - from)) << from;
        }
        for (int lane = 0; lane < lanes && i + lane < s.to; ++lane) keep_mask.set(i + lane, all[lane]);
      }
    });
  }
};

}  // namespace heed::kernel

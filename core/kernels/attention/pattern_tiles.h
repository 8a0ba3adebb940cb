// The tiles of pattern attention: the groups of a plan's queries and the steps of keys that each sees.
#pragma once

#include <algorithm>

#include "heed/core/block_plan.h"
#include "heed/core/kernels/attention/attention_tiles.h"
#include "heed/core/kernels/attention/pattern_attention.h"

namespace heed::kernel {

static_assert(BlockPlan::tile == tile && BlockPlan::lanes == TileMask::queries_per_group);

/// A pattern attention call: an AttentionCall without causal mask and bias, and the pattern with its plan.
template <class T>
struct PatternAttentionCall : AttentionCall<T> {
  const Pattern& pattern;
  const BlockPlan& plan;

  PatternAttentionCall(const Tensor& q, const Tensor& k, const Tensor& v, const PatternParams& params)
      : AttentionCall<T>(q, k, v,
                         {.scale = params.scale,
                          .key_lengths = params.key_lengths,
                          .dropout = params.dropout,
                          .draw = params.draw}),
        pattern(*params.pattern),
        plan(pattern.plan()) {}
  /// Number of pairs of a query and a key of its pattern, in all heads.
  int64_t num_pairs() const { return plan.kept() * this->B * (pattern.heads == 1 ? this->H : 1); }
};

/// Number of the `count` ascending keys that are below `end`.
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
  const PatternAttentionCall<T>& call;

  struct Queries : QueryTile {
    const BlockPlan::Group* group;
  };

  int64_t passes() const { return call.plan.passes(); }
  int64_t max_query_tiles() const { return call.plan.max_groups(); }
  int64_t query_tiles(int64_t, int64_t h, int64_t pass) const {
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

  /// Enough runs for four threads, each with the operations of a task.
  int64_t max_key_runs(int64_t heads) const { return std::min(4 / heads, flops_of_head() / flops_per_task); }

  bool sees(const Queries& queries, int64_t key_begin, int64_t key_end) const {
    return queries.group->begin < key_end && key_begin < queries.group->end;
  }

  template <class F>
  void each_key_tile(const Queries& queries, int64_t key_begin, int64_t key_end, TilePair<T>& tile_pair,
                     F&& f) const {
    for (int64_t s = queries.group->first_step; s < queries.group->last_step; ++s) {
      const BlockPlan::Step& step = call.plan.step(s);
      const int32_t* keys = call.plan.keys(step);
      const int64_t low = count_below(keys, step.count, key_begin);
      const int64_t high = count_below(keys, step.count, key_end);
      if (high == 0) return;  // keys ascend from step to step
      if (low == high) continue;
      prepare(queries, step, low, high, tile_pair);
      const int32_t* key_index = keys + low;
      if (key_begin > 0) {
        std::transform(key_index, keys + high, tile_pair.key_index,
                       [key_begin](int32_t key) { return key - static_cast<int32_t>(key_begin); });
        key_index = tile_pair.key_index;
      }
      f(TileRows{key_index[0], high - low, step.gap, key_index});
    }
  }

  template <class F>
  void each_key_list(const Queries& queries, int64_t i, int64_t key_begin, int64_t key_end, F&& f) const {
    int32_t key_index[tile];
    T dropout_factors[tile];
    int64_t count = 0;
    const auto flush = [&] {
      if (call.has_dropout)
        call.dropout.keep_factors(call.dropout_index(queries.b, queries.h, i, key_begin), key_index, count,
                                  call.keep_scale, dropout_factors);
      f(KeyList{key_index, count}, static_cast<const T*>(nullptr),
        call.has_dropout ? static_cast<const T*>(dropout_factors) : nullptr);
      count = 0;
    };
    each_run(call.pattern, queries.group->part, queries.h, i, key_end, [&](int64_t begin, int64_t end) {
      for (int64_t j = std::max(begin, key_begin); j < end; ++j) {
        key_index[count++] = static_cast<int32_t>(j - key_begin);
        if (count == tile) flush();
      }
    });
    if (count > 0) flush();
  }

 private:
  /// Sets the masks and dropout of a group of queries with keys [low, high) of a step.
  void prepare(const Queries& queries, const BlockPlan::Step& step, int64_t low, int64_t high,
               TilePair<T>& tile_pair) const {
    const int64_t num_queries = queries.rows.count;
    tile_pair.tile_mask.count = 0;
    for (int64_t g = 0; g * TileMask::queries_per_group < num_queries; ++g) {
      const int64_t query_begin = g * TileMask::queries_per_group;
      tile_pair.tile_mask.add({.query_begin = query_begin,
                               .query_end = std::min(query_begin + TileMask::queries_per_group, num_queries),
                               .key_begin = std::max<int64_t>(step.begin[g], low) - low,
                               .key_end = std::min<int64_t>(step.end[g], high) - low});
    }
    tile_pair.modifiers = {};
    if (step.pairs >= 0) {
      tile_pair.visible.set_all(call.plan.pairs(step), num_queries, low);
      for (int64_t i = num_queries; i < simd::padded<T>(num_queries); ++i) tile_pair.visible.set(i, 0);
      tile_pair.modifiers.visible = &tile_pair.visible;
    }
    if (call.has_dropout) {
      draw_keep_mask(queries, call.plan.keys(step) + low, tile_pair.tile_mask, tile_pair.keep_mask);
      tile_pair.modifiers.keep_mask = &tile_pair.keep_mask;
      tile_pair.modifiers.keep_scale = call.keep_scale;
    }
  }

  /// Sets bit n of query i where dropout keeps the pair of this query and key key_index[n]; only for the
  /// pairs of tile_mask. Vector lanes are queries.
  void draw_keep_mask(const Queries& queries, const int32_t* key_index, const TileMask& tile_mask,
                      PairBits<T>& keep_mask) const {
    using Counters = DropoutParams::Counters;
    constexpr int lanes = DropoutParams::lanes;
    constexpr auto indices_per_block = static_cast<int64_t>(DropoutParams::indices_per_block);
    const bool rows_begin_blocks =
        call.Tk % indices_per_block == 0 && call.dropout_offset % DropoutParams::indices_per_block == 0;
    tile_mask.each_by_queries([&](const TileMask::Rectangle& r) {
      for (int64_t i = r.query_begin; i < r.query_end; i += lanes) {
        Counters first_of_row, keep_bits = {};
        for (int lane = 0; lane < lanes; ++lane) {
          first_of_row[lane] =
              call.dropout_index(queries.b, queries.h, queries.rows[std::min(i + lane, r.query_end - 1)], 0);
        }
        // Runs [begin, end) of consecutive keys share blocks of random numbers.
        for (int64_t begin = r.key_begin, end = begin; begin < r.key_end; begin = end) {
          for (end = begin + 1; end < r.key_end && key_index[end] == key_index[end - 1] + 1;) ++end;
          const int64_t max_skipped =
              rows_begin_blocks ? key_index[begin] % indices_per_block : indices_per_block - 1;
          const Counters run_bits =
              call.dropout.keep_bits_from(first_of_row + static_cast<uint64_t>(key_index[begin]), end - begin,
                                          static_cast<uint64_t>(max_skipped));
          keep_bits |= (run_bits & low_bits(end - begin)) << begin;
        }
        for (int lane = 0; lane < lanes && i + lane < r.query_end; ++lane)
          keep_mask.set(i + lane, keep_bits[lane]);
      }
    });
  }
};

}  // namespace heed::kernel

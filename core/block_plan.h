// The plan by which attention over a sparse pattern is computed: groups of queries and tiles of common keys.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/core/sparse_pattern.h"

namespace heed::kernel {

/// Costs that a plan assumes, in units of the cost of one pair in a group of 64 queries.
struct PlanCosts {
  double pair[3] = {1, 1.1, 1.3};  ///< a pair in groups of 64, 32 and 16 queries
  double alone = 7;                ///< a pair of a query that shares no group
  double gathering = 8;            ///< copying a key without neighbours, and adding up its gradient
  bool whole_tiles = false;        ///< each step of a group costs a whole tile, and every query is in a group
};
/// Costs on a device, where blocks compute whole tiles and gathering rows is free.
inline constexpr PlanCosts device_costs{.gathering = 0, .whole_tiles = true};

/// The pairs of a pattern as groups of queries with common keys. Queries that are not neighbours but attend
/// to the same keys (columns of a stride) share a group, and keys that are not neighbours (columns, random
/// blocks) share a step: a group gathers their rows and computes small dense products. The long runs and the
/// scattered keys of a query may belong to two groups, the second of which adds to the result of the first.
class BlockPlan {
 public:
  static constexpr int64_t tile = 64;      ///< maximum queries of a group and keys of a step
  static constexpr int64_t lanes = 16;     ///< queries of the smallest group
  static constexpr int64_t scattered = 4;  ///< runs shorter than this may be grouped by themselves

  /// At most a tile of keys that queries of a group attend to.
  struct Step {
    int64_t keys;   ///< index in key_list() of the first of its `count` keys, which ascend
    int64_t pairs;  ///< index in pair_list() of a word for each query: bit n is set where it attends to the
                    ///< step's key n; -1: all queries attend to all keys
    int32_t count;  ///< number of keys, at most a tile
    int32_t gap;    ///< distance from key to key; 0: distances differ
    /// Queries lanes g to lanes (g + 1) - 1 attend to no key of the step outside of begin[g] to end[g] - 1.
    uint8_t begin[tile / lanes];
    uint8_t end[tile / lanes];  ///< see begin
  };
  /// The runs of its queries that a group covers.
  enum class Part : uint8_t { all, long_runs, short_runs };
  /// Queries that share steps.
  struct Group {
    int64_t queries = 0;     ///< index in query_list() of the first of its `count` queries
    int32_t count = 0;       ///< number of queries, at most a tile
    int32_t gap = 1;         ///< distance from query to query; 0: distances differ
    bool alone = false;      ///< each query is computed by itself over its runs; there are no steps
    Part part = Part::all;   ///< the runs that this group covers
    int64_t first_step = 0;  ///< first index of its steps
    int64_t last_step = 0;   ///< index behind its last step
    int64_t kept = 0;        ///< number of pairs
    int32_t begin = 0;       ///< first key of the group
    int32_t end = 0;         ///< behind the last key of the group
  };
  /// Groups [begin, end). Those of the second pass add to the result of the first.
  struct Pass {
    int64_t begin;  ///< first index for group()
    int64_t end;    ///< behind the last one
  };

  /// The cheapest plan found by these costs of the device that will compute it.
  explicit BlockPlan(const Pattern& pattern, const PlanCosts& costs = {});

  int64_t heads() const { return heads_; }  ///< number of heads of the pattern; 1: all heads share it
  /// 2 where the short runs of some queries form groups of their own, else 1.
  int64_t passes() const { return passes_; }
  /// The groups of one pass and head; together those of pass 0 hold every query of the head once.
  Pass pass(int64_t head, int64_t index) const {
    return pass_[static_cast<size_t>((heads_ == 1 ? 0 : head) * passes_ + index)];
  }
  int64_t kept() const { return kept_; }              ///< pairs of all heads
  int64_t max_groups() const { return max_groups_; }  ///< largest number of groups of any head and pass
  /// 0 <= index; see pass().
  const Group& group(int64_t index) const { return groups_[static_cast<size_t>(index)]; }
  /// A step of a group: first_step <= index < last_step.
  const Step& step(int64_t index) const { return steps_[static_cast<size_t>(index)]; }
  /// The `group.count` queries of a group.
  const int32_t* queries(const Group& group) const { return queries_.data() + group.queries; }
  const int32_t* keys(const Step& step) const {
    return keys_.data() + step.keys;
  }  ///< the `step.count` keys of a step
  /// A word for each query of the step's group; see Step::pairs.
  const uint64_t* pairs(const Step& step) const { return pairs_.data() + step.pairs; }

  /// The lists in memory, for copies on a device: passes of each head in turn, and the lists they index.
  const std::vector<Pass>& pass_list() const { return pass_; }
  const std::vector<Group>& group_list() const { return groups_; }     ///< see group()
  const std::vector<Step>& step_list() const { return steps_; }        ///< see step()
  const std::vector<int32_t>& query_list() const { return queries_; }  ///< see queries()
  const std::vector<int32_t>& key_list() const { return keys_; }       ///< see keys()
  const std::vector<uint64_t>& pair_list() const { return pairs_; }    ///< see pairs()

 private:
  friend class BlockPlanner;

  int64_t heads_ = 1, passes_ = 1, max_groups_ = 0, kept_ = 0;
  std::vector<Pass> pass_;  ///< [heads, passes]
  std::vector<Group> groups_;
  std::vector<Step> steps_;
  std::vector<int32_t> queries_, keys_;
  std::vector<uint64_t> pairs_;
};

/// Calls f(begin, end) for the runs of one query that belong to `part`, cut off at key `keys`.
template <class F>
void each_run(const Pattern& pattern, BlockPlan::Part part, int64_t head, int64_t query, int64_t keys,
              F&& f) {
  const auto row = static_cast<size_t>((pattern.heads == 1 ? 0 : head) * pattern.queries + query);
  for (int64_t r = pattern.first[row]; r < pattern.first[row + 1]; ++r) {
    const Pattern::Run& run = pattern.runs[static_cast<size_t>(r)];
    if (run.begin >= keys) break;
    if (part != BlockPlan::Part::all &&
        (run.length() < BlockPlan::scattered) != (part == BlockPlan::Part::short_runs))
      continue;
    f(int64_t{run.begin}, run.end < keys ? int64_t{run.end} : keys);
  }
}

}  // namespace heed::kernel

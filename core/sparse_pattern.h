// Sparse attention patterns: which keys each query sees, and their split into tiles.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace heed::kernel {

class BlockPlan;
struct PlanOnDevice;

/// Which keys each query may look at, as runs: query i of head h owns runs[first[h Tq + i]] up to first[h Tq
/// + i + 1], each [begin, end) of keys, in order and without overlap. One head's pattern may serve all (heads
/// = 1).
struct Pattern {
  int64_t heads = 1;           ///< 1: one pattern for all heads
  int64_t queries = 0;         ///< Tq
  int64_t keys = 0;            ///< Tk
  std::vector<int64_t> first;  ///< [heads Tq + 1]
  /// Neighbouring keys.
  struct Run {
    int32_t begin;                                  ///< first key
    int32_t end;                                    ///< behind the last key
    int64_t length() const { return end - begin; }  ///< number of keys
  };
  std::vector<Run> runs;                                  ///< of all queries, in the order of `first`
  mutable std::shared_ptr<const BlockPlan> planned = {};  ///< see plan()
  /// The plans of the pattern and of its transpose on a device, built on first use.
  mutable std::shared_ptr<const PlanOnDevice> on_device = {};

  int64_t kept() const;  ///< entries of the map that are not masked, over all heads
  /// The plan of its tiles, built on first use. A pattern with a plan must not change.
  const BlockPlan& plan() const;
  /// The transpose: which queries see each key.
  Pattern turned() const;
};

/// Costs that a plan assumes, in units of one pair of a large tile.
struct PlanCosts {
  double pair[3] = {1, 1.1, 1.3};  ///< a pair in groups of 64, 32 and 16 queries
  double alone = 7;                ///< a pair of a query that goes by itself
  double gathering = 8;            ///< copying a key that lies apart, and adding up its gradient
  bool whole_tiles = false;        ///< each step of a group costs a whole tile, and no query goes by itself
};
/// On a device, blocks compute whole tiles, and gathering rows is free.
inline constexpr PlanCosts device_costs{.gathering = 0, .whole_tiles = true};

/// The pairs of a pattern as groups of queries that meet common keys. Queries that lie apart but look at the
/// same keys (columns of a stride) share a group, and keys that lie apart (columns, random blocks) share a
/// step: a group gathers them, and then both are small dense products. Long runs of a query and its scattered
/// keys may belong to two groups, the second of which adds to what the first has found.
class BlockPlan {
 public:
  static constexpr int64_t tile = 64;      ///< most queries of a group, most keys of a step
  static constexpr int64_t lanes = 16;     ///< queries of the smallest group
  static constexpr int64_t scattered = 4;  ///< runs shorter than this may be grouped by themselves

  /// Some keys that queries of a group meet.
  struct Step {
    int64_t keys;   ///< their numbers begin there in keys(), ascending
    int64_t pairs;  ///< one word for each query begins there in pairs(): bit n speaks of key n; -1: all meet
    int32_t count;  ///< of keys, at most a tile
    int32_t gap;    ///< distance from key to key; 0: they do not lie evenly
    /// Of its keys, queries lanes g up to lanes (g + 1) meet those from begin[g] up to end[g] at most.
    uint8_t begin[tile / lanes];  ///< per `lanes` queries, the first key met
    uint8_t end[tile / lanes];    ///< behind the last key met
  };
  /// Which runs of its queries a group covers.
  enum class Part : uint8_t { all, long_runs, short_runs };
  /// Queries that share steps.
  struct Group {
    int64_t queries;     ///< their numbers begin there in queries()
    int32_t count;       ///< at most a tile
    int32_t gap;         ///< distance from query to query; 0: they do not lie evenly
    bool alone;          ///< each query goes by itself through its runs; there are no steps
    Part part;           ///< the runs that this group covers
    int64_t first_step;  ///< first index of its steps
    int64_t last_step;   ///< behind its last step; step() takes them
    int64_t kept;        ///< pairs
    int32_t begin;       ///< no key of the group lies before
    int32_t end;         ///< nor at this one or behind
  };
  /// Groups [begin, end): those of the second pass add to what the first has found.
  struct Pass {
    int64_t begin;  ///< first index for group()
    int64_t end;    ///< behind the last one
  };

  /// `costs`: those of the machine that will compute it.
  explicit BlockPlan(const Pattern& pattern, const PlanCosts& costs = {});

  int64_t heads() const { return heads_; }  ///< as the pattern has them
  /// 2 where the short runs of some queries form groups of their own, else 1.
  int64_t passes() const { return passes_; }
  /// The groups of one pass and head; together those of pass 0 hold every query of the head once.
  Pass pass(int64_t head, int64_t index) const {
    return pass_[static_cast<size_t>((heads_ == 1 ? 0 : head) * passes_ + index)];
  }
  int64_t kept() const { return kept_; }              ///< pairs of all heads
  int64_t max_groups() const { return max_groups_; }  ///< of any head and pass
  /// 0 <= index; see pass().
  const Group& group(int64_t index) const { return groups_[static_cast<size_t>(index)]; }
  /// A step of a group: first_step <= index < last_step.
  const Step& step(int64_t index) const { return steps_[static_cast<size_t>(index)]; }
  /// `group.count` numbers.
  const int32_t* queries(const Group& group) const { return queries_.data() + group.queries; }
  const int32_t* keys(const Step& step) const { return keys_.data() + step.keys; }  ///< `step.count` numbers
  /// A word for each query of the step's group; see Step::pairs.
  const uint64_t* pairs(const Step& step) const { return pairs_.data() + step.pairs; }

  /// Everything as it lies in memory: passes of each head in turn, and what their indices point at.
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

/// Calls f(begin, end) for the runs of one query that belong to `part`, those at `keys` and past it cut off.
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

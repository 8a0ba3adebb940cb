// Sparse attention patterns: which keys each query attends to. Their tiles: core/block_plan.h.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace heed::kernel {

class BlockPlan;
struct PlanOnDevice;

/// The keys that each query attends to, as ascending runs [begin, end) that do not overlap. Query i of head h
/// has runs[r] for first[h Tq + i] <= r < first[h Tq + i + 1]. With heads = 1 all heads share the pattern.
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
  std::vector<Run> runs;                                     ///< runs of all queries, in the order of `first`
  mutable std::shared_ptr<const BlockPlan> block_plan = {};  ///< see plan()
  /// The plans of the pattern and of its transpose on a device, built on first use.
  mutable std::shared_ptr<const PlanOnDevice> on_device = {};

  int64_t kept() const;  ///< pairs of a query and a key that it attends to, over all heads
  /// The plan of its tiles, built on first use. A pattern with a plan must not change.
  const BlockPlan& plan() const;
  /// The transpose: which queries attend to each key.
  Pattern transposed() const;
};

}  // namespace heed::kernel

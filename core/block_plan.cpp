// Finds the cheapest groups and steps for a sparse pattern.
#include "heed/core/block_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <mutex>
#include <numeric>

#include "heed/core/ceil_div.h"
#include "heed/core/key_bitset.h"

namespace heed::kernel {
namespace {

constexpr int64_t min_group = BlockPlan::lanes;
/// Up to 3 queries (decoding) are computed one by one: vectors of them would be mostly empty.
constexpr int64_t few_queries = 3;
/// Step::begin and Step::end are multiples of this, the rows of a block in products.
constexpr int64_t block = 8;

/// The distance between neighbours of an ascending list; 0 where distances differ.
int32_t gap_of(const int32_t* numbers, int64_t count) {
  const int32_t gap = count > 1 ? numbers[1] - numbers[0] : 1;
  for (int64_t i = 1; i < count; ++i) {
    if (numbers[i] - numbers[i - 1] != gap) return 0;
  }
  return std::max(gap, 0);
}

}  // namespace

/// Finds the cheapest groups for the pattern of each head. A head has one or two orders of its queries: as
/// they are, and by the columns of a stride. In an order, each tile of 64 queries is cut into the cheapest
/// groups of 64, 32 or 16 queries, or queries by themselves.
class BlockPlanner {
 public:
  using Part = BlockPlan::Part;
  using Step = BlockPlan::Step;
  /// An order of all queries of a head. `classes` has ascending ends of classes, which no group crosses.
  struct Order {
    std::vector<int32_t> queries;
    std::vector<int64_t> classes = {};

    int64_t size() const { return static_cast<int64_t>(queries.size()); }
    int32_t operator[](int64_t i) const { return queries[static_cast<size_t>(i)]; }
    int64_t end_of_tile(int64_t begin) const {
      const auto next = std::upper_bound(classes.begin(), classes.end(), begin);
      const int64_t limit = next == classes.end() ? size() : *next;
      return std::min(begin + BlockPlan::tile, limit);
    }
  };

  BlockPlanner(const Pattern& pattern, const PlanCosts& costs, BlockPlan& plan)
      : pattern_(pattern), costs_(costs), plan_(plan) {
    plan_.heads_ = pattern.heads;
    plan_.kept_ = pattern.kept();
  }

  void run() {
    if (pattern_.queries <= few_queries && !costs_.whole_tiles) {
      for (int64_t head = 0; head < pattern_.heads; ++head) one_by_one(head);
      return;
    }
    for (int i = 0; i < num_sets; ++i) sets_.emplace_back(pattern_.keys);
    std::vector<bool> has_two_passes(static_cast<size_t>(pattern_.heads));
    std::vector<Order> order(has_two_passes.size());
    Order plain{std::vector<int32_t>(static_cast<size_t>(pattern_.queries))};
    std::iota(plain.queries.begin(), plain.queries.end(), 0);
    for (int64_t head = 0; head < pattern_.heads; ++head) {
      const auto h = static_cast<size_t>(head);
      bool all_short = true;
      if (!order_by_stride(head, order[h], all_short) || order[h].queries == plain.queries) {
        order[h] = plain;
        continue;
      }
      const double together = cost(head, plain, Part::all);
      const double split = all_short
                               ? cost(head, order[h], Part::all)
                               : cost(head, plain, Part::long_runs) + cost(head, order[h], Part::short_runs);
      if (split >= together) {
        order[h] = plain;
      } else if (!all_short) {
        has_two_passes[h] = true;
        plan_.passes_ = 2;
      }
    }
    for (int64_t head = 0; head < pattern_.heads; ++head) {
      const auto h = static_cast<size_t>(head);
      build(head, has_two_passes[h] ? plain : order[h], has_two_passes[h] ? Part::long_runs : Part::all);
      if (has_two_passes[h]) {
        build(head, order[h], Part::short_runs);
      } else if (plan_.passes_ == 2) {
        plan_.pass_.push_back({0, 0});
      }
    }
  }

 private:
  /// Plans one group whose queries are computed by themselves.
  void one_by_one(int64_t head) {
    const auto count = static_cast<int32_t>(pattern_.queries);
    BlockPlan::Group all{.count = count, .alone = true};
    for (int32_t i = 0; i < count; ++i) {
      if (head == 0) plan_.queries_.push_back(i);
      each_run(pattern_, Part::all, head, i, pattern_.keys, [&](int64_t begin, int64_t end) {
        all.begin =
            all.end == 0 ? static_cast<int32_t>(begin) : std::min(all.begin, static_cast<int32_t>(begin));
        all.end = std::max(all.end, static_cast<int32_t>(end));
        all.kept += end - begin;
      });
    }
    plan_.groups_.push_back(all);
    plan_.pass_.push_back({head, head + 1});
    plan_.max_groups_ = 1;
  }

  /// Orders queries by (first scattered key) mod (distance between scattered keys): in a pattern of strides,
  /// queries of one residue attend to the same columns. False where most queries have no such distance.
  /// Clears `all_short` where a query has a long run.
  bool order_by_stride(int64_t head, Order& order, bool& all_short) const {
    const int64_t queries = pattern_.queries;
    // The distance between scattered keys that most queries have, by majority vote.
    int64_t gap = 0, votes = 0;
    std::vector<int64_t> first(static_cast<size_t>(queries), -1);
    for (int64_t i = 0; i < queries; ++i) {
      int64_t second = -1, found = 0;
      each_run(pattern_, Part::all, head, i, pattern_.keys, [&](int64_t begin, int64_t end) {
        if (end - begin >= BlockPlan::scattered) {
          all_short = false;
          return;
        }
        if (found++ == 0) first[static_cast<size_t>(i)] = begin;
        if (found == 2) second = begin;
      });
      if (second < 0) continue;
      const int64_t distance = second - first[static_cast<size_t>(i)];
      if (votes == 0) gap = distance;
      votes += distance == gap ? 1 : -1;
    }
    if (gap < 2) return false;
    std::vector<int64_t> residue(first.size());
    for (size_t i = 0; i < first.size(); ++i) residue[i] = first[i] < 0 ? -1 : first[i] % gap;
    order.queries.resize(first.size());
    std::iota(order.queries.begin(), order.queries.end(), 0);
    const auto residue_at = [&](int64_t i) { return residue[static_cast<size_t>(order[i])]; };
    std::stable_sort(order.queries.begin(), order.queries.end(), [&](int32_t a, int32_t b) {
      return residue[static_cast<size_t>(a)] < residue[static_cast<size_t>(b)];
    });
    int64_t begin = 0;
    for (int64_t i = 1; i <= queries; ++i) {
      if (i < queries && residue_at(i) == residue_at(begin)) continue;
      // Small classes share groups.
      if (i - begin >= min_group) order.classes.push_back(i);
      begin = i;
    }
    return true;
  }

  /// set = the keys that queries [begin, end) of the order attend to; returns the number of pairs.
  int64_t collect_keys(int64_t head, const Order& order, Part part, int64_t begin, int64_t end,
                       KeyBits& set) const {
    int64_t kept = 0;
    set.clear();
    for (int64_t i = begin; i < end; ++i) {
      each_run(pattern_, part, head, order[i], pattern_.keys, [&](int64_t first_key, int64_t end_key) {
        if (end_key <= first_key) return;
        set.add(first_key, end_key);
        kept += end_key - first_key;
      });
    }
    return kept;
  }

  /// The cost of one group that attends to the keys `all`. Its queries are 16 for each of the sets
  /// sets_[first_set] to sets_[end_set - 1]; `level` is the index of its size in PlanCosts::pair.
  double cost_of(const KeyBits& all, int64_t first_set, int64_t end_set, int level) const {
    int64_t keys = 0, runs = 0, pairs = 0;
    all.count(keys, runs);
    if (costs_.whole_tiles)
      return static_cast<double>(ceil_div(keys, BlockPlan::tile) * BlockPlan::tile * BlockPlan::tile);
    for (int64_t g = first_set; g < end_set; ++g) {
      const KeyBits& set = sets_[static_cast<size_t>(g)];
      if (set.last() >= 0) pairs += min_group * (all.upto(set.last()) - all.upto(set.first() - 1));
    }
    const double gathered = runs > 1 && keys < BlockPlan::tile * runs ? costs_.gathering : 0;
    return static_cast<double>(pairs) * costs_.pair[level] + static_cast<double>(keys) * gathered;
  }

  /// The cost of the cheapest cut of queries [begin, end) of the order, a tile at most, into groups. Writes
  /// their `sizes`: 64, 32, 16, or -16 for queries that are computed by themselves.
  double cut(int64_t head, const Order& order, Part part, int64_t begin, int64_t end,
             std::vector<int64_t>& sizes) {
    double quarter[4] = {}, half[2] = {};  // cheapest costs of 16 and of 32 queries
    bool alone[4] = {}, is_group[2] = {};  // how they are reached
    for (int64_t g = 0; g < 4; ++g) {
      const int64_t first = std::min(begin + g * min_group, end), behind = std::min(first + min_group, end);
      const int64_t set_index = first_quarter + g;
      const int64_t kept = collect_keys(head, order, part, first, behind, set(set_index));
      const double single = costs_.whole_tiles ? HUGE_VAL : costs_.alone * static_cast<double>(kept);
      quarter[g] = cost_of(set(set_index), set_index, set_index + 1, 2);
      alone[g] = single < quarter[g];
      quarter[g] = std::min(single, quarter[g]);
    }
    for (int64_t s = 0; s < 2; ++s) {
      const int64_t left = first_quarter + 2 * s;
      unite(set(first_half + s), set(left), set(left + 1));
      const double apart = quarter[2 * s] + quarter[2 * s + 1];
      half[s] = cost_of(set(first_half + s), left, left + 2, 1);
      is_group[s] = half[s] <= apart;
      half[s] = std::min(half[s], apart);
    }
    unite(set(whole), set(first_half), set(first_half + 1));
    const double whole_cost = cost_of(set(whole), first_quarter, num_sets, 0);
    sizes.clear();
    if (whole_cost <= half[0] + half[1]) {
      sizes.push_back(BlockPlan::tile);
      return whole_cost;
    }
    for (int64_t s = 0; s < 2; ++s) {
      if (is_group[s]) {
        sizes.push_back(2 * min_group);
      } else {
        for (int64_t g = 2 * s; g < 2 * s + 2; ++g) sizes.push_back(alone[g] ? -min_group : min_group);
      }
    }
    return half[0] + half[1];
  }

  /// to = a united with b.
  static void unite(KeyBits& to, const KeyBits& a, const KeyBits& b) {
    to.clear();
    to.join(a);
    to.join(b);
  }

  /// The cost of the cheapest groups of all queries in this order.
  double cost(int64_t head, const Order& order, Part part) {
    double total = 0;
    std::vector<int64_t> sizes;
    for (int64_t begin = 0; begin < order.size();) {
      const int64_t end = order.end_of_tile(begin);
      total += cut(head, order, part, begin, end, sizes);
      begin = end;
    }
    return total;
  }

  /// Appends the cheapest groups of all queries in this order, as one pass.
  void build(int64_t head, const Order& order, Part part) {
    const auto first_group = static_cast<int64_t>(plan_.groups_.size());
    const auto queries = static_cast<int64_t>(plan_.queries_.size());
    plan_.queries_.insert(plan_.queries_.end(), order.queries.begin(), order.queries.end());
    std::vector<int64_t> sizes;
    for (int64_t begin = 0; begin < order.size();) {
      const int64_t tile_end = order.end_of_tile(begin);
      cut(head, order, part, begin, tile_end, sizes);
      for (const int64_t size : sizes) {
        const int64_t end = std::min(begin + std::abs(size), tile_end);
        if (begin < end) append_group(head, order, part, begin, end, size < 0, queries + begin);
        begin = end;
      }
    }
    const auto last_group = static_cast<int64_t>(plan_.groups_.size());
    plan_.pass_.push_back({first_group, last_group});
    plan_.max_groups_ = std::max(plan_.max_groups_, last_group - first_group);
  }

  /// Appends the group of queries [begin, end) of the order. `queries`: index of the first in the list of
  /// queries.
  void append_group(int64_t head, const Order& order, Part part, int64_t begin, int64_t end, bool alone,
                    int64_t queries) {
    KeyBits& seen = set(whole);
    const int64_t kept = collect_keys(head, order, part, begin, end, seen);
    // The second pass adds nothing to queries without scattered keys.
    if (kept == 0 && part == Part::short_runs) return;
    const auto count = static_cast<int32_t>(end - begin);
    BlockPlan::Group made{.queries = queries,
                          .count = count,
                          .gap = gap_of(order.queries.data() + begin, end - begin),
                          .alone = alone,
                          .part = part,
                          .first_step = static_cast<int64_t>(plan_.steps_.size()),
                          .kept = kept};
    keys_.clear();
    seen.list(keys_);
    if (!keys_.empty()) {
      made.begin = keys_.front();
      made.end = keys_.back() + 1;
    }
    if (!alone) append_steps(head, order, part, begin, end, seen);
    made.last_step = static_cast<int64_t>(plan_.steps_.size());
    plan_.groups_.push_back(made);
  }

  /// Appends the steps of the group of queries [begin, end), which attends to the keys `seen`, listed in
  /// keys_.
  void append_steps(int64_t head, const Order& order, Part part, int64_t begin, int64_t end,
                    const KeyBits& seen) {
    constexpr int64_t tile = BlockPlan::tile;
    const auto num_keys = static_cast<int64_t>(keys_.size());
    const int64_t count = end - begin, num_steps = ceil_div(num_keys, tile);
    const auto first_key = static_cast<int64_t>(plan_.keys_.size());
    plan_.keys_.insert(plan_.keys_.end(), keys_.begin(), keys_.end());
    words_.assign(static_cast<size_t>(num_steps * count), 0);
    for (int64_t i = begin; i < end; ++i) {
      each_run(pattern_, part, head, order[i], pattern_.keys, [&](int64_t first_of_run, int64_t end_of_run) {
        if (end_of_run <= first_of_run) return;
        // Positions of the run's keys in keys_, and of its bits in the word of each step.
        const int64_t low = seen.place(first_of_run), high = seen.place(end_of_run - 1) + 1;
        for (int64_t s = low / tile; s * tile < high; ++s) {
          const int64_t first_bit = std::max<int64_t>(low - s * tile, 0),
                        end_bit = std::min(high - s * tile, tile);
          words_[static_cast<size_t>(s * count + i - begin)] |= (~uint64_t{0} >> (64 - (end_bit - first_bit)))
                                                                << first_bit;
        }
      });
    }
    for (int64_t s = 0; s < num_steps; ++s) {
      const int64_t position = s * tile, length = std::min(tile, num_keys - position);
      const uint64_t full = ~uint64_t{0} >> (64 - length);
      const auto step_words = words_.begin() + s * count;
      const bool is_full =
          std::all_of(step_words, step_words + count, [full](uint64_t bits) { return bits == full; });
      Step step{.keys = first_key + position,
                .pairs = is_full ? -1 : static_cast<int64_t>(plan_.pairs_.size()),
                .count = static_cast<int32_t>(length),
                .gap = gap_of(keys_.data() + position, length),
                .begin = {},
                .end = {}};
      for (int64_t g = 0; g * min_group < count; ++g) {
        uint64_t bits = 0;
        for (int64_t i = g * min_group; i < std::min((g + 1) * min_group, count); ++i) bits |= step_words[i];
        if (bits == 0) continue;
        const int64_t first = std::countr_zero(bits), past = 64 - std::countl_zero(bits);
        step.begin[g] = static_cast<uint8_t>(first / block * block);
        step.end[g] = static_cast<uint8_t>(std::min(ceil_div(past, block) * block, length));
      }
      plan_.steps_.push_back(step);
      if (!is_full) plan_.pairs_.insert(plan_.pairs_.end(), step_words, step_words + count);
    }
  }

  /// Indices of sets_: the keys of a whole tile of queries, of its halves and of its quarters.
  static constexpr int64_t whole = 0, first_half = 1, first_quarter = 3, num_sets = 7;
  KeyBits& set(int64_t index) { return sets_[static_cast<size_t>(index)]; }

  const Pattern& pattern_;
  const PlanCosts& costs_;
  BlockPlan& plan_;
  std::vector<KeyBits> sets_;
  std::vector<int32_t> keys_;    // keys of the group that is appended, ascending
  std::vector<uint64_t> words_;  // see BlockPlan::pairs(): [steps, queries of the group]
};

BlockPlan::BlockPlan(const Pattern& pattern, const PlanCosts& costs) {
  BlockPlanner(pattern, costs, *this).run();
}

const BlockPlan& Pattern::plan() const {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (!block_plan) block_plan = std::make_shared<const BlockPlan>(*this);
  return *block_plan;
}

}  // namespace heed::kernel

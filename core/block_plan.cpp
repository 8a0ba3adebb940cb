// Plans the tiles of sparse patterns by their cost.
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

constexpr int64_t smallest = BlockPlan::lanes;
/// At most so many queries (decoding) are computed one by one: vectors of them would be mostly empty.
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

/// Finds the cheapest groups for the pattern of each head.
class BlockPlanner {
 public:
  using Part = BlockPlan::Part;
  using Step = BlockPlan::Step;
  /// An order of all queries of a head. No group contains queries on both sides of an index in `classes`.
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
    for (int i = 0; i < 7; ++i) sets_.emplace_back(pattern_.keys);
    std::vector<bool> has_two_passes(static_cast<size_t>(pattern_.heads));
    std::vector<Order> order(has_two_passes.size());
    Order plain{std::vector<int32_t>(static_cast<size_t>(pattern_.queries))};
    std::iota(plain.queries.begin(), plain.queries.end(), 0);
    for (int64_t head = 0; head < pattern_.heads; ++head) {
      const auto h = static_cast<size_t>(head);
      bool all_short = true;
      if (!lattice(head, order[h], all_short) || order[h].queries == plain.queries) {
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
    BlockPlan::Group all{.queries = 0,
                         .count = count,
                         .gap = 1,
                         .alone = true,
                         .part = Part::all,
                         .first_step = 0,
                         .last_step = 0,
                         .kept = 0,
                         .begin = 0,
                         .end = 0};
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

  /// Orders queries by the residue of their scattered keys modulo the distance between these, as in columns
  /// of a stride. False where there is no such distance. Clears `all_short` where a query has a long run.
  bool lattice(int64_t head, Order& order, bool& all_short) const {
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
    const auto of = [&](int64_t i) { return residue[static_cast<size_t>(order[i])]; };
    std::stable_sort(order.queries.begin(), order.queries.end(), [&](int32_t a, int32_t b) {
      return residue[static_cast<size_t>(a)] < residue[static_cast<size_t>(b)];
    });
    int64_t begin = 0;
    for (int64_t i = 1; i <= queries; ++i) {
      if (i < queries && of(i) == of(begin)) continue;
      // Small classes share groups.
      if (i - begin >= smallest) order.classes.push_back(i);
      begin = i;
    }
    return true;
  }

  /// Collects the keys that queries [begin, end) of the order attend to in `set`; returns the number of
  /// pairs.
  int64_t mark(int64_t head, const Order& order, Part part, int64_t begin, int64_t end, KeyBits& set) const {
    int64_t kept = 0;
    set.clear();
    for (int64_t i = begin; i < end; ++i) {
      each_run(pattern_, part, head, order[i], pattern_.keys, [&](int64_t from, int64_t to) {
        if (to <= from) return;
        set.add(from, to);
        kept += to - from;
      });
    }
    return kept;
  }

  /// The cost of one group with the keys `all`, made of the queries of sets_[from] to sets_[to - 1], 16 each.
  /// `level`: index in PlanCosts::pair of the group's size.
  double cost_of(const KeyBits& all, int64_t from, int64_t to, int level) const {
    int64_t keys = 0, runs = 0, pairs = 0;
    all.count(keys, runs);
    if (costs_.whole_tiles)
      return static_cast<double>(ceil_div(keys, BlockPlan::tile) * BlockPlan::tile * BlockPlan::tile);
    for (int64_t g = from; g < to; ++g) {
      const KeyBits& set = sets_[static_cast<size_t>(g)];
      if (set.last() >= 0) pairs += smallest * (all.upto(set.last()) - all.upto(set.first() - 1));
    }
    const double gathered = runs > 1 && keys < BlockPlan::tile * runs ? costs_.gathering : 0;
    return static_cast<double>(pairs) * costs_.pair[level] + static_cast<double>(keys) * gathered;
  }

  /// The cost of the cheapest cut of queries [begin, all) of the order, a tile at most, into groups. Writes
  /// their `sizes`: 64, 32, 16, or -16 for queries that are computed by themselves.
  double cut(int64_t head, const Order& order, Part part, int64_t begin, int64_t all,
             std::vector<int64_t>& sizes) {
    double quarter[4] = {}, half[2] = {};
    bool alone[4] = {}, joined[2] = {};
    for (int64_t g = 0; g < 4; ++g) {
      const int64_t from = std::min(begin + g * smallest, all), to = std::min(from + smallest, all);
      const int64_t kept = mark(head, order, part, from, to, set(3 + g));
      const double single = costs_.whole_tiles ? HUGE_VAL : costs_.alone * static_cast<double>(kept);
      quarter[g] = cost_of(set(3 + g), 3 + g, 4 + g, 2);
      alone[g] = single < quarter[g];
      quarter[g] = std::min(single, quarter[g]);
    }
    for (int64_t s = 0; s < 2; ++s) {
      set(1 + s).clear();
      set(1 + s).join(set(3 + 2 * s));
      set(1 + s).join(set(4 + 2 * s));
      const double apart = quarter[2 * s] + quarter[2 * s + 1];
      half[s] = cost_of(set(1 + s), 3 + 2 * s, 5 + 2 * s, 1);
      joined[s] = half[s] <= apart;
      half[s] = std::min(half[s], apart);
    }
    set(0).clear();
    set(0).join(set(1));
    set(0).join(set(2));
    const double whole = cost_of(set(0), 3, 7, 0);
    sizes.clear();
    if (whole <= half[0] + half[1]) {
      sizes.push_back(BlockPlan::tile);
      return whole;
    }
    for (int64_t s = 0; s < 2; ++s) {
      if (joined[s]) {
        sizes.push_back(2 * smallest);
      } else {
        for (int64_t g = 2 * s; g < 2 * s + 2; ++g) sizes.push_back(alone[g] ? -smallest : smallest);
      }
    }
    return half[0] + half[1];
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
      const int64_t all = order.end_of_tile(begin);
      cut(head, order, part, begin, all, sizes);
      for (const int64_t size : sizes) {
        const int64_t end = std::min(begin + std::abs(size), all);
        if (begin < end) group(head, order, part, begin, end, size < 0, queries + begin);
        begin = end;
      }
    }
    const auto last_group = static_cast<int64_t>(plan_.groups_.size());
    plan_.pass_.push_back({first_group, last_group});
    plan_.max_groups_ = std::max(plan_.max_groups_, last_group - first_group);
  }

  /// Appends the group of queries [begin, end) of the order. `queries`: index of the first in the list of
  /// queries.
  void group(int64_t head, const Order& order, Part part, int64_t begin, int64_t end, bool alone,
             int64_t queries) {
    KeyBits& seen = set(0);
    const int64_t kept = mark(head, order, part, begin, end, seen);
    // The second pass adds nothing to queries without scattered keys.
    if (kept == 0 && part == Part::short_runs) return;
    const auto count = static_cast<int32_t>(end - begin);
    BlockPlan::Group made{.queries = queries,
                          .count = count,
                          .gap = gap_of(order.queries.data() + begin, end - begin),
                          .alone = alone,
                          .part = part,
                          .first_step = static_cast<int64_t>(plan_.steps_.size()),
                          .last_step = 0,
                          .kept = kept,
                          .begin = 0,
                          .end = 0};
    keys_.clear();
    seen.list(keys_);
    if (!keys_.empty()) {
      made.begin = keys_.front();
      made.end = keys_.back() + 1;
    }
    if (!alone) steps(head, order, part, begin, end, seen);
    made.last_step = static_cast<int64_t>(plan_.steps_.size());
    plan_.groups_.push_back(made);
  }

  /// Appends the steps of the group of queries [begin, end), which attends to the keys `seen`, listed in
  /// keys_.
  void steps(int64_t head, const Order& order, Part part, int64_t begin, int64_t end, const KeyBits& seen) {
    constexpr int64_t tile = BlockPlan::tile;
    const auto all = static_cast<int64_t>(keys_.size());
    const int64_t count = end - begin, steps = ceil_div(all, tile);
    const auto first_key = static_cast<int64_t>(plan_.keys_.size());
    plan_.keys_.insert(plan_.keys_.end(), keys_.begin(), keys_.end());
    words_.assign(static_cast<size_t>(steps * count), 0);
    for (int64_t i = begin; i < end; ++i) {
      each_run(pattern_, part, head, order[i], pattern_.keys, [&](int64_t from, int64_t to) {
        if (to <= from) return;
        const int64_t low = seen.place(from), high = seen.place(to - 1) + 1;
        for (int64_t s = low / tile; s * tile < high; ++s) {
          const int64_t a = std::max<int64_t>(low - s * tile, 0), b = std::min(high - s * tile, tile);
          words_[static_cast<size_t>(s * count + i - begin)] |= (~uint64_t{0} >> (64 - (b - a))) << a;
        }
      });
    }
    for (int64_t s = 0; s < steps; ++s) {
      const int64_t at = s * tile, length = std::min(tile, all - at);
      const uint64_t full = ~uint64_t{0} >> (64 - length);
      const auto word = words_.begin() + s * count;
      const bool is_full = std::all_of(word, word + count, [full](uint64_t bits) { return bits == full; });
      Step step{.keys = first_key + at,
                .pairs = is_full ? -1 : static_cast<int64_t>(plan_.pairs_.size()),
                .count = static_cast<int32_t>(length),
                .gap = gap_of(keys_.data() + at, length),
                .begin = {},
                .end = {}};
      for (int64_t g = 0; g * smallest < count; ++g) {
        uint64_t bits = 0;
        for (int64_t i = g * smallest; i < std::min((g + 1) * smallest, count); ++i) bits |= word[i];
        if (bits == 0) continue;
        const int64_t first = std::countr_zero(bits), past = 64 - std::countl_zero(bits);
        step.begin[g] = static_cast<uint8_t>(first / block * block);
        step.end[g] = static_cast<uint8_t>(std::min(ceil_div(past, block) * block, length));
      }
      plan_.steps_.push_back(step);
      if (!is_full) plan_.pairs_.insert(plan_.pairs_.end(), word, word + count);
    }
  }

  KeyBits& set(int64_t index) { return sets_[static_cast<size_t>(index)]; }

  const Pattern& pattern_;
  const PlanCosts& costs_;
  BlockPlan& plan_;
  std::vector<KeyBits> sets_;
  std::vector<int32_t> keys_;
  std::vector<uint64_t> words_;
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

// Finds the buds of queries on the CPU, for any kind of mass: splits nodes, from the root or one level on.
#pragma once

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "heed/core/distributed/batch_shard.h"
#include "heed/core/kernels/attention/head_rows.h"
#include "heed/core/kernels/content/sum_heap.h"
#include "heed/core/kernels/content/tree_buds.h"
#include "heed/core/kernels/content/tree_node.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {

/// A node and its mass: of all buds, those of large mass are split.
struct Bud {
  TreeNode node;
  double mass;
};

/// Uniform random numbers for one query. Number n is that of the query's row in the whole batch, or of its
/// position where the draw has no tick.
class BudRandom {
 public:
  BudRandom(const BudParams& params, int64_t row, int64_t query)
      : params_(params),
        row_(static_cast<uint64_t>(params.draw.tick ? row : params.visible.first_query + query)),
        query_(query) {
    if (!params.draws)
      high_ = Draw::high(params.draw.stream, params.draw.tick ? *params.draw.tick.data<int64_t>() : 0);
  }
  /// Draws the next number in [0, 1).
  double next() {
    const int64_t n = drawn_++;
    if (params_.draws) return params_.draws.data<double>()[query_ * params_.draws.extent(1) + n];
    const Philox bits = Philox::at(params_.draw.seed, (row_ << 24) + static_cast<uint64_t>(n), high_);
    return static_cast<double>(((uint64_t{bits.word[0]} << 32) | bits.word[1]) >> 11) * 0x1p-53;
  }

 private:
  const BudParams& params_;
  uint64_t row_, high_ = 0;
  int64_t query_, drawn_ = 0;
};

/// Finds the buds of one query after another. Masses has
///   set_query(b, i, leaves)  begins query i of sequence b
///   of(node)                 its mass; 0 for one that cannot be split
///   flops                    number of operations so far
template <class Masses>
class BudGrowth {
 public:
  BudGrowth(Masses masses, const BudParams& params)
      : masses_(std::move(masses)), params_(params), heap_(params.greedy ? 1 : bud_capacity(params)) {}

  /// Buds of query i of sequence b, in order of their leaves. `row` is its index among the queries of the
  /// whole batch, on which its random numbers depend.
  const std::vector<Bud>& grow(int64_t b, int64_t i, int64_t row) {
    buds_.clear();
    const int64_t leaves = params_.visible.count(b, i);
    if (leaves == 0) return buds_;
    masses_.set_query(b, i, leaves);
    if (params_.greedy) {
      split_largest(leaves);
    } else {
      BudRandom random(params_, row, i);
      split_randomly(leaves, random);
    }
    const auto size = static_cast<uint64_t>(buds_.size());
    masses_.flops += static_cast<int64_t>(size * static_cast<uint64_t>(std::bit_width(size)));
    std::sort(buds_.begin(), buds_.end(),
              [](const Bud& x, const Bud& y) { return x.node.begin() < y.node.begin(); });
    return buds_;
  }
  int64_t flops() const { return masses_.flops; }

 private:
  /// Replaces bud `at` by its left child and appends its right child, unless that has no leaf.
  void split(size_t at, int64_t leaves, double mass) {
    const TreeNode node = buds_[at].node;
    if (node.right().begin() >= leaves) {
      buds_[at] = {node.left(), mass};
      return;
    }
    buds_[at] = {node.left(), masses_.of(node.left())};
    buds_.push_back({node.right(), masses_.of(node.right())});
  }

  /// Splits the bud of largest mass, the earlier one of equals, until there are enough: order_ is a heap of
  /// buds.
  void split_largest(int64_t leaves) {
    const auto num_buds = static_cast<size_t>(bud_count(leaves, params_.exponent));
    const auto splits_later = [&](size_t x, size_t y) {
      const Bud &one = buds_[x], &other = buds_[y];
      return one.mass < other.mass || (one.mass == other.mass && one.node.begin() > other.node.begin());
    };
    const TreeNode root{tree_height(leaves), 0};
    buds_.push_back({root, masses_.of(root)});
    order_.assign(1, 0);
    while (buds_.size() < num_buds) {
      std::pop_heap(order_.begin(), order_.end(), splits_later);
      const size_t at = order_.back(), before = buds_.size();
      split(at, leaves, buds_[at].mass);
      std::push_heap(order_.begin(), order_.end(), splits_later);
      if (buds_.size() > before) {
        order_.push_back(before);
        std::push_heap(order_.begin(), order_.end(), splits_later);
      }
      masses_.flops += 3 * std::bit_width(order_.size());
    }
  }

  /// Splits buds drawn in proportion to their masses, `parallel` at a time without replacement, until there
  /// are enough. Begins with the nodes of the level that has `parallel` of them.
  void split_randomly(int64_t leaves, BudRandom& random) {
    const auto num_buds = static_cast<size_t>(bud_count(leaves, params_.exponent));
    heap_.clear();
    int64_t num_splittable = 0;
    const auto add_to_heap = [&](size_t at) {
      heap_.set(static_cast<int64_t>(at), buds_[at].mass);
      if (buds_[at].mass > 0) ++num_splittable;
    };
    const int64_t height = tree_height(leaves);
    const int64_t level =
        std::max<int64_t>(0, height - (std::bit_width(static_cast<uint64_t>(params_.parallel)) - 1));
    for (TreeNode node{level, 0}; node.begin() < leaves; ++node.index) {
      buds_.push_back({node, masses_.of(node)});
      add_to_heap(buds_.size() - 1);
    }
    while (buds_.size() < num_buds) {
      drawn_.clear();
      for (int64_t n = std::min(params_.parallel, num_splittable); n > 0; --n) {
        const int64_t slot = heap_.draw(random.next());
        drawn_.push_back({static_cast<size_t>(slot), buds_[static_cast<size_t>(slot)].mass});
        heap_.set(slot, 0);
        --num_splittable;
        masses_.flops += 3 * std::bit_width(static_cast<uint64_t>(buds_.size()));
      }
      for (const auto& [slot, mass] : drawn_) {
        const size_t before = buds_.size();
        split(slot, leaves, mass);
        add_to_heap(slot);
        if (buds_.size() > before) add_to_heap(before);
      }
    }
  }

  Masses masses_;
  const BudParams& params_;
  SumHeap heap_;
  std::vector<Bud> buds_;
  std::vector<size_t> order_;
  std::vector<std::pair<size_t, double>> drawn_;
};

/// buds[b, i, :] = rows of the nodes that are the buds of query i, in the order of their leaves, then -1. One
/// task is some queries (b, i), with masses of its own from make_masses().
template <class Make>
void grow_all_buds(const BudParams& params, int64_t flops_per_query, const Tensor& buds, Make&& make_masses) {
  const int64_t batch = buds.extent(0), queries = buds.extent(1), capacity = buds.extent(2);
  int32_t* to = buds.data<int32_t>();
  const auto skipped = static_cast<int64_t>(skipped_draws(batch * queries));  // queries of other processes
  parallel_rows(batch * queries, flops_per_task / flops_per_query, [&](int64_t begin, int64_t end) {
    BudGrowth growth(make_masses(), params);
    for (int64_t query = begin; query < end; ++query) {
      const std::vector<Bud>& found = growth.grow(query / queries, query % queries, skipped + query);
      int32_t* row = to + query * capacity;
      for (const Bud& bud : found) *row++ = static_cast<int32_t>(bud.node.row());
      std::fill(row, to + (query + 1) * capacity, -1);
    }
    Count::add(growth.flops());
  });
}

}  // namespace heed::kernel

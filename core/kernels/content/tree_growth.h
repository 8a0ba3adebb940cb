// Grows the buds of queries on the CPU, for any kind of mass: splits nodes from the top of the tree down.
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

/// A chosen node and its mass; buds of large mass are split.
struct Bud {
  TreeNode node;
  double mass;
};

/// Uniform random numbers for one query: BudParams::draws, or numbers that depend on the query's row in the
/// whole batch; without a tick, on its position only.
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
    const int64_t n = num_drawn_++;
    if (params_.draws) return params_.draws.data<double>()[query_ * params_.draws.extent(1) + n];
    constexpr int max_draws_bits = 24;  // a query draws fewer than 2^24 numbers
    const Philox random =
        Philox::at(params_.draw.seed, (row_ << max_draws_bits) + static_cast<uint64_t>(n), high_);
    // The upper 53 of 64 random bits, as many as a double holds.
    return static_cast<double>(((uint64_t{random.word[0]} << 32) | random.word[1]) >> 11) * 0x1p-53;
  }

 private:
  const BudParams& params_;
  uint64_t row_, high_ = 0;
  int64_t query_, num_drawn_ = 0;
};

/// Grows the buds of one query after another. Masses has
///   set_query(b, i, leaves)  selects query i of sequence b, which sees this many leaves
///   of(node)                 returns the mass of a node; 0 for one that cannot be split
///   flops                    is the number of operations so far
template <class Masses>
class BudGrowth {
 public:
  BudGrowth(Masses masses, const BudParams& params)
      : masses_(std::move(masses)), params_(params), heap_(params.greedy ? 1 : bud_capacity(params)) {}

  /// Returns the buds of query i of sequence b, in order of their leaves. `row` is the index of the query in
  /// the whole batch, on which its random numbers depend.
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
  /// Replaces a bud by its left child and appends its right child. A right child without leaves is dropped,
  /// and the left child keeps the mass of the bud.
  void split(size_t index, int64_t leaves, double mass) {
    const TreeNode node = buds_[index].node;
    if (node.right().begin() >= leaves) {
      buds_[index] = {node.left(), mass};
      return;
    }
    buds_[index] = {node.left(), masses_.of(node.left())};
    buds_.push_back({node.right(), masses_.of(node.right())});
  }

  /// Splits the bud of largest mass, the earlier one of equals, until there are bud_count() of them. order_
  /// is a heap of indices of buds, the next one to split on top.
  void split_largest(int64_t leaves) {
    const auto num_buds = static_cast<size_t>(bud_count(leaves, params_.exponent));
    const auto splits_later = [&](size_t x, size_t y) {
      const Bud &a = buds_[x], &b = buds_[y];
      return a.mass < b.mass || (a.mass == b.mass && a.node.begin() > b.node.begin());
    };
    const TreeNode root{tree_height(leaves), 0};
    buds_.push_back({root, masses_.of(root)});
    order_.assign(1, 0);
    while (buds_.size() < num_buds) {
      std::pop_heap(order_.begin(), order_.end(), splits_later);
      const size_t index = order_.back(), right_index = buds_.size();
      split(index, leaves, buds_[index].mass);
      std::push_heap(order_.begin(), order_.end(), splits_later);
      if (buds_.size() > right_index) {
        order_.push_back(right_index);
        std::push_heap(order_.begin(), order_.end(), splits_later);
      }
      masses_.flops += 3 * std::bit_width(order_.size());
    }
  }

  /// Splits buds drawn in proportion to their masses, `parallel` at a time without replacement, until there
  /// are bud_count() of them. Begins with the nodes of the level that has `parallel` of them.
  void split_randomly(int64_t leaves, BudRandom& random) {
    const auto num_buds = static_cast<size_t>(bud_count(leaves, params_.exponent));
    heap_.clear();
    int64_t num_splittable = 0;
    const auto add_to_heap = [&](size_t index) {
      heap_.set(static_cast<int64_t>(index), buds_[index].mass);
      if (buds_[index].mass > 0) ++num_splittable;
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
        const size_t right_index = buds_.size();
        split(slot, leaves, mass);
        add_to_heap(slot);
        if (buds_.size() > right_index) add_to_heap(right_index);
      }
    }
  }

  Masses masses_;
  const BudParams& params_;
  SumHeap heap_;  // masses of buds by index, for split_randomly()
  std::vector<Bud> buds_;
  std::vector<size_t> order_;
  std::vector<std::pair<size_t, double>> drawn_;  // indices and masses of the buds of one round of draws
};

/// buds[b, i, :] = rows of the nodes that are the buds of query i, in the order of their leaves, then -1. One
/// task is some queries (b, i), with masses of its own from make_masses().
template <class Make>
void grow_all_buds(const BudParams& params, int64_t flops_per_query, const Tensor& buds, Make&& make_masses) {
  const int64_t batch = buds.extent(0), queries = buds.extent(1), capacity = buds.extent(2);
  // The first query of this process is so far into the whole batch.
  const auto queries_of_earlier_processes = static_cast<int64_t>(skipped_draws(batch * queries));
  parallel_rows(batch * queries, flops_per_task / flops_per_query, [&](int64_t begin, int64_t end) {
    BudGrowth growth(make_masses(), params);
    for (int64_t query = begin; query < end; ++query) {
      int32_t* next = buds.data<int32_t>() + query * capacity;
      int32_t* const row_end = next + capacity;
      for (const Bud& bud :
           growth.grow(query / queries, query % queries, queries_of_earlier_processes + query))
        *next++ = static_cast<int32_t>(bud.node.row());
      std::fill(next, row_end, -1);
    }
    Count::add(growth.flops());
  });
}

}  // namespace heed::kernel

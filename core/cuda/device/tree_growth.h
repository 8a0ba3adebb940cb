// Finds the buds of queries on a GPU, for any kind of mass, by one warp per query: splits nodes, from the
// root or one level on. The CPU's twin is kernels/content/tree_growth.h.
#pragma once

#include <algorithm>

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/cuda/device/tree_sums.h"
#include "heed/core/distributed/batch_shard.h"
#include "heed/core/kernels/content/sum_heap.h"

namespace heed::cuda {

/// Arguments of a kernel that grows buds, whatever their mass.
struct BudCall {
  int64_t batch, queries, capacity, slots;
  kernel::VisibleLeavesView visible;
  double exponent;
  bool greedy;
  int64_t parallel;         ///< buds drawn at a time
  int64_t draws_per_query;  ///< extent of `draws`
  uint64_t seed, stream;
  uint64_t skipped;     ///< queries of the batch in earlier processes
  const int64_t* tick;  ///< null: random numbers depend on the query's position, not on its row in the batch
  const double* draws;  ///< [queries, draws_per_query]: given random numbers; null: Philox draws them

  BudCall(const kernel::BudParams& params, const Tensor& buds)
      : batch(buds.extent(0)),
        queries(buds.extent(1)),
        capacity(kernel::bud_capacity(params)),
        slots(params.greedy ? 1 : kernel::SumHeapView::num_slots(capacity)),
        visible(params.visible),
        exponent(params.exponent),
        greedy(params.greedy),
        parallel(params.parallel),
        draws_per_query(params.draws ? params.draws.extent(1) : 0),
        seed(params.draw.seed),
        stream(params.draw.stream),
        skipped(skipped_draws(buds.extent(0) * buds.extent(1))),
        tick(pointer<int64_t>(params.draw.tick)),
        draws(pointer<double>(params.draws)) {}
  int64_t all() const { return batch * queries; }
  /// Doubles of a warp's working memory: masses, sums of the heap, and (as int32) buds and drawn slots.
  HEED_BOTH int64_t memory() const { return capacity + 2 * slots + (capacity + parallel + 1) / 2; }
};

/// The growing buds of query i of sequence b. All lanes of a warp execute the same steps, and lane 0 writes.
/// Masses has of(node), the mass of a node, 0 for one that cannot be split; all lanes call it together.
template <class Masses>
class BudGrowth {
 public:
  __device__ BudGrowth(const BudCall& call, const Masses& masses, double* memory, int64_t b, int64_t i)
      : call_(call),
        masses_(masses),
        bud_mass_(memory),
        heap_{memory + call.capacity, call.slots},
        rows_(reinterpret_cast<int32_t*>(memory + call.capacity + 2 * call.slots)),
        drawn_(rows_ + call.capacity),
        b_(b),
        i_(i),
        leaves_(call.visible.count(b, i)) {}

  /// out[0, room) = rows of the nodes that are the buds, in the order of their leaves, then -1.
  __device__ void grow(int32_t* out, int64_t room) {
    if (leaves_ > 0) {
      if (call_.greedy)
        split_largest();
      else
        split_randomly();
    }
    for (int64_t n = lane(); n < count_; n += lanes) {
      int64_t rank = 0;  // rows of nodes ascend with their leaves
      for (int64_t m = 0; m < count_; ++m) rank += rows_[m] < rows_[n] ? 1 : 0;
      out[rank] = rows_[n];
    }
    for (int64_t n = count_ + lane(); n < room; n += lanes) out[n] = -1;
    __syncwarp();
  }

 private:
  __device__ void write(int64_t bud, kernel::TreeNode node, double mass) {
    if (lane() == 0) {
      rows_[bud] = static_cast<int32_t>(node.row());
      bud_mass_[bud] = mass;
    }
    __syncwarp();
  }
  __device__ void append(kernel::TreeNode node, double mass) { write(count_++, node, mass); }

  /// Replaces a bud by its left child and appends its right child, unless that has no leaf.
  __device__ void split(int64_t bud) {
    const kernel::TreeNode node = kernel::TreeNode::at_row(rows_[bud]);
    const double mass = bud_mass_[bud];
    __syncwarp();
    if (node.right().begin() >= leaves_) return write(bud, node.left(), mass);
    write(bud, node.left(), masses_.of(node.left()));
    append(node.right(), masses_.of(node.right()));
  }

  /// Splits the bud of largest mass, the earlier one of equals, until there are enough.
  __device__ void split_largest() {
    const int64_t num_buds = kernel::bud_count(leaves_, call_.exponent);
    const kernel::TreeNode root{kernel::tree_height(leaves_), 0};
    append(root, masses_.of(root));
    while (count_ < num_buds) split(largest());
  }

  /// Index of the bud with the largest mass, the earlier one of equals.
  __device__ int64_t largest() const {
    double max_mass = -1;
    int64_t bud = 0, row = int64_t{1} << 40;  // a row behind all others
    for (int64_t n = lane(); n < count_; n += lanes) {
      if (bud_mass_[n] < max_mass || (bud_mass_[n] == max_mass && rows_[n] > row)) continue;
      max_mass = bud_mass_[n];
      row = rows_[n];
      bud = n;
    }
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
      const double other_mass = __shfl_xor_sync(all_lanes, max_mass, distance);
      const int64_t other_row = __shfl_xor_sync(all_lanes, row, distance),
                    other_bud = __shfl_xor_sync(all_lanes, bud, distance);
      if (other_mass < max_mass || (other_mass == max_mass && other_row >= row)) continue;
      max_mass = other_mass;
      row = other_row;
      bud = other_bud;
    }
    return bud;
  }

  /// Draws a random number for this query, uniform in [0, 1).
  __device__ double next_draw() {
    const int64_t n = num_draws_++;
    if (call_.draws != nullptr) return call_.draws[i_ * call_.draws_per_query + n];
    const bool by_position = call_.tick == nullptr;
    const uint64_t row = by_position ? static_cast<uint64_t>(call_.visible.first_query + i_)
                                     : call_.skipped + static_cast<uint64_t>(b_ * call_.queries + i_);
    const Philox bits = Philox::at(call_.seed, (row << 24) + static_cast<uint64_t>(n),
                                   Draw::high(call_.stream, by_position ? 0 : *call_.tick));
    return static_cast<double>(((uint64_t{bits.word[0]} << 32) | bits.word[1]) >> 11) * 0x1p-53;
  }

  __device__ void add_to_heap(int64_t bud) {
    const double mass = bud_mass_[bud];
    if (lane() == 0) heap_.set(bud, mass);
    if (mass > 0) ++num_splittable_;
    __syncwarp();
  }

  /// Splits buds drawn in proportion to their masses, `parallel` at a time without replacement, until there
  /// are enough. Begins with the nodes of the level that has `parallel` of them.
  __device__ void split_randomly() {
    const int64_t num_buds = kernel::bud_count(leaves_, call_.exponent),
                  height = kernel::tree_height(leaves_);
    for (int64_t n = lane(); n < 2 * heap_.slots; n += lanes) heap_.sums[n] = 0;
    __syncwarp();
    const int64_t level =
        std::max<int64_t>(0, height - (bit_width(static_cast<uint64_t>(call_.parallel)) - 1));
    for (kernel::TreeNode node{level, 0}; node.begin() < leaves_; ++node.index) {
      append(node, masses_.of(node));
      add_to_heap(count_ - 1);
    }
    while (count_ < num_buds) {
      const int64_t num_draws = std::min(call_.parallel, num_splittable_);
      for (int64_t n = 0; n < num_draws; ++n) {
        const int64_t slot = heap_.draw(next_draw());
        __syncwarp();
        if (lane() == 0) {
          drawn_[n] = static_cast<int32_t>(slot);
          heap_.set(slot, 0);
        }
        --num_splittable_;
        __syncwarp();
      }
      for (int64_t n = 0; n < num_draws; ++n) {
        const int64_t slot = drawn_[n], right_child = count_;
        split(slot);
        add_to_heap(slot);
        if (count_ > right_child) add_to_heap(right_child);
      }
    }
  }

  const BudCall& call_;
  const Masses& masses_;
  double* bud_mass_;          // mass of each bud
  kernel::SumHeapView heap_;  // masses of the buds for draws: 0 for one that is drawn
  int32_t* rows_;             // row of the node of each bud
  int32_t* drawn_;            // slots drawn at a time
  int64_t b_, i_, leaves_;
  int64_t count_ = 0, num_draws_ = 0, num_splittable_ = 0;  // buds, random numbers used, buds of mass > 0
};

}  // namespace heed::cuda

// The growth of buds on a GPU, for any kind of mass: one warp per query. Random draws descend the heap of
// sums of content/sum_heap.h.
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
  int64_t parallel, draws_each = 0;
  uint64_t seed, stream, skipped;  // skipped: queries of the batch in earlier processes
  const int64_t* tick;             // null: draws are numbered by position
  const double* draws;

  BudCall(const kernel::BudParams& params, const Tensor& buds)
      : batch(buds.extent(0)),
        queries(buds.extent(1)),
        capacity(kernel::bud_capacity(params)),
        slots(params.greedy ? 1 : kernel::SumHeapView::num_slots(capacity)),
        visible(params.visible),
        exponent(params.exponent),
        greedy(params.greedy),
        parallel(params.parallel),
        seed(params.draw.seed),
        stream(params.draw.stream),
        skipped(skipped_draws(buds.extent(0) * buds.extent(1))),
        tick(pointer<int64_t>(params.draw.tick)),
        draws(pointer<double>(params.draws)) {
    if (params.draws) draws_each = params.draws.extent(1);
  }
  int64_t all() const { return batch * queries; }
  /// Doubles that a warp works in: masses, sums of the heap, and (as int32) buds and what was drawn.
  HEED_BOTH int64_t memory() const { return capacity + 2 * slots + (capacity + parallel + 1) / 2; }
};

/// The growing buds of one query. All lanes of a warp execute the same steps, and the first one writes.
/// masses.of(node) is zero for a bud that cannot be split, above zero for others; all lanes call it together.
template <class Masses>
class BudGrowth {
 public:
  __device__ BudGrowth(const BudCall& call, const Masses& masses, double* memory, int64_t b, int64_t i)
      : call_(call),
        mass_of_(masses),
        masses_(memory),
        heap_{memory + call.capacity, call.slots},
        rows_(reinterpret_cast<int32_t*>(memory + call.capacity + 2 * call.slots)),
        drawn_(rows_ + call.capacity),
        b_(b),
        i_(i),
        leaves_(call.visible.count(b, i)) {}

  /// Grows the buds and writes them to `out` in order of their leaves, then -1.
  __device__ void grow(int32_t* out, int64_t room) {
    if (leaves_ > 0) {
      if (call_.greedy)
        greedily();
      else
        by_chance();
    }
    for (int64_t n = lane(); n < count_; n += lanes) {
      int64_t rank = 0;  // nodes lie in order of their middles
      for (int64_t other = 0; other < count_; ++other) rank += rows_[other] < rows_[n] ? 1 : 0;
      out[rank] = rows_[n];
    }
    for (int64_t n = count_ + lane(); n < room; n += lanes) out[n] = -1;
    __syncwarp();
  }

 private:
  __device__ void write(int64_t at, kernel::TreeNode node, double mass) {
    if (lane() == 0) {
      rows_[at] = static_cast<int32_t>(node.row());
      masses_[at] = mass;
    }
    __syncwarp();
  }
  __device__ void push(kernel::TreeNode node, double mass) { write(count_++, node, mass); }

  /// Replaces a bud by its left child and appends its right child, if that has leaves.
  __device__ void split(int64_t at) {
    const kernel::TreeNode node = kernel::TreeNode::at_row(rows_[at]);
    const double mass = masses_[at];
    __syncwarp();
    if (node.right().begin() >= leaves_) return write(at, node.left(), mass);
    write(at, node.left(), mass_of_.of(node.left()));
    push(node.right(), mass_of_.of(node.right()));
  }

  __device__ void greedily() {
    const int64_t wanted = kernel::bud_count(leaves_, call_.exponent);
    const kernel::TreeNode root{kernel::tree_height(leaves_), 0};
    push(root, mass_of_.of(root));
    while (count_ < wanted) split(heaviest());
  }

  /// The index of the bud with the largest mass, the first of equals.
  __device__ int64_t heaviest() const {
    double max_mass = -1;
    int64_t at = 0, row = int64_t{1} << 40;
    for (int64_t n = lane(); n < count_; n += lanes) {
      if (masses_[n] < max_mass || (masses_[n] == max_mass && rows_[n] > row)) continue;
      max_mass = masses_[n];
      row = rows_[n];
      at = n;
    }
    for (int gap = lanes / 2; gap > 0; gap /= 2) {
      const double other = __shfl_xor_sync(all_lanes, max_mass, gap);
      const int64_t other_row = __shfl_xor_sync(all_lanes, row, gap),
                    other_at = __shfl_xor_sync(all_lanes, at, gap);
      if (other < max_mass || (other == max_mass && other_row >= row)) continue;
      max_mass = other;
      row = other_row;
      at = other_at;
    }
    return at;
  }

  __device__ double next_draw() {
    const int64_t n = drawn_so_far_++;
    if (call_.draws != nullptr) return call_.draws[i_ * call_.draws_each + n];
    const bool by_position = call_.tick == nullptr;
    const uint64_t row = by_position ? static_cast<uint64_t>(call_.visible.first_query + i_)
                                     : call_.skipped + static_cast<uint64_t>(b_ * call_.queries + i_);
    const Philox bits = Philox::at(call_.seed, (row << 24) + static_cast<uint64_t>(n),
                                   Draw::high(call_.stream, by_position ? 0 : *call_.tick));
    return static_cast<double>(((uint64_t{bits.word[0]} << 32) | bits.word[1]) >> 11) * 0x1p-53;
  }

  /// Puts the mass of a bud into the heap.
  __device__ void insert(int64_t at) {
    const double mass = masses_[at];
    if (lane() == 0) heap_.set(at, mass);
    if (mass > 0) ++open_;
    __syncwarp();
  }

  __device__ void by_chance() {
    const int64_t wanted = kernel::bud_count(leaves_, call_.exponent), height = kernel::tree_height(leaves_);
    for (int64_t n = lane(); n < 2 * heap_.slots; n += lanes) heap_.sums[n] = 0;
    __syncwarp();
    const int64_t level =
        std::max<int64_t>(0, height - (bit_width(static_cast<uint64_t>(call_.parallel)) - 1));
    for (kernel::TreeNode node{level, 0}; node.begin() < leaves_; ++node.index) {
      push(node, mass_of_.of(node));
      insert(count_ - 1);
    }
    while (count_ < wanted) {
      const int64_t num_draws = std::min(call_.parallel, open_);
      for (int64_t n = 0; n < num_draws; ++n) {
        const int64_t slot = heap_.draw(next_draw());
        __syncwarp();
        if (lane() == 0) {
          drawn_[n] = static_cast<int32_t>(slot);
          heap_.set(slot, 0);
        }
        --open_;
        __syncwarp();
      }
      for (int64_t n = 0; n < num_draws; ++n) {
        const int64_t slot = drawn_[n], before = count_;
        split(slot);
        insert(slot);
        if (count_ > before) insert(before);
      }
    }
  }

  const BudCall& call_;
  const Masses& mass_of_;
  double* masses_;
  kernel::SumHeapView heap_;
  int32_t *rows_, *drawn_;
  int64_t b_, i_, leaves_, count_ = 0, drawn_so_far_ = 0, open_ = 0;  // open: buds that can be split
};

}  // namespace heed::cuda

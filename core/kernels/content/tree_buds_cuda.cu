// Buds on a GPU: one warp per query. Lanes share the sums of a mass and the search for the largest; the heap
// of sums that random draws descend is the same as on the CPU.
#include "heed/core/kernels/content/tree_buds.h"

#include <algorithm>
#include <cmath>

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/cuda/device/tree_sums.h"
#include "heed/core/distributed/batch_shard.h"
#include "heed/core/kernels/content/sum_heap.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// One call in plain numbers.
template <class T>
struct Call {
  int64_t batch, queries, capacity, heads = 0, width = 0, rows = 0;
  cuda::Reach reach;
  BudMass mass;
  double scale, base, exponent;
  bool by_sum, greedy;
  int64_t parallel, draws_each = 0;
  const T *a = nullptr, *nodes = nullptr;
  int64_t a_batch = 0, a_head = 0, a_row = 0;
  uint64_t seed, stream, skipped;  // skipped: queries of the batch that other processes have
  const int64_t* tick;
  const double* draws;

  Call(const Tensor& align, const Tensor& sums, const BudTerms& terms, const Tensor& buds)
      : batch(buds.extent(0)),
        queries(buds.extent(1)),
        capacity(bud_capacity(terms)),
        reach(terms.reach),
        mass(terms.mass),
        scale(terms.scale),
        base(terms.base),
        exponent(terms.exponent),
        by_sum(terms.by_sum),
        greedy(terms.greedy),
        parallel(terms.parallel),
        seed(terms.draw.seed),
        stream(terms.draw.stream),
        skipped(skipped_draws(buds.extent(0) * buds.extent(1))),
        tick(cuda::pointer<int64_t>(terms.draw.tick)),
        draws(cuda::pointer<double>(terms.draws)) {
    if (terms.draws) draws_each = terms.draws.extent(1);
    if (!sums) return;
    heads = align.extent(1);
    width = align.extent(3);
    rows = sums.extent(2);
    a = align.data<T>();
    nodes = sums.data<T>();
    a_batch = align.strides()[0];
    a_head = align.strides()[1];
    a_row = align.strides()[2];
  }

  int64_t slots() const { return greedy ? 1 : SumSlots::enough(capacity); }
  /// Doubles that a warp works in: masses, sums of the heap, and (as int32) buds and what was drawn.
  int64_t memory() const { return capacity + 2 * slots() + (capacity + parallel + 1) / 2; }
};

/// The buds of one query as they grow. All lanes do the same; the first one writes.
template <class T>
class Growth {
 public:
  __device__ Growth(const Call<T>& call, double* memory, int64_t slots, int64_t b, int64_t i)
      : call_(call),
        masses_(memory),
        heap_{memory + call.capacity, slots},
        rows_(reinterpret_cast<int32_t*>(memory + call.capacity + 2 * slots)),
        drawn_(rows_ + call.capacity),
        b_(b),
        i_(i),
        leaves_(call.reach.leaves(b, i)) {}

  /// Writes them in order of their leaves.
  __device__ void grow(int32_t* out, int64_t room) {
    if (leaves_ > 0) {
      if (call_.greedy)
        greedily();
      else
        by_chance();
    }
    for (int64_t n = cuda::lane(); n < count_; n += cuda::lanes) {
      int64_t rank = 0;  // nodes lie in order of their middles
      for (int64_t other = 0; other < count_; ++other) rank += rows_[other] < rows_[n] ? 1 : 0;
      out[rank] = rows_[n];
    }
    for (int64_t n = count_ + cuda::lane(); n < room; n += cuda::lanes) out[n] = -1;
    __syncwarp();
  }

 private:
  /// Zero for a bud that cannot be split, above zero for others.
  __device__ double mass_of(TreeNode node) const {
    const int64_t count = node.count(leaves_);
    if (count <= 1) return 0;
    if (call_.mass == BudMass::uniform) return 1;
    if (call_.mass == BudMass::decay)
      return decay_mass(call_.base, leaves_, node.begin(), count) + bud_epsilon;
    double mass = 0;
    for (int64_t h = 0; h < call_.heads; ++h) {
      const T* const a = call_.a + b_ * call_.a_batch + h * call_.a_head + i_ * call_.a_row;
      const T* const nodes = call_.nodes + (b_ * call_.heads + h) * call_.rows * call_.width;
      T sum = 0;
      for (int64_t c = cuda::lane(); c < call_.width; c += cuda::lanes)
        sum += a[c] * cuda::node_sum(nodes, call_.width, node, leaves_, c);
      const double x = static_cast<double>(cuda::warp_sum(sum)) / static_cast<double>(count);
      mass +=
          call_.mass == BudMass::exponential ? std::exp(std::min(call_.scale * x, 600.0)) : std::max(x, 0.0);
    }
    if (call_.by_sum) mass *= static_cast<double>(count);
    return (mass < max_bud_mass ? mass : max_bud_mass) + bud_epsilon;
  }

  __device__ void write(int64_t at, TreeNode node, double mass) {
    if (cuda::lane() == 0) {
      rows_[at] = static_cast<int32_t>(node.row());
      masses_[at] = mass;
    }
    __syncwarp();
  }
  __device__ void push(TreeNode node, double mass) { write(count_++, node, mass); }

  /// Puts the parts of a bud into its place and at the end; a bud without a right part becomes its left one.
  __device__ void split(int64_t at) {
    const TreeNode node = TreeNode::at_row(rows_[at]);
    const double mass = masses_[at];
    __syncwarp();
    if (node.right().begin() >= leaves_) return write(at, node.left(), mass);
    write(at, node.left(), mass_of(node.left()));
    push(node.right(), mass_of(node.right()));
  }

  __device__ void greedily() {
    const int64_t wanted = bud_count(leaves_, call_.exponent);
    const TreeNode root{tree_height(leaves_), 0};
    push(root, mass_of(root));
    while (count_ < wanted) split(heaviest());
  }

  /// The place of the largest mass, the earlier bud of equals.
  __device__ int64_t heaviest() const {
    double most = -1;
    int64_t at = 0, row = int64_t{1} << 40;
    for (int64_t n = cuda::lane(); n < count_; n += cuda::lanes) {
      if (masses_[n] < most || (masses_[n] == most && rows_[n] > row)) continue;
      most = masses_[n];
      row = rows_[n];
      at = n;
    }
    for (int gap = cuda::lanes / 2; gap > 0; gap /= 2) {
      const double other = __shfl_xor_sync(cuda::all_lanes, most, gap);
      const int64_t other_row = __shfl_xor_sync(cuda::all_lanes, row, gap),
                    other_at = __shfl_xor_sync(cuda::all_lanes, at, gap);
      if (other < most || (other == most && other_row >= row)) continue;
      most = other;
      row = other_row;
      at = other_at;
    }
    return at;
  }

  __device__ double next_draw() {
    const int64_t n = drawn_so_far_++;
    if (call_.draws != nullptr) return call_.draws[i_ * call_.draws_each + n];
    const uint64_t row = call_.skipped + static_cast<uint64_t>(b_ * call_.queries + i_);
    const Philox bits =
        Philox::at(call_.seed, (row << 24) + static_cast<uint64_t>(n), Draw::high(call_.stream, *call_.tick));
    return static_cast<double>(((uint64_t{bits.word[0]} << 32) | bits.word[1]) >> 11) * 0x1p-53;
  }

  /// Into the heap with the mass that it has.
  __device__ void place(int64_t at) {
    const double mass = masses_[at];
    if (cuda::lane() == 0) heap_.set(at, mass);
    if (mass > 0) ++open_;
    __syncwarp();
  }

  __device__ void by_chance() {
    const int64_t wanted = bud_count(leaves_, call_.exponent), height = tree_height(leaves_);
    for (int64_t n = cuda::lane(); n < 2 * heap_.slots; n += cuda::lanes) heap_.sums[n] = 0;
    __syncwarp();
    const int64_t level =
        std::max<int64_t>(0, height - (std::bit_width(static_cast<uint64_t>(call_.parallel)) - 1));
    for (TreeNode node{level, 0}; node.begin() < leaves_; ++node.index) {
      push(node, mass_of(node));
      place(count_ - 1);
    }
    while (count_ < wanted) {
      const int64_t together = std::min(call_.parallel, open_);
      for (int64_t n = 0; n < together; ++n) {
        const int64_t slot = heap_.draw(next_draw());
        __syncwarp();
        if (cuda::lane() == 0) {
          drawn_[n] = static_cast<int32_t>(slot);
          heap_.set(slot, 0);
        }
        --open_;
        __syncwarp();
      }
      for (int64_t n = 0; n < together; ++n) {
        const int64_t slot = drawn_[n], before = count_;
        split(slot);
        place(slot);
        if (count_ > before) place(before);
      }
    }
  }

  const Call<T>& call_;
  double* masses_;
  SumSlots heap_;
  int32_t *rows_, *drawn_;
  int64_t b_, i_, leaves_, count_ = 0, drawn_so_far_ = 0, open_ = 0;  // open: buds that can be split
};

/// memory [warps of the grid, each]
template <class T>
__global__ void __launch_bounds__(cuda::block)
    grow_all(Call<T> call, double* memory, int64_t each, int64_t slots, int64_t room, int32_t* buds) {
  for (int64_t at = cuda::grid_warp(); at < call.batch * call.queries; at += cuda::grid_warps()) {
    Growth<T> growth(call, memory + cuda::grid_warp() * each, slots, at / call.queries, at % call.queries);
    growth.grow(buds + at * room, room);
  }
}

template <class T>
void grow(const Tensor& a, const Tensor& nodes, const BudTerms& terms, const Tensor& buds) {
  const Call<T> call(a, nodes, terms, buds);
  const int64_t all = call.batch * call.queries;
  const cuda::Grid grid = cuda::warps(std::min(all, cuda::most_warps));
  const Tensor memory(Shape{int64_t{grid.blocks.x} * (cuda::block / cuda::lanes), call.memory()}, DType::f64,
                      Device::cuda);
  cuda::run(grow_all<T>, grid, call, memory.data<double>(), call.memory(), call.slots(), buds.extent(2),
            buds.data<int32_t>());
  Count::add(all * 2 * call.capacity * (8 + call.heads * (2 * call.width + 4)));
}

}  // namespace

void TreeBuds::cuda(const Tensor& a, const Tensor& nodes, const BudTerms& terms, const Tensor& buds) {
  if (!nodes) return grow<double>(a, nodes, terms, buds);
  visit_float("tree_buds", nodes.dtype(), [&]<class T>(Type<T>) { grow<T>(a, nodes, terms, buds); });
}

}  // namespace heed::kernel

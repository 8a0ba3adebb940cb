// Buds on a GPU, by masses of alignments: one warp per query, whose lanes share the work.
#include "heed/core/kernels/content/tree_buds.h"

#include <algorithm>
#include <cmath>

#include "heed/core/cuda/device/tree_growth.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// Extents, strides and pointers of one call.
template <class T>
struct Call : cuda::BudCall {
  BudMass mass;
  double scale, base;
  bool by_sum;
  int64_t heads = 0, width = 0, rows = 0;
  HeadView<const T> a;
  const T* nodes = nullptr;

  Call(const Tensor& a_, const Tensor& nodes_, const BudParams& params, const Tensor& buds)
      : BudCall(params, buds),
        mass(params.mass),
        scale(params.scale),
        base(params.base),
        by_sum(params.by_sum) {
    if (!nodes_) return;
    heads = a_.extent(1);
    width = a_.extent(3);
    rows = nodes_.extent(2);
    a = HeadView<const T>(a_);
    nodes = nodes_.data<T>();
  }
};

/// Masses of one query's buds by alignments, computed by one warp; used by cuda::BudGrowth.
template <class T>
struct AlignmentMasses {
  const Call<T>& call;
  int64_t b, i, leaves;

  /// The mass of a bud, summed over heads. All lanes call it together and share the columns of an alignment.
  __device__ double of(TreeNode node) const {
    return bud_mass(call, node, leaves, call.heads, [&](int64_t h) {
      const T* const a = call.a.at(b, h, i);
      const T* const nodes = call.nodes + (b * call.heads + h) * call.rows * call.width;
      T sum = 0;
      for (int64_t c = cuda::lane(); c < call.width; c += cuda::lanes)
        sum += a[c] * cuda::node_sum(nodes, call.width, node, leaves, c);
      return cuda::warp_sum(sum);
    });
  }
};

/// buds[b, i, :] = rows of the nodes that are the buds of query i, in the order of their leaves, then -1.
/// Each warp takes queries in turn; memory [warps of the grid, memory_per_warp] is its working memory.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    grow_all(Call<T> call, double* memory, int64_t memory_per_warp, int64_t row_width, int32_t* buds) {
  for (int64_t query = cuda::grid_warp(); query < call.batch * call.queries; query += cuda::grid_warps()) {
    const int64_t b = query / call.queries, i = query % call.queries;
    const AlignmentMasses<T> masses{call, b, i, call.visible.count(b, i)};
    cuda::BudGrowth<AlignmentMasses<T>> growth(call, masses, memory + cuda::grid_warp() * memory_per_warp, b,
                                               i);
    growth.grow(buds + query * row_width, row_width);
  }
}

/// Launches grow_all().
template <class T>
void grow(const Tensor& a, const Tensor& nodes, const BudParams& params, const Tensor& buds) {
  const Call<T> call(a, nodes, params, buds);
  const cuda::Grid grid = cuda::warp_per_row(std::min(call.all(), cuda::max_warps));
  const Tensor memory(Shape{int64_t{grid.blocks.x} * (cuda::block / cuda::lanes), call.memory()}, DType::f64,
                      Device::cuda);
  cuda::run(grow_all<T>, grid, call, memory.data<double>(), call.memory(), buds.extent(2),
            buds.data<int32_t>());
  Count::add(call.all() * 2 * call.capacity * (8 + call.heads * (2 * call.width + 4)));
}

}  // namespace

/// Computes the buds of every query; masses that need no nodes are computed in double.
void TreeBuds::cuda(const Tensor& a, const Tensor& nodes, const BudParams& params, const Tensor& buds) {
  if (!nodes) return grow<double>(a, nodes, params, buds);
  visit_float("tree_buds", nodes.dtype(), [&]<class T>(Type<T>) { grow<T>(a, nodes, params, buds); });
}

}  // namespace heed::kernel

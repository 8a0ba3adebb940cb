// Buds by the moments of scores, on a GPU: one warp per query.
#include "heed/core/kernels/content/tree_moments.h"

#include <algorithm>
#include <cmath>

#include "heed/core/cuda/device/tree_growth.h"
#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// Extents, strides and pointers of one call.
template <class T>
struct Call : cuda::BudCall {
  MomentMass mass;
  double scale;
  int64_t heads, d, width, rows;
  HeadView<const T> q;
  const T* nodes;

  Call(const Tensor& q_, const Tensor& nodes_, const MomentParams& params, const Tensor& buds)
      : BudCall(params.growth, buds),
        mass(params.mass),
        scale(params.growth.scale),
        heads(q_.extent(1)),
        d(q_.extent(3)),
        width(nodes_.extent(3)),
        rows(nodes_.extent(2)),
        q(q_),
        nodes(nodes_.data<T>()) {}
};

/// Masses of one query's buds by moments, computed by one warp; used by cuda::BudGrowth. log_z [heads] is the
/// warp's working memory.
template <class T>
struct MomentMasses {
  const Call<T>& call;
  int64_t b, i, leaves;
  double* log_z;

  /// Computes log Z of every head. All lanes call it together.
  __device__ void set_log_z() const {
    if (leaves == 0) return;
    for (int64_t h = 0; h < call.heads; ++h) {
      const double log_sum = log_moment_sum(leaves, [this, h](TreeNode node) { return moments(h, node); });
      if (cuda::lane() == 0) log_z[h] = log_sum;
    }
    __syncwarp();
  }

  /// The mass of a bud, summed over heads: 0 for a bud of one leaf, above 0 for others. All lanes call it
  /// together.
  __device__ double of(TreeNode node) const {
    if (node.count(leaves) <= 1) return 0;
    double mass = 0;
    for (int64_t h = 0; h < call.heads; ++h) {
      mass += moment_mass(call.mass, node, leaves, log_z[h],
                          [this, h](TreeNode descendant) { return moments(h, descendant); });
    }
    return (mass < max_bud_mass ? mass : max_bud_mass) + bud_epsilon;
  }

 private:
  /// Mean and variance of scale q . k over the keys below a node of head h; lanes share the columns.
  __device__ Moments moments(int64_t h, TreeNode node) const {
    const T* const q = call.q.at(b, h, i);
    const T* const nodes = call.nodes + (b * call.heads + h) * call.rows * call.width;
    const bool has_squares = call.width > call.d;
    // Sums over columns c of q_c (sum of k_c), of q_c^2 (sum of k_c^2) and of (q_c sum of k_c)^2.
    T dot = 0, square_sum = 0, sum_square = 0;
    for (int64_t c = cuda::lane(); c < call.d; c += cuda::lanes) {
      const T product = q[c] * cuda::node_sum(nodes, call.width, node, leaves, c);
      dot += product;
      if (!has_squares) continue;
      square_sum += q[c] * q[c] * cuda::node_sum(nodes, call.width, node, leaves, call.d + c);
      sum_square += product * product;
    }
    const auto count = static_cast<double>(node.count(leaves));
    const double mean = call.scale * static_cast<double>(cuda::warp_sum(dot)) / count;
    if (!has_squares) return {mean, 0};
    const double variance = static_cast<double>(cuda::warp_sum(square_sum)) / count -
                            static_cast<double>(cuda::warp_sum(sum_square)) / (count * count);
    return {mean, std::max(call.scale * call.scale * variance, 0.0)};
  }
};

/// buds[b, i, :] = rows of the nodes that are the buds of query i, in the order of their leaves, then -1.
/// Each warp takes queries in turn; memory [warps of the grid, memory_per_warp] holds log Z of each head,
/// then the working memory of cuda::BudGrowth.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    grow_all(Call<T> call, double* memory, int64_t memory_per_warp, int64_t row_width, int32_t* buds) {
  double* const log_z = memory + cuda::grid_warp() * memory_per_warp;
  for (int64_t query = cuda::grid_warp(); query < call.batch * call.queries; query += cuda::grid_warps()) {
    const int64_t b = query / call.queries, i = query % call.queries;
    const MomentMasses<T> masses{call, b, i, call.visible.count(b, i), log_z};
    masses.set_log_z();
    cuda::BudGrowth<MomentMasses<T>> growth(call, masses, log_z + call.heads, b, i);
    growth.grow(buds + query * row_width, row_width);
  }
}

/// Launches grow_all().
template <class T>
void grow(const Tensor& q, const Tensor& nodes, const MomentParams& params, const Tensor& buds) {
  const Call<T> call(q, nodes, params, buds);
  const int64_t memory_per_warp = call.heads + call.memory();
  const cuda::Grid grid = cuda::warp_per_row(std::min(call.all(), cuda::max_warps));
  const Tensor memory(Shape{int64_t{grid.blocks.x} * (cuda::block / cuda::lanes), memory_per_warp},
                      DType::f64, Device::cuda);
  cuda::run(grow_all<T>, grid, call, memory.data<double>(), memory_per_warp, buds.extent(2),
            buds.data<int32_t>());
  Count::add(call.all() * (2 * call.capacity + moment_nodes) * call.heads * (4 * call.width + 8));
}

}  // namespace

void MomentBuds::cuda(const Tensor& q, const Tensor& nodes, const MomentParams& params, const Tensor& buds) {
  visit_float("tree_moments", nodes.dtype(), [&]<class T>(Type<T>) { grow<T>(q, nodes, params, buds); });
}

}  // namespace heed::kernel

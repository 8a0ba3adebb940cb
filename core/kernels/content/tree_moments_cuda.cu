// Buds by the moments of scores, on a GPU: one warp per query.
#include "heed/core/kernels/content/tree_moments.h"

#include <algorithm>
#include <cmath>

#include "heed/core/cuda/device/tree_growth.h"
#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// One call in plain numbers.
template <class T>
struct Call : cuda::BudCall {
  MomentMass mass;
  double scale;
  int64_t heads, d, width, rows;
  HeadView<const T> q;
  const T* nodes;

  Call(const Tensor& queries_, const Tensor& sums, const MomentParams& params, const Tensor& buds)
      : BudCall(params.growth, buds),
        mass(params.mass),
        scale(params.growth.scale),
        heads(queries_.extent(1)),
        d(queries_.extent(3)),
        width(sums.extent(3)),
        rows(sums.extent(2)),
        q(queries_),
        nodes(sums.data<T>()) {}
};

/// Mean and variance of the scores below a node.
struct Moments {
  double mean, variance;
};

/// The masses of one query's buds; log_total [heads], of this warp.
template <class T>
struct MomentMasses {
  const Call<T>& call;
  int64_t b, i, leaves;
  double* log_total;

  /// Sums Z_h of every head. All lanes call it together.
  __device__ void look() const {
    if (leaves == 0) return;
    for (int64_t h = 0; h < call.heads; ++h) {
      double most = -HUGE_VAL, sum = 0;
      for (TreeNode node{moment_level(tree_height(leaves)), 0}; node.begin() < leaves; ++node.index) {
        const Moments own = moments(h, node);
        const double log_weight =
            std::log(static_cast<double>(node.count(leaves))) + own.mean + own.variance / 2;
        if (log_weight > most) {
          sum *= std::exp(most - log_weight);
          most = log_weight;
        }
        sum += std::exp(log_weight - most);
      }
      if (cuda::lane() == 0) log_total[h] = most + std::log(sum);
    }
    __syncwarp();
  }

  __device__ double of(TreeNode node) const {
    const int64_t count = node.count(leaves);
    if (count <= 1) return 0;
    double mass = 0;
    for (int64_t h = 0; h < call.heads; ++h) mass += of_head(h, node, static_cast<double>(count));
    return (mass < max_bud_mass ? mass : max_bud_mass) + bud_epsilon;
  }

 private:
  __device__ double share(int64_t h, double many, double log_weight) const {
    return many * std::exp(std::min(log_weight - log_total[h], 600.0));
  }

  __device__ double of_head(int64_t h, TreeNode node, double count) const {
    if (call.mass == MomentMass::lookahead || call.mass == MomentMass::contrast) {
      node = two_sided(node, leaves);
      const auto left = static_cast<double>(node.left().count(leaves)), right = count - left;
      const double left_mean = moments(h, node.left()).mean, right_mean = moments(h, node.right()).mean;
      if (call.mass == MomentMass::contrast) {
        const double apart = share(h, 1, left_mean) - share(h, 1, right_mean);
        return left * right / count * apart * apart;
      }
      const double mean = (left * left_mean + right * right_mean) / count;
      return std::max(share(h, left, left_mean) + share(h, right, right_mean) - share(h, count, mean), 0.0);
    }
    const Moments own = moments(h, node);
    if (call.mass == MomentMass::variance) {
      const double weight = share(h, 1, own.mean + own.variance / 2);
      return count * weight * weight * std::expm1(std::min(own.variance, 50.0));
    }
    return share(h, count, own.mean + own.variance / 2) - share(h, count, own.mean);
  }

  /// Lanes share the columns.
  __device__ Moments moments(int64_t h, TreeNode node) const {
    const T* const q = call.q.at(b, h, i);
    const T* const nodes = call.nodes + (b * call.heads + h) * call.rows * call.width;
    const bool second = call.width > call.d;
    T along = 0, squares = 0, means = 0;
    for (int64_t c = cuda::lane(); c < call.d; c += cuda::lanes) {
      const T product = q[c] * cuda::node_sum(nodes, call.width, node, leaves, c);
      along += product;
      if (!second) continue;
      squares += q[c] * q[c] * cuda::node_sum(nodes, call.width, node, leaves, call.d + c);
      means += product * product;
    }
    const auto count = static_cast<double>(node.count(leaves));
    const double mean = call.scale * static_cast<double>(cuda::warp_sum(along)) / count;
    if (!second) return {mean, 0};
    const double variance = static_cast<double>(cuda::warp_sum(squares)) / count -
                            static_cast<double>(cuda::warp_sum(means)) / (count * count);
    return {mean, std::max(call.scale * call.scale * variance, 0.0)};
  }
};

/// memory [warps of the grid, each]: log_total, then what buds grow in.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    grow_all(Call<T> call, double* memory, int64_t each, int64_t room, int32_t* buds) {
  double* const own = memory + cuda::grid_warp() * each;
  for (int64_t at = cuda::grid_warp(); at < call.batch * call.queries; at += cuda::grid_warps()) {
    const int64_t b = at / call.queries, i = at % call.queries;
    const MomentMasses<T> masses{call, b, i, call.reach.leaves(b, i), own};
    masses.look();
    cuda::BudGrowth<MomentMasses<T>> growth(call, masses, own + call.heads, b, i);
    growth.grow(buds + at * room, room);
  }
}

template <class T>
void grow(const Tensor& q, const Tensor& nodes, const MomentParams& params, const Tensor& buds) {
  const Call<T> call(q, nodes, params, buds);
  const int64_t each = call.heads + call.memory();
  const cuda::Grid grid = cuda::warps(std::min(call.all(), cuda::max_warps));
  const Tensor memory(Shape{int64_t{grid.blocks.x} * (cuda::block / cuda::lanes), each}, DType::f64,
                      Device::cuda);
  cuda::run(grow_all<T>, grid, call, memory.data<double>(), each, buds.extent(2), buds.data<int32_t>());
  Count::add(call.all() * (2 * call.capacity + moment_nodes) * call.heads * (4 * call.width + 8));
}

}  // namespace

void MomentBuds::cuda(const Tensor& q, const Tensor& nodes, const MomentParams& params, const Tensor& buds) {
  visit_float("tree_moments", nodes.dtype(), [&]<class T>(Type<T>) { grow<T>(q, nodes, params, buds); });
}

}  // namespace heed::kernel

// Buds on a GPU: one warp per query, whose lanes share the sums of a mass and the search for the largest.
#include "heed/core/kernels/content/tree_buds.h"

#include <algorithm>
#include <cmath>

#include "heed/core/cuda/device/tree_growth.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// One call in plain numbers.
template <class T>
struct Call : cuda::BudCall {
  BudMass mass;
  double scale, base;
  bool by_sum;
  int64_t heads = 0, width = 0, rows = 0;
  const T *a = nullptr, *nodes = nullptr;
  int64_t a_batch = 0, a_head = 0, a_row = 0;

  Call(const Tensor& align, const Tensor& sums, const BudParams& params, const Tensor& buds)
      : BudCall(params, buds),
        mass(params.mass),
        scale(params.scale),
        base(params.base),
        by_sum(params.by_sum) {
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
};

/// The masses of one query's buds.
template <class T>
struct Masses {
  const Call<T>& call;
  int64_t b, i, leaves;

  /// Zero for a bud that cannot be split, above zero for others.
  __device__ double of(TreeNode node) const {
    const int64_t count = node.count(leaves);
    if (count <= 1) return 0;
    if (call.mass == BudMass::uniform) return 1;
    if (call.mass == BudMass::decay) return decay_mass(call.base, leaves, node.begin(), count) + bud_epsilon;
    double mass = 0;
    for (int64_t h = 0; h < call.heads; ++h) {
      const T* const a = call.a + b * call.a_batch + h * call.a_head + i * call.a_row;
      const T* const nodes = call.nodes + (b * call.heads + h) * call.rows * call.width;
      T sum = 0;
      for (int64_t c = cuda::lane(); c < call.width; c += cuda::lanes)
        sum += a[c] * cuda::node_sum(nodes, call.width, node, leaves, c);
      const double x = static_cast<double>(cuda::warp_sum(sum)) / static_cast<double>(count);
      mass +=
          call.mass == BudMass::exponential ? std::exp(std::min(call.scale * x, 600.0)) : std::max(x, 0.0);
    }
    if (call.by_sum) mass *= static_cast<double>(count);
    return (mass < max_bud_mass ? mass : max_bud_mass) + bud_epsilon;
  }
};

/// memory [warps of the grid, each]
template <class T>
__global__ void __launch_bounds__(cuda::block)
    grow_all(Call<T> call, double* memory, int64_t each, int64_t room, int32_t* buds) {
  for (int64_t at = cuda::grid_warp(); at < call.batch * call.queries; at += cuda::grid_warps()) {
    const int64_t b = at / call.queries, i = at % call.queries;
    const Masses<T> masses{call, b, i, call.reach.leaves(b, i)};
    cuda::BudGrowth<Masses<T>> growth(call, masses, memory + cuda::grid_warp() * each, b, i);
    growth.grow(buds + at * room, room);
  }
}

template <class T>
void grow(const Tensor& a, const Tensor& nodes, const BudParams& params, const Tensor& buds) {
  const Call<T> call(a, nodes, params, buds);
  const cuda::Grid grid = cuda::warps(std::min(call.all(), cuda::max_warps));
  const Tensor memory(Shape{int64_t{grid.blocks.x} * (cuda::block / cuda::lanes), call.memory()}, DType::f64,
                      Device::cuda);
  cuda::run(grow_all<T>, grid, call, memory.data<double>(), call.memory(), buds.extent(2),
            buds.data<int32_t>());
  Count::add(call.all() * 2 * call.capacity * (8 + call.heads * (2 * call.width + 4)));
}

}  // namespace

void TreeBuds::cuda(const Tensor& a, const Tensor& nodes, const BudParams& params, const Tensor& buds) {
  if (!nodes) return grow<double>(a, nodes, params, buds);
  visit_float("tree_buds", nodes.dtype(), [&]<class T>(Type<T>) { grow<T>(a, nodes, params, buds); });
}

}  // namespace heed::kernel

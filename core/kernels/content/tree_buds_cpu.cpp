// Buds on the CPU, by masses of alignments.
#include "heed/core/kernels/content/tree_buds.h"

#include <algorithm>

#include "heed/core/kernels/content/prefix_tree.h"
#include "heed/core/kernels/content/tree_growth.h"

namespace heed::kernel {

int64_t bud_capacity(const BudParams& params) {
  return std::max<int64_t>(
      1, bud_count(params.visible.keys, params.exponent) + (params.greedy ? 0 : params.parallel - 1));
}

int64_t bud_draws(const BudParams& params) {
  // Each draw adds a bud, or replaces one by its left child on the path to the last leaf.
  return bud_count(params.visible.keys, params.exponent) + params.parallel + tree_height(params.visible.keys);
}

namespace {

/// Masses of buds by alignments, for one query after another; used by BudGrowth.
template <class T>
class AlignmentMasses {
 public:
  AlignmentMasses(const Tensor& a, const Tensor& nodes, const BudParams& params)
      : params_(params),
        heads_(nodes ? a.extent(1) : 0),
        width_(nodes ? a.extent(3) : 0),
        a_(nodes ? a : Tensor()),
        trees_(nodes, params.visible.keys) {}

  /// Selects query i of sequence b, which sees this many leaves.
  void set_query(int64_t b, int64_t i, int64_t leaves) {
    b_ = b;
    i_ = i;
    leaves_ = leaves;
    for (int64_t h = 0; h < heads_; ++h) flops += trees_.set_prefix(b, h, leaves);
  }

  /// The mass of a bud, summed over heads.
  double of(TreeNode node) {
    if (node.count(leaves_) > 1) flops += 8;
    return bud_mass(params_, node, leaves_, heads_, [&](int64_t h) {
      flops += 2 * width_ + 4;
      return simd::dot(a_.at(b_, h, i_), trees_.sum(h, node), width_);
    });
  }

  int64_t flops = 0;

 private:
  const BudParams& params_;
  int64_t heads_, width_, b_ = 0, i_ = 0, leaves_ = 0;
  HeadView<const T> a_;
  HeadPrefixTrees<T> trees_;
};

/// Computes the buds of all queries.
template <class T>
void grow_all(const Tensor& a, const Tensor& nodes, const BudParams& params, const Tensor& buds) {
  const int64_t width = nodes ? a.extent(1) * a.extent(3) : 1;
  grow_all_buds(params, bud_capacity(params) * (4 * width + 16) + 1, buds,
                [&] { return AlignmentMasses<T>(a, nodes, params); });
}

}  // namespace

/// Computes the buds of every query; masses that need no nodes are computed in double.
template <>
void TreeBuds::cpu<target_isa>(const Tensor& a, const Tensor& nodes, const BudParams& params,
                               const Tensor& buds) {
  if (!nodes) return grow_all<double>(a, nodes, params, buds);
  visit_float("tree_buds", nodes.dtype(), [&]<class T>(Type<T>) { grow_all<T>(a, nodes, params, buds); });
}

}  // namespace heed::kernel

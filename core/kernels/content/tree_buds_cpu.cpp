// Buds on the CPU: chosen for each query, from masses summed over heads.
#include "heed/core/kernels/content/tree_buds.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "heed/core/kernels/attention/head_rows.h"
#include "heed/core/kernels/content/tree.h"
#include "heed/core/kernels/content/tree_growth.h"

namespace heed::kernel {

int64_t bud_capacity(const BudParams& params) {
  return std::max<int64_t>(
      1, bud_count(params.reach.keys, params.exponent) + (params.greedy ? 0 : params.parallel - 1));
}

int64_t bud_draws(const BudParams& params) {
  // Each draw makes one bud more, or descends along the path that the last leaf cuts.
  return bud_count(params.reach.keys, params.exponent) + params.parallel + tree_height(params.reach.keys);
}

namespace {

/// What the masses of one query's buds are computed from.
template <class T>
class Masses {
 public:
  Masses(const Tensor& a, const Tensor& nodes, const BudParams& params) : params_(params) {
    if (!nodes) return;
    heads_ = a.extent(1);
    width_ = a.extent(3);
    rows_ = nodes.extent(2);
    nodes_ = nodes.data<T>();
    a_.emplace(a);
    const int64_t each = TreeView<T>::scratch(params.reach.keys, width_);
    memory_.resize(static_cast<size_t>(heads_ * each));
    for (int64_t h = 0; h < heads_; ++h) views_.emplace_back(memory_.data() + h * each, width_);
  }

  void look(int64_t b, int64_t i, int64_t leaves) {
    b_ = b;
    i_ = i;
    leaves_ = leaves;
    for (int64_t h = 0; h < heads_; ++h)
      flops += views_[static_cast<size_t>(h)].look(nodes_ + (b * heads_ + h) * rows_ * width_, leaves);
  }

  /// Zero for a bud that cannot be split, above zero for others.
  double of(TreeNode node) {
    const int64_t count = node.count(leaves_);
    if (count <= 1) return 0;
    flops += 8;
    if (params_.mass == BudMass::uniform) return 1;
    if (params_.mass == BudMass::decay)
      return decay_mass(params_.base, leaves_, node.begin(), count) + bud_epsilon;
    double mass = 0;
    for (int64_t h = 0; h < heads_; ++h) {
      const double x =
          static_cast<double>(dot(a_->at(b_, h, i_), views_[static_cast<size_t>(h)][node], width_)) /
          static_cast<double>(count);
      mass += params_.mass == BudMass::exponential ? std::exp(std::min(params_.scale * x, 600.0))
                                                   : std::max(x, 0.0);
    }
    flops += heads_ * (2 * width_ + 4);
    if (params_.by_sum) mass *= static_cast<double>(count);
    return (mass < max_bud_mass ? mass : max_bud_mass) + bud_epsilon;
  }

  int64_t flops = 0;

 private:
  const BudParams& params_;
  int64_t heads_ = 0, width_ = 0, rows_ = 0, b_ = 0, i_ = 0, leaves_ = 0;
  const T* nodes_ = nullptr;
  std::optional<HeadView<const T>> a_;
  std::vector<T> memory_;
  std::vector<TreeView<T>> views_;
};

template <class T>
void grow_all(const Tensor& a, const Tensor& nodes, const BudParams& params, const Tensor& buds) {
  const int64_t width = nodes ? a.extent(1) * a.extent(3) : 1;
  grow_all_buds(params, bud_capacity(params) * (4 * width + 16) + 1, buds,
                [&] { return Masses<T>(a, nodes, params); });
}

}  // namespace

template <>
void TreeBuds::cpu<here>(const Tensor& a, const Tensor& nodes, const BudParams& params, const Tensor& buds) {
  if (!nodes) return grow_all<double>(a, nodes, params, buds);
  visit_float("tree_buds", nodes.dtype(),
              [&](auto type) { grow_all<typename decltype(type)::type>(a, nodes, params, buds); });
}

}  // namespace heed::kernel

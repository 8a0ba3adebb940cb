// Buds by the moments of scores, on the CPU.
#include "heed/core/kernels/content/tree_moments.h"

#include <cmath>

#include "heed/core/kernels/attention/head_rows.h"
#include "heed/core/kernels/content/prefix_tree.h"
#include "heed/core/kernels/content/tree_growth.h"

namespace heed::kernel {
namespace {

/// Computes masses of buds from the mean and variance of their scores, for the query of set_query(); used by
/// BudGrowth.
template <class T>
class MomentMasses {
 public:
  MomentMasses(const Tensor& q, const Tensor& nodes, const MomentParams& params)
      : params_(params),
        heads_(q.extent(1)),
        d_(q.extent(3)),
        width_(nodes.extent(3)),
        queries_(q),
        trees_(nodes, params.growth.visible.keys),
        log_z_(static_cast<size_t>(heads_)) {}

  /// Selects query i of sequence b, which sees this many leaves.
  void set_query(int64_t b, int64_t i, int64_t leaves) {
    b_ = b;
    i_ = i;
    leaves_ = leaves;
    for (int64_t h = 0; h < heads_; ++h) {
      flops += trees_.set_prefix(b, h, leaves);
      log_z_[static_cast<size_t>(h)] = log_moment_sum(leaves, [&](TreeNode node) {
        flops += 6;
        return moments(h, node);
      });
    }
  }

  /// The mass of a bud, summed over heads: 0 for a bud of one leaf, above 0 for others.
  double of(TreeNode node) {
    if (node.count(leaves_) <= 1) return 0;
    double mass = 0;
    for (int64_t h = 0; h < heads_; ++h) {
      mass += moment_mass(params_.mass, node, leaves_, log_z_[static_cast<size_t>(h)],
                          [&](TreeNode descendant) { return moments(h, descendant); });
    }
    flops += heads_ * 8;
    return (mass < max_bud_mass ? mass : max_bud_mass) + bud_epsilon;
  }

  int64_t flops = 0;

 private:
  /// Mean and variance of scale q . k over the keys below a node of head h.
  Moments moments(int64_t h, TreeNode node) {
    const T* const q = queries_.at(b_, h, i_);
    const T* const sums = trees_.sum(h, node);
    const double scale = params_.growth.scale, count = static_cast<double>(node.count(leaves_));
    flops += 2 * d_;
    const double mean = static_cast<double>(simd::dot(q, sums, d_)) / count;
    if (width_ == d_) return {scale * mean, 0};
    flops += 6 * d_;
    const auto [square_sum, sum_square] = weighted_squares(q, sums);
    const double variance =
        static_cast<double>(square_sum) / count - static_cast<double>(sum_square) / (count * count);
    return {scale * mean, std::max(scale * scale * variance, 0.0)};
  }

  /// Sums over columns c of q_c^2 (sum of k_c^2) and of (q_c sum of k_c)^2, over the keys of a node. sums [2
  /// d] has the sums of k_c and then those of k_c^2.
  std::pair<T, T> weighted_squares(const T* q, const T* sums) const {
    constexpr int n = simd::Lanes<T>::count;
    simd::Vector<T> square_sums = {}, sum_squares = {};
    const auto add = [&](simd::Vector<T> qs, simd::Vector<T> key_sums, simd::Vector<T> key_square_sums) {
      const simd::Vector<T> product = qs * key_sums;
      square_sums += qs * qs * key_square_sums;
      sum_squares += product * product;
    };
    int64_t c = 0;
    for (; c + n <= d_; c += n) add(simd::load(q + c), simd::load(sums + c), simd::load(sums + d_ + c));
    if (c < d_) {
      const int64_t remaining = d_ - c;
      add(simd::load_part(q + c, remaining), simd::load_part(sums + c, remaining),
          simd::load_part(sums + d_ + c, remaining));
    }
    const auto plus = [](T x, T y) { return x + y; };
    return {simd::across<T>(square_sums, plus), simd::across<T>(sum_squares, plus)};
  }

  const MomentParams& params_;
  int64_t heads_, d_;
  int64_t width_;  // numbers of a node: d_, or 2 d_ with sums of squares
  int64_t b_ = 0, i_ = 0, leaves_ = 0;
  HeadView<const T> queries_;
  HeadPrefixTrees<T> trees_;
  std::vector<double> log_z_;
};

}  // namespace

/// Computes the buds of every query, by BudGrowth.
template <>
void MomentBuds::cpu<target_isa>(const Tensor& q, const Tensor& nodes, const MomentParams& params,
                                 const Tensor& buds) {
  visit_float("tree_moments", nodes.dtype(), [&]<class T>(Type<T>) {
    const int64_t flops_per_query = bud_capacity(params.growth) * 4 * q.extent(1) * nodes.extent(3) + 1;
    grow_all_buds(params.growth, flops_per_query, buds, [&] { return MomentMasses<T>(q, nodes, params); });
  });
}

}  // namespace heed::kernel

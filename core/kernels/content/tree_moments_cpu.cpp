// Buds by the moments of scores, on the CPU.
#include "heed/core/kernels/content/tree_moments.h"

#include <cmath>
#include <limits>

#include "heed/core/kernels/attention/head_rows.h"
#include "heed/core/kernels/content/tree.h"
#include "heed/core/kernels/content/tree_growth.h"

namespace heed::kernel {
namespace {

/// Mean and variance of the scores below a node.
struct Moments {
  double mean, variance;
};

/// Masses of one query's buds.
template <class T>
class MomentMasses {
 public:
  MomentMasses(const Tensor& q, const Tensor& nodes, const MomentParams& params)
      : params_(params),
        heads_(q.extent(1)),
        d_(q.extent(3)),
        width_(nodes.extent(3)),
        rows_(nodes.extent(2)),
        nodes_(nodes.data<T>()),
        q_(q),
        log_total_(static_cast<size_t>(heads_)) {
    const int64_t each = TreeView<T>::scratch(params.growth.reach.keys, width_);
    memory_.resize(static_cast<size_t>(heads_ * each));
    for (int64_t h = 0; h < heads_; ++h) views_.emplace_back(memory_.data() + h * each, width_);
  }

  void look(int64_t b, int64_t i, int64_t leaves) {
    b_ = b;
    i_ = i;
    leaves_ = leaves;
    for (int64_t h = 0; h < heads_; ++h) {
      flops += views_[static_cast<size_t>(h)].look(nodes_ + (b * heads_ + h) * rows_ * width_, leaves);
      log_total_[static_cast<size_t>(h)] = log_total(h);
    }
  }

  /// Zero for a bud that cannot be split, above zero for others.
  double of(TreeNode node) {
    const int64_t count = node.count(leaves_);
    if (count <= 1) return 0;
    double mass = 0;
    for (int64_t h = 0; h < heads_; ++h) mass += of_head(h, node, static_cast<double>(count));
    flops += heads_ * 8;
    return (mass < max_bud_mass ? mass : max_bud_mass) + bud_epsilon;
  }

  int64_t flops = 0;

 private:
  double of_head(int64_t h, TreeNode node, double count) {
    const double total = log_total_[static_cast<size_t>(h)];
    const auto share = [&](double many, double log_weight) {
      return many * std::exp(std::min(log_weight - total, 600.0));
    };
    if (params_.mass == MomentMass::lookahead || params_.mass == MomentMass::contrast) {
      node = two_sided(node, leaves_);
      const auto left = static_cast<double>(node.left().count(leaves_)), right = count - left;
      const double left_mean = moments(h, node.left()).mean, right_mean = moments(h, node.right()).mean;
      if (params_.mass == MomentMass::contrast) {
        const double apart = share(1, left_mean) - share(1, right_mean);
        return left * right / count * apart * apart;
      }
      const double mean = (left * left_mean + right * right_mean) / count;
      return std::max(share(left, left_mean) + share(right, right_mean) - share(count, mean), 0.0);
    }
    const Moments own = moments(h, node);
    if (params_.mass == MomentMass::variance) {
      const double weight = share(1, own.mean + own.variance / 2);
      return count * weight * weight * std::expm1(std::min(own.variance, 50.0));
    }
    const double all = share(count, own.mean + own.variance / 2);
    return all - share(count, own.mean);
  }

  /// log Z_h
  double log_total(int64_t h) {
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (TreeNode node{moment_level(tree_height(leaves_)), 0}; node.begin() < leaves_; ++node.index) {
      const Moments own = moments(h, node);
      const double log_weight =
          std::log(static_cast<double>(node.count(leaves_))) + own.mean + own.variance / 2;
      if (log_weight > most) {
        sum *= std::exp(most - log_weight);
        most = log_weight;
      }
      sum += std::exp(log_weight - most);
      flops += 6;
    }
    return most + std::log(sum);
  }

  Moments moments(int64_t h, TreeNode node) {
    const T* const q = q_.at(b_, h, i_);
    const T* const sums = views_[static_cast<size_t>(h)][node];
    const double scale = params_.growth.scale, count = static_cast<double>(node.count(leaves_));
    flops += 2 * d_;
    const double mean = static_cast<double>(dot(q, sums, d_)) / count;
    if (width_ == d_) return {scale * mean, 0};
    flops += 6 * d_;
    const auto [squares, means] = squared(q, sums);
    const double variance =
        static_cast<double>(squares) / count - static_cast<double>(means) / (count * count);
    return {scale * mean, std::max(scale * scale * variance, 0.0)};
  }

  /// Sums over columns of q^2 (sum of k^2) and of (q (sum of k))^2.
  std::pair<T, T> squared(const T* q, const T* sums) const {
    constexpr int n = simd::Lanes<T>::count;
    simd::Vector<T> squares = {}, means = {};
    const auto add = [&](simd::Vector<T> a, simd::Vector<T> k, simd::Vector<T> kk) {
      const simd::Vector<T> product = a * k;
      squares += a * a * kk;
      means += product * product;
    };
    int64_t c = 0;
    for (; c + n <= d_; c += n) add(simd::load(q + c), simd::load(sums + c), simd::load(sums + d_ + c));
    if (c < d_) {
      const int64_t rest = d_ - c;
      add(simd::load_part(q + c, rest), simd::load_part(sums + c, rest),
          simd::load_part(sums + d_ + c, rest));
    }
    const auto plus = [](T x, T y) { return x + y; };
    return {simd::across<T>(squares, plus), simd::across<T>(means, plus)};
  }

  const MomentParams& params_;
  int64_t heads_, d_, width_, rows_, b_ = 0, i_ = 0, leaves_ = 0;
  const T* nodes_;
  HeadView<const T> q_;
  std::vector<double> log_total_;
  std::vector<T> memory_;
  std::vector<TreeView<T>> views_;
};

}  // namespace

template <>
void MomentBuds::cpu<here>(const Tensor& q, const Tensor& nodes, const MomentParams& params,
                           const Tensor& buds) {
  visit_float("tree_moments", nodes.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const int64_t each = bud_capacity(params.growth) * 4 * q.extent(1) * nodes.extent(3) + 1;
    grow_all_buds(params.growth, each, buds, [&] { return MomentMasses<T>(q, nodes, params); });
  });
}

}  // namespace heed::kernel

// Sums over the leaves below each node of a tree, on the CPU, for a prefix of its leaves. A node is full
// where all leaves below it belong to the prefix, else partial.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "heed/core/kernels/content/tree_node.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// a . b over `width` numbers.
template <class T>
T dot(const T* a, const T* b, int64_t width) {
  constexpr int lanes = simd::Lanes<T>::count;
  simd::Vector<T> sum = {};
  int64_t c = 0;
  for (; c + lanes <= width; c += lanes) sum += simd::load(a + c) * simd::load(b + c);
  if (c < width) sum += simd::load_part(a + c, width - c) * simd::load_part(b + c, width - c);
  return simd::across<T>(sum, [](T x, T y) { return x + y; });
}

/// y += factor x over `width` numbers.
template <class T>
void add_scaled(const T* x, T factor, int64_t width, T* y) {
  constexpr int lanes = simd::Lanes<T>::count;
  int64_t c = 0;
  for (; c + lanes <= width; c += lanes) simd::store(y + c, simd::load(y + c) + simd::load(x + c) * factor);
  for (; c < width; ++c) y[c] += x[c] * factor;
}

/// The sums [width] of all nodes over the first leaves of a tree. Sums of full nodes are in memory. The
/// partial nodes are those above the last leaf; set_prefix() adds them up, with at most one addition per
/// level.
template <class T>
class PrefixTree {
 public:
  /// Numbers of working memory for up to this many leaves.
  static int64_t scratch(int64_t leaves, int64_t width) { return (tree_height(leaves) + 1) * width; }
  PrefixTree(T* memory, int64_t width) : partial_sums_(memory), width_(width) {}

  /// Begins the prefix of this many leaves, at least one, of the tree whose full nodes are [rows, width].
  /// Returns the operations.
  int64_t set_prefix(const T* nodes, int64_t leaves) {
    int64_t flops = 0;
    set_path(nodes, leaves, [&](int64_t level, const T* left_sibling) {
      T* sum = partial_sums_ + level * width_;
      for (int64_t c = 0; c < width_; ++c) sum[c] = left_sibling[c] + path_[level - 1][c];
      flops += width_;
      return sum;
    });
    return flops;
  }
  /// The sum over the leaves of the prefix below this node.
  const T* operator[](TreeNode node) const {
    if (node.end() <= leaves_) return nodes_ + node.row() * width_;
    return path_[node.level < height_ ? node.level : height_];  // a node over all leaves has their sum
  }

 protected:
  /// Sets path_[level], the numbers of the node above the last leaf, for each level from the largest full
  /// such node up to the root. A partial node that is a left child alone has those of its child; another gets
  /// what make(level, full left sibling of the child) returns.
  template <class Make>
  void set_path(const T* nodes, int64_t leaves, Make&& make) {
    nodes_ = nodes;
    leaves_ = leaves;
    height_ = tree_height(leaves);
    const int64_t last = leaves - 1;
    int64_t level = std::countr_zero(static_cast<uint64_t>(leaves));
    path_[level] = nodes + TreeNode{level, last >> level}.row() * width_;
    for (++level; level <= height_; ++level) {
      const int64_t child = last >> (level - 1);
      path_[level] = child % 2 == 0 ? path_[level - 1]
                                    : make(level, nodes + TreeNode{level - 1, child - 1}.row() * width_);
    }
  }

  T* partial_sums_;  // [height + 1, width]
  int64_t width_, leaves_ = 0, height_ = 0;
  const T* nodes_ = nullptr;
  const T* path_[64];
};

/// Gradients of the sums of a PrefixTree. Those of full nodes are in memory; push_down() adds those of
/// partial nodes to the full ones below.
template <class T>
class PrefixTreeGradient : private PrefixTree<T> {
 public:
  using PrefixTree<T>::scratch;
  using PrefixTree<T>::PrefixTree;

  /// Begins a prefix with gradients of zero for its partial nodes.
  void set_prefix(T* nodes, int64_t leaves) {
    this->set_path(nodes, leaves, [&](int64_t level, const T*) {
      T* gradient = this->partial_sums_ + level * this->width_;
      std::fill_n(gradient, this->width_, T(0));
      return gradient;
    });
  }
  /// The gradient of the sum of this node, to be added to.
  T* operator[](TreeNode node) const { return const_cast<T*>(PrefixTree<T>::operator[](node)); }
  /// Adds the gradient of each partial node to its two children, from the root down. Returns the operations.
  int64_t push_down() const {
    int64_t flops = 0;
    const int64_t full_level = std::countr_zero(static_cast<uint64_t>(this->leaves_));
    for (int64_t level = this->height_; level > full_level; --level) {
      const T* gradient = this->partial_sums_ + level * this->width_;
      if (this->path_[level] != gradient) continue;
      const int64_t child = (this->leaves_ - 1) >> (level - 1);
      T* left_sibling = const_cast<T*>(this->nodes_) + TreeNode{level - 1, child - 1}.row() * this->width_;
      add_scaled(gradient, T(1), this->width_, left_sibling);
      add_scaled(gradient, T(1), this->width_, const_cast<T*>(this->path_[level - 1]));
      flops += 2 * this->width_;
    }
    return flops;
  }
};

/// One PrefixTree for each head, over nodes [B, H, rows, width].
template <class T>
class HeadPrefixTrees {
 public:
  /// For prefixes of up to `max_leaves`. `nodes` may be empty: no trees.
  HeadPrefixTrees(const Tensor& nodes, int64_t max_leaves) {
    if (!nodes) return;
    nodes_ = nodes.data<T>();
    heads_ = nodes.extent(1);
    nodes_per_head_ = nodes.extent(2) * nodes.extent(3);
    const int64_t scratch = PrefixTree<T>::scratch(max_leaves, nodes.extent(3));
    memory_.resize(static_cast<size_t>(heads_ * scratch));
    for (int64_t h = 0; h < heads_; ++h) trees_.emplace_back(memory_.data() + h * scratch, nodes.extent(3));
  }
  /// Begins the prefix of this many leaves of head h of sequence b. Returns the operations.
  int64_t set_prefix(int64_t b, int64_t h, int64_t leaves) {
    return trees_[static_cast<size_t>(h)].set_prefix(nodes_ + (b * heads_ + h) * nodes_per_head_, leaves);
  }
  /// The sum [width] over the leaves of the prefix of head h below this node.
  const T* sum(int64_t h, TreeNode node) const { return trees_[static_cast<size_t>(h)][node]; }

 private:
  const T* nodes_ = nullptr;
  int64_t heads_ = 0, nodes_per_head_ = 0;
  std::vector<T> memory_;
  std::vector<PrefixTree<T>> trees_;
};

}  // namespace heed::kernel

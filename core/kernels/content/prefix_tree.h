// Sums over the leaves below each node of a tree, on the CPU, where only the first leaves of the tree (a
// prefix) count. A node is full where all leaves below it belong to the prefix, else partial.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "heed/core/kernels/content/tree_node.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// The sum [width] of each node over its leaves in a prefix. Sums of full nodes are given. Partial nodes all
/// lie above the last leaf of the prefix; set_prefix() computes their sums, with at most one addition per
/// level.
template <class T>
class PrefixTree {
 public:
  /// Working memory for up to this many leaves, in numbers.
  static int64_t scratch(int64_t leaves, int64_t width) { return (tree_height(leaves) + 1) * width; }
  PrefixTree(T* memory, int64_t width) : partial_sums_(memory), width_(width) {}

  /// Selects the prefix of this many leaves, at least one, of the tree whose full nodes are [rows, width].
  /// Returns the number of operations.
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
  /// Sets path_[level], the sum of the node above the last leaf, for each level from the largest full such
  /// node up to the root. `child` is the node on the path one level below. Where it is a left child, its
  /// right sibling has no leaf, and the node shares the sum of the child; else the node gets make(level, sum
  /// of the full left sibling of the child).
  template <class Make>
  void set_path(const T* nodes, int64_t leaves, Make&& make) {
    nodes_ = nodes;
    leaves_ = leaves;
    height_ = tree_height(leaves);
    const int64_t last_leaf = leaves - 1;
    int64_t level = std::countr_zero(static_cast<uint64_t>(leaves));
    path_[level] = nodes + TreeNode{level, last_leaf >> level}.row() * width_;
    for (++level; level <= height_; ++level) {
      const int64_t child = last_leaf >> (level - 1);
      path_[level] = child % 2 == 0 ? path_[level - 1]
                                    : make(level, nodes + TreeNode{level - 1, child - 1}.row() * width_);
    }
  }

  T* partial_sums_;  // [height + 1, width]
  int64_t width_, leaves_ = 0, height_ = 0;
  const T* nodes_ = nullptr;
  const T* path_[64];  // by level; a level is at most the number of bits of a position
};

/// Gradients of the sums of a PrefixTree. Those of full nodes are given and added to; push_down() adds those
/// of partial nodes to the full ones below.
template <class T>
class PrefixTreeGradient : private PrefixTree<T> {
 public:
  using PrefixTree<T>::scratch;
  using PrefixTree<T>::PrefixTree;

  /// Selects a prefix and sets the gradients of its partial nodes to zero.
  void set_prefix(T* nodes, int64_t leaves) {
    this->set_path(nodes, leaves, [&](int64_t level, const T*) {
      T* gradient = this->partial_sums_ + level * this->width_;
      std::fill_n(gradient, this->width_, T(0));
      return gradient;
    });
  }
  /// The gradient of the sum of this node, to which callers add.
  T* operator[](TreeNode node) const { return const_cast<T*>(PrefixTree<T>::operator[](node)); }
  /// Adds the gradient of each partial node to its two children, from the root down. Returns the operations.
  int64_t push_down() const {
    int64_t flops = 0;
    const int64_t full_level = std::countr_zero(static_cast<uint64_t>(this->leaves_));
    for (int64_t level = this->height_; level > full_level; --level) {
      const T* gradient = this->partial_sums_ + level * this->width_;
      if (this->path_[level] != gradient) continue;  // shared with the child
      const int64_t child = (this->leaves_ - 1) >> (level - 1);
      T* left_sibling = const_cast<T*>(this->nodes_) + TreeNode{level - 1, child - 1}.row() * this->width_;
      simd::add_scaled(gradient, T(1), this->width_, left_sibling);
      simd::add_scaled(gradient, T(1), this->width_, const_cast<T*>(this->path_[level - 1]));
      flops += 2 * this->width_;
    }
    return flops;
  }
};

/// One PrefixTree for each head, over nodes [B, H, rows, width].
template <class T>
class HeadPrefixTrees {
 public:
  /// For prefixes of up to `max_leaves`. Empty `nodes` give no trees.
  HeadPrefixTrees(const Tensor& nodes, int64_t max_leaves) {
    if (!nodes) return;
    nodes_ = nodes.data<T>();
    heads_ = nodes.extent(1);
    nodes_per_head_ = nodes.extent(2) * nodes.extent(3);
    const int64_t scratch = PrefixTree<T>::scratch(max_leaves, nodes.extent(3));
    memory_.resize(static_cast<size_t>(heads_ * scratch));
    for (int64_t h = 0; h < heads_; ++h) trees_.emplace_back(memory_.data() + h * scratch, nodes.extent(3));
  }
  /// Selects the prefix of this many leaves of head h of sequence b. Returns the number of operations.
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

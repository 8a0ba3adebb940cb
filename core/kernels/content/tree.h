// Sums over the leaves below each node of a tree, on the CPU.
#pragma once

#include <bit>
#include <cstdint>

#include "heed/core/kernels/content/tree_node.h"
#include "heed/core/kernels/simd/simd.h"

namespace heed::kernel {

template <class T>
T dot(const T* a, const T* b, int64_t width) {
  constexpr int n = simd::Lanes<T>::count;
  simd::Vector<T> sum = {};
  int64_t c = 0;
  for (; c + n <= width; c += n) sum += simd::load(a + c) * simd::load(b + c);
  if (c < width) sum += simd::load_part(a + c, width - c) * simd::load_part(b + c, width - c);
  return simd::across<T>(sum, [](T x, T y) { return x + y; });
}

/// to += factor from
template <class T>
void add_scaled(const T* from, T factor, int64_t width, T* to) {
  constexpr int n = simd::Lanes<T>::count;
  int64_t c = 0;
  for (; c + n <= width; c += n) simd::store(to + c, simd::load(to + c) + simd::load(from + c) * factor);
  for (; c < width; ++c) to[c] += from[c] * factor;
}

/// The tree of the first `leaves` leaves, out of a larger one. Full nodes are in memory. The nodes that the
/// last leaf cuts are one path from the root and are summed here, at most one addition per level.
template <class T>
class TreeView {
 public:
  /// Numbers of working memory for up to this many leaves.
  static int64_t scratch(int64_t leaves, int64_t width) { return (tree_height(leaves) + 1) * width; }
  TreeView(T* memory, int64_t width) : own_(memory), width_(width) {}

  /// The sums of the first `leaves` leaves, at least one. Returns the operations.
  int64_t look(const T* nodes, int64_t leaves) {
    int64_t flops = 0;
    each_cut(nodes, leaves, [&](int64_t level, const T* sibling) {
      T* to = own_ + level * width_;
      for (int64_t c = 0; c < width_; ++c) to[c] = sibling[c] + path_[level - 1][c];
      flops += width_;
      return to;
    });
    return flops;
  }
  /// The sum over the node's leaves so far.
  const T* operator[](TreeNode node) const {
    if (node.end() <= leaves_) return nodes_ + node.row() * width_;
    return path_[node.level < height_ ? node.level : height_];  // a node over all leaves has their sum
  }

 protected:
  /// Calls make(level, full left sibling of the path below) for each node that is cut, from below.
  template <class Make>
  void each_cut(const T* nodes, int64_t leaves, Make&& make) {
    nodes_ = nodes;
    leaves_ = leaves;
    height_ = tree_height(leaves);
    const int64_t last = leaves - 1;
    int64_t level = std::countr_zero(static_cast<uint64_t>(leaves));
    path_[level] = nodes + TreeNode{level, last >> level}.row() * width_;
    for (++level; level <= height_; ++level) {
      const int64_t below = last >> (level - 1);
      path_[level] = below % 2 == 0 ? path_[level - 1]
                                    : make(level, nodes + TreeNode{level - 1, below - 1}.row() * width_);
    }
  }

  T* own_;
  int64_t width_, leaves_ = 0, height_ = 0;
  const T* nodes_ = nullptr;
  const T* path_[64];
};

/// The same for gradients: settle() passes the gradients of cut nodes down to full ones.
template <class T>
class TreeGradient : private TreeView<T> {
 public:
  using TreeView<T>::scratch;
  using TreeView<T>::TreeView;

  void look(T* nodes, int64_t leaves) {
    this->each_cut(nodes, leaves, [&](int64_t level, const T*) {
      T* to = this->own_ + level * this->width_;
      for (int64_t c = 0; c < this->width_; ++c) to[c] = 0;
      return to;
    });
  }
  T* operator[](TreeNode node) const { return const_cast<T*>(TreeView<T>::operator[](node)); }
  int64_t settle() const {
    int64_t flops = 0;
    const int64_t full = std::countr_zero(static_cast<uint64_t>(this->leaves_));
    for (int64_t level = this->height_; level > full; --level) {
      const T* sum = this->own_ + level * this->width_;
      if (this->path_[level] != sum) continue;
      const int64_t below = (this->leaves_ - 1) >> (level - 1);
      T* sibling = const_cast<T*>(this->nodes_) + TreeNode{level - 1, below - 1}.row() * this->width_;
      add_scaled(sum, T(1), this->width_, sibling);
      add_scaled(sum, T(1), this->width_, const_cast<T*>(this->path_[level - 1]));
      flops += 2 * this->width_;
    }
    return flops;
  }
};

}  // namespace heed::kernel

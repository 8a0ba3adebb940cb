// Monomials of many tokens at a time, made block by block from the rows of their variables: tokens lie in
// lanes.
#pragma once

#include <vector>

#include "core/kernels/fastmax.h"
#include "core/kernels/vector.h"

namespace heed::kernel {

/// A monomial of degree 2 or more: its parent, one degree lower, times one more variable.
template <class T>
struct Monomial {
  int32_t depth;   ///< its degree
  int32_t letter;  ///< the last variable; they do not decrease along a monomial
  int32_t parent;  ///< of degree 2: the variable that is its parent
  T weight;        ///< what it counts for in f(x . y): coefficient and multiplicity
};

/// Those of degree 2 to p in d variables, each after its parent and before its parent's next child.
/// coefficients[l] is that of s^l.
template <class T>
std::vector<Monomial<T>> monomials(int64_t d, const std::vector<double>& coefficients) {
  std::vector<Monomial<T>> out;
  const auto degree = static_cast<int32_t>(coefficients.size()) - 1;
  // `count` is l! / (a_1! ... a_d!) of the parent, `run` how often its last letter ends it.
  const auto below = [&](const auto& self, int32_t depth, int32_t last, int32_t run, double count) -> void {
    for (int32_t letter = last; depth < degree && letter < d; ++letter) {
      const int32_t longer = letter == last ? run + 1 : 1;
      const double many = count * (depth + 1) / longer;
      out.push_back(
          {depth + 1, letter, last, static_cast<T>(many * coefficients[static_cast<size_t>(depth) + 1])});
      self(self, depth + 1, letter, longer, many);
    }
  };
  for (int32_t letter = 0; letter < d; ++letter) below(below, 1, letter, 1, 1);
  return out;
}

/// Makes blocks of monomials, one after the other, and carries gradients back to the variables.
template <class T>
class MonomialFeatures {
 public:
  /// Numbers of the two stacks of a walk in chunks of `chunk` tokens.
  static int64_t scratch(int64_t degree, int64_t chunk) { return 2 * (degree > 2 ? degree - 2 : 0) * chunk; }

  MonomialFeatures(int64_t degree, int64_t chunk, T* memory)
      : degree_(degree), chunk_(chunk), values_(memory), slopes_(memory + scratch(degree, chunk) / 2) {}

  /// Begins at the first monomial. rows [d, chunk]; the first `width` lanes count. slope_rows as rows, or
  /// null.
  void begin(const T* rows, T* slope_rows, int64_t width) {
    rows_ = rows;
    slope_rows_ = slope_rows;
    width_ = width;
    open_ = 1;
  }

  /// Rows of the next `count` monomials, times their weights where `weighted`.
  void make(const Monomial<T>* next, int64_t count, bool weighted, T* to) {
    for (int64_t n = 0; n < count; ++n, ++next, to += chunk_) {
      const T* parent = next->depth == 2 ? row(next->parent) : value(next->depth - 1);
      const T* letter = row(next->letter);
      if (next->depth < degree_) {
        T* kept = value(next->depth);
        for (int64_t c = 0; c < width_; c += n_) {
          const V x = simd::load(parent + c) * simd::load(letter + c);
          simd::store(kept + c, x);
          simd::store(to + c, weighted ? x * next->weight : x);
        }
      } else if (weighted) {
        for (int64_t c = 0; c < width_; c += n_)
          simd::store(to + c, simd::load(parent + c) * simd::load(letter + c) * next->weight);
      } else {
        for (int64_t c = 0; c < width_; c += n_)
          simd::store(to + c, simd::load(parent + c) * simd::load(letter + c));
      }
    }
  }

  /// Adds what the gradients of the next `count` monomials (of their weighted rows where `weighted`) mean to
  /// the variables. finish() adds the rest.
  void pull(const Monomial<T>* next, int64_t count, bool weighted, const T* slopes) {
    for (int64_t n = 0; n < count; ++n, ++next, slopes += chunk_) {
      close(next->depth);
      const T weight = weighted ? next->weight : T(1);
      const bool first = next->depth == 2;
      const T* parent = first ? row(next->parent) : value(next->depth - 1);
      const T* letter = row(next->letter);
      if (next->depth < degree_) {
        open_ = next->depth;
        node_[static_cast<size_t>(open_)] = *next;
        T *kept = value(open_), *slope = this->slope(open_);
        for (int64_t c = 0; c < width_; c += n_) {
          simd::store(kept + c, simd::load(parent + c) * simd::load(letter + c));
          simd::store(slope + c, simd::load(slopes + c) * weight);
        }
      } else {
        T* to_letter = slope_rows_ + next->letter * chunk_;
        T* to_parent = first ? slope_rows_ + next->parent * chunk_ : slope(next->depth - 1);
        for (int64_t c = 0; c < width_; c += n_) {
          const V slope = simd::load(slopes + c) * weight;
          simd::store(to_letter + c, simd::load(to_letter + c) + slope * simd::load(parent + c));
          simd::store(to_parent + c, simd::load(to_parent + c) + slope * simd::load(letter + c));
        }
      }
    }
  }
  void finish() { close(2); }

 private:
  using V = simd::Vector<T>;
  static constexpr int n_ = simd::Lanes<T>::count;
  const T* row(int64_t letter) const { return rows_ + letter * chunk_; }
  T* value(int64_t depth) const { return values_ + (depth - 2) * chunk_; }
  T* slope(int64_t depth) const { return slopes_ + (depth - 2) * chunk_; }

  /// Hands on the gradients of the open monomials of this degree and above: they get no more children.
  void close(int64_t depth) {
    for (; open_ >= depth; --open_) {
      const Monomial<T>& node = node_[static_cast<size_t>(open_)];
      const bool first = open_ == 2;
      const T *parent = first ? row(node.parent) : value(open_ - 1), *letter = row(node.letter);
      T* to_letter = slope_rows_ + node.letter * chunk_;
      T* to_parent = first ? slope_rows_ + node.parent * chunk_ : slope(open_ - 1);
      const T* mine = slope(open_);
      for (int64_t c = 0; c < width_; c += n_) {
        const V slope = simd::load(mine + c);
        simd::store(to_letter + c, simd::load(to_letter + c) + slope * simd::load(parent + c));
        simd::store(to_parent + c, simd::load(to_parent + c) + slope * simd::load(letter + c));
      }
    }
  }

  int64_t degree_, chunk_, width_ = 0, open_ = 1;
  T *values_, *slopes_;
  const T* rows_ = nullptr;
  T* slope_rows_ = nullptr;
  std::vector<Monomial<T>> node_ = std::vector<Monomial<T>>(static_cast<size_t>(degree_ + 1));
};

}  // namespace heed::kernel

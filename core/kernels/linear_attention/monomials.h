// Monomials of many tokens at a time, computed block by block from rows of variables [d, chunk]; vectors run
// over tokens.
#pragma once

#include <vector>

#include "heed/core/kernels/linear_attention/polynomial_attention.h"
#include "heed/core/kernels/simd/simd.h"

namespace heed::kernel {

/// A monomial of degree 2 or more: its parent, one degree lower, times one more variable.
template <class T>
struct Monomial {
  int32_t depth;     ///< its degree
  int32_t variable;  ///< the last variable; variables ascend within a monomial
  int32_t parent;    ///< only for degree 2: the first variable
  T weight;          ///< its weight in f(x . y): coefficient times multiplicity
};

/// Those of degree 2 to p in d variables, each after its parent and before its parent's next child.
/// coefficients[l] is that of s^l.
template <class T>
std::vector<Monomial<T>> monomials(int64_t d, const std::vector<double>& coefficients) {
  std::vector<Monomial<T>> out;
  const auto degree = static_cast<int32_t>(coefficients.size()) - 1;
  // `count` is l! / (a_1! ... a_d!) of the parent, `run` the multiplicity of its last variable.
  const auto below = [&](const auto& self, int32_t depth, int32_t last, int32_t run, double count) -> void {
    for (int32_t variable = last; depth < degree && variable < d; ++variable) {
      const int32_t longer = variable == last ? run + 1 : 1;
      const double multiplicity = count * (depth + 1) / longer;
      out.push_back({depth + 1, variable, last,
                     static_cast<T>(multiplicity * coefficients[static_cast<size_t>(depth) + 1])});
      self(self, depth + 1, variable, longer, multiplicity);
    }
  };
  for (int32_t variable = 0; variable < d; ++variable) below(below, 1, variable, 1, 1);
  return out;
}

/// Computes blocks of monomials in order, and their gradients with respect to the variables.
template <class T>
class MonomialFeatures {
 public:
  /// Numbers of scratch memory: two stacks of rows of `chunk` tokens.
  static int64_t scratch(int64_t degree, int64_t chunk) { return 2 * (degree > 2 ? degree - 2 : 0) * chunk; }

  MonomialFeatures(int64_t degree, int64_t chunk, T* memory)
      : degree_(degree), chunk_(chunk), values_(memory), grads_(memory + scratch(degree, chunk) / 2) {}

  /// Restarts at the first monomial. Uses the first `width` tokens of rows [d, chunk]; grad_rows has the same
  /// shape, or is null.
  void begin(const T* rows, T* grad_rows, int64_t width) {
    rows_ = rows;
    grad_rows_ = grad_rows;
    width_ = width;
    open_ = 1;
  }

  /// Writes the next `count` monomials to [count, chunk], times their weights if `weighted`.
  void make(const Monomial<T>* next, int64_t count, bool weighted, T* to) {
    for (int64_t n = 0; n < count; ++n, ++next, to += chunk_) {
      const T* parent = next->depth == 2 ? row(next->parent) : value(next->depth - 1);
      const T* variable = row(next->variable);
      if (next->depth < degree_) {
        T* product = value(next->depth);
        for (int64_t c = 0; c < width_; c += n_) {
          const V x = simd::load(parent + c) * simd::load(variable + c);
          simd::store(product + c, x);
          simd::store(to + c, weighted ? x * next->weight : x);
        }
      } else if (weighted) {
        for (int64_t c = 0; c < width_; c += n_)
          simd::store(to + c, simd::load(parent + c) * simd::load(variable + c) * next->weight);
      } else {
        for (int64_t c = 0; c < width_; c += n_)
          simd::store(to + c, simd::load(parent + c) * simd::load(variable + c));
      }
    }
  }

  /// Adds to grad_rows the gradients that reach the variables through the next `count` monomials; `weighted`
  /// as in make(). finish() adds what is left.
  void backpropagate(const Monomial<T>* next, int64_t count, bool weighted, const T* grads) {
    for (int64_t n = 0; n < count; ++n, ++next, grads += chunk_) {
      close(next->depth);
      const T weight = weighted ? next->weight : T(1);
      const bool first = next->depth == 2;
      const T* parent = first ? row(next->parent) : value(next->depth - 1);
      const T* variable = row(next->variable);
      if (next->depth < degree_) {
        open_ = next->depth;
        node_[static_cast<size_t>(open_)] = *next;
        T *product = value(open_), *grad = grad_of(open_);
        for (int64_t c = 0; c < width_; c += n_) {
          simd::store(product + c, simd::load(parent + c) * simd::load(variable + c));
          simd::store(grad + c, simd::load(grads + c) * weight);
        }
      } else {
        T* to_variable = grad_rows_ + next->variable * chunk_;
        T* to_parent = first ? grad_rows_ + next->parent * chunk_ : grad_of(next->depth - 1);
        for (int64_t c = 0; c < width_; c += n_) {
          const V grad = simd::load(grads + c) * weight;
          simd::store(to_variable + c, simd::load(to_variable + c) + grad * simd::load(parent + c));
          simd::store(to_parent + c, simd::load(to_parent + c) + grad * simd::load(variable + c));
        }
      }
    }
  }
  void finish() { close(2); }

 private:
  using V = simd::Vector<T>;
  static constexpr int n_ = simd::Lanes<T>::count;
  const T* row(int64_t variable) const { return rows_ + variable * chunk_; }
  T* value(int64_t depth) const { return values_ + (depth - 2) * chunk_; }
  T* grad_of(int64_t depth) const { return grads_ + (depth - 2) * chunk_; }

  /// Passes the gradients of open monomials of this degree and above to their parents: they get no more
  /// children.
  void close(int64_t depth) {
    for (; open_ >= depth; --open_) {
      const Monomial<T>& node = node_[static_cast<size_t>(open_)];
      const bool first = open_ == 2;
      const T *parent = first ? row(node.parent) : value(open_ - 1), *variable = row(node.variable);
      T* to_variable = grad_rows_ + node.variable * chunk_;
      T* to_parent = first ? grad_rows_ + node.parent * chunk_ : grad_of(open_ - 1);
      const T* node_grad = grad_of(open_);
      for (int64_t c = 0; c < width_; c += n_) {
        const V grad = simd::load(node_grad + c);
        simd::store(to_variable + c, simd::load(to_variable + c) + grad * simd::load(parent + c));
        simd::store(to_parent + c, simd::load(to_parent + c) + grad * simd::load(variable + c));
      }
    }
  }

  int64_t degree_, chunk_, width_ = 0, open_ = 1;
  T *values_, *grads_;
  const T* rows_ = nullptr;
  T* grad_rows_ = nullptr;
  std::vector<Monomial<T>> node_ = std::vector<Monomial<T>>(static_cast<size_t>(degree_ + 1));
};

}  // namespace heed::kernel

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

/// What dropout keeps of a block of monomials: bit n % bits of words[n / bits * chunk + c] for monomial n of
/// token c. Without words nothing is dropped.
template <class T>
struct KeptMonomials {
  static constexpr int64_t bits = 8 * static_cast<int64_t>(sizeof(T));
  const simd::Word<T>* words = nullptr;
  int64_t chunk = 0;
  T factor = 1;  ///< of what is kept

  /// x, or zero in the lanes that are dropped; tokens from c on.
  template <bool drops>
  simd::Vector<T> of(int64_t n, int64_t c, simd::Vector<T> x) const {
    if constexpr (!drops) return x;
    const simd::Words<T> word = simd::load_words<T>(words + n / bits * chunk + c);
    return (word & (simd::Word<T>{1} << (n % bits))) != 0 ? x : simd::Vector<T>{};
  }
};

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

  /// Writes the next `count` monomials to [count, chunk], times their weights if `weighted`, less what `kept`
  /// drops.
  void make(const Monomial<T>* next, int64_t count, bool weighted, const KeptMonomials<T>& kept, T* to) {
    kept.words != nullptr ? make_kept<true>(next, count, weighted, kept, to)
                          : make_kept<false>(next, count, weighted, kept, to);
  }

  /// Adds to grad_rows the gradients that reach the variables through the next `count` monomials; `weighted`
  /// and `kept` as in make(). finish() adds what is left.
  void backpropagate(const Monomial<T>* next, int64_t count, bool weighted, const KeptMonomials<T>& kept,
                     const T* grads) {
    kept.words != nullptr ? backpropagate_kept<true>(next, count, weighted, kept, grads)
                          : backpropagate_kept<false>(next, count, weighted, kept, grads);
  }
  void finish() { close(2); }

 private:
  using V = simd::Vector<T>;

  template <bool drops>
  void make_kept(const Monomial<T>* next, int64_t count, bool weighted, const KeptMonomials<T>& kept, T* to) {
    for (int64_t n = 0; n < count; ++n, ++next, to += chunk_) {
      const T* parent = next->depth == 2 ? row(next->parent) : value(next->depth - 1);
      const T* variable = row(next->variable);
      const T weight = weighted ? next->weight * kept.factor : kept.factor;
      if (next->depth < degree_) {
        T* product = value(next->depth);
        for (int64_t c = 0; c < width_; c += n_) {
          const V x = simd::load(parent + c) * simd::load(variable + c);
          simd::store(product + c, x);
          simd::store(to + c, kept.template of<drops>(n, c, x * weight));
        }
      } else if (drops || weighted) {
        for (int64_t c = 0; c < width_; c += n_)
          simd::store(to + c, kept.template of<drops>(
                                  n, c, simd::load(parent + c) * simd::load(variable + c) * weight));
      } else {
        for (int64_t c = 0; c < width_; c += n_)
          simd::store(to + c, simd::load(parent + c) * simd::load(variable + c));
      }
    }
  }

  template <bool drops>
  void backpropagate_kept(const Monomial<T>* next, int64_t count, bool weighted, const KeptMonomials<T>& kept,
                          const T* grads) {
    for (int64_t n = 0; n < count; ++n, ++next, grads += chunk_) {
      close(next->depth);
      const T weight = weighted ? next->weight * kept.factor : kept.factor;
      const bool first = next->depth == 2;
      const T* parent = first ? row(next->parent) : value(next->depth - 1);
      const T* variable = row(next->variable);
      if (next->depth < degree_) {
        open_ = next->depth;
        node_[static_cast<size_t>(open_)] = *next;
        T *product = value(open_), *grad = grad_of(open_);
        for (int64_t c = 0; c < width_; c += n_) {
          simd::store(product + c, simd::load(parent + c) * simd::load(variable + c));
          simd::store(grad + c, kept.template of<drops>(n, c, simd::load(grads + c) * weight));
        }
      } else {
        T* to_variable = grad_rows_ + next->variable * chunk_;
        T* to_parent = first ? grad_rows_ + next->parent * chunk_ : grad_of(next->depth - 1);
        for (int64_t c = 0; c < width_; c += n_) {
          const V grad = kept.template of<drops>(n, c, simd::load(grads + c) * weight);
          simd::store(to_variable + c, simd::load(to_variable + c) + grad * simd::load(parent + c));
          simd::store(to_parent + c, simd::load(to_parent + c) + grad * simd::load(variable + c));
        }
      }
    }
  }
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

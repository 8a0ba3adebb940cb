// Monomials of many tokens at a time, computed block by block from rows of variables [d, chunk]; vectors run
// over tokens.
#pragma once

#include <vector>

#include "heed/core/kernels/linear_attention/monomial_list.h"
#include "heed/core/kernels/linear_attention/polynomial_attention.h"
#include "heed/core/kernels/simd/simd.h"

namespace heed::kernel {

/// The dropout mask of a block of monomials: bit n % bits of words[n / bits * chunk + c] is set where
/// monomial n of token c is kept. Without words nothing is dropped.
template <class T>
struct MonomialMask {
  static constexpr int64_t bits = 8 * static_cast<int64_t>(sizeof(T));
  const simd::Word<T>* words = nullptr;
  int64_t chunk = 0;
  T keep_scale = 1;  ///< factor of kept monomials

  /// x [tokens from c on], or zero in the lanes where monomial n is dropped.
  template <bool drops>
  simd::Vector<T> apply(int64_t n, int64_t c, simd::Vector<T> x) const {
    if constexpr (!drops) return x;
    const simd::Words<T> word = simd::load_words<T>(words + n / bits * chunk + c);
    return (word & (simd::Word<T>{1} << (n % bits))) != 0 ? x : simd::Vector<T>{};
  }
};

/// Computes blocks of monomials in order, and their gradients with respect to the variables.
template <class T>
class MonomialFeatures {
 public:
  /// Numbers of scratch memory: values and gradients of the open monomials, `chunk` tokens each.
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

  /// Writes the next `count` monomials to `to` [count, chunk], times their weights if `weighted`; those that
  /// `mask` drops are zero.
  void make(const Monomial<T>* next, int64_t count, bool weighted, const MonomialMask<T>& mask, T* to) {
    mask.words != nullptr ? make_masked<true>(next, count, weighted, mask, to)
                          : make_masked<false>(next, count, weighted, mask, to);
  }

  /// Adds to grad_rows the gradients that reach the variables through the next `count` monomials, whose
  /// gradients are `grads` [count, chunk]. `weighted` and `mask` are those of make(). finish() passes on the
  /// gradients of monomials that are still open.
  void backpropagate(const Monomial<T>* next, int64_t count, bool weighted, const MonomialMask<T>& mask,
                     const T* grads) {
    mask.words != nullptr ? backpropagate_masked<true>(next, count, weighted, mask, grads)
                          : backpropagate_masked<false>(next, count, weighted, mask, grads);
  }
  void finish() { close(2); }

 private:
  using V = simd::Vector<T>;

  template <bool drops>
  void make_masked(const Monomial<T>* next, int64_t count, bool weighted, const MonomialMask<T>& mask,
                   T* to) {
    for (int64_t n = 0; n < count; ++n, ++next, to += chunk_) {
      const T* parent = next->depth == 2 ? row(next->parent) : value(next->depth - 1);
      const T* variable = row(next->variable);
      const T weight = weighted ? next->weight * mask.keep_scale : mask.keep_scale;
      if (next->depth < degree_) {
        T* product = value(next->depth);
        for (int64_t c = 0; c < width_; c += n_) {
          const V x = simd::load(parent + c) * simd::load(variable + c);
          simd::store(product + c, x);
          simd::store(to + c, mask.template apply<drops>(n, c, x * weight));
        }
      } else if (drops || weighted) {
        for (int64_t c = 0; c < width_; c += n_)
          simd::store(to + c, mask.template apply<drops>(
                                  n, c, simd::load(parent + c) * simd::load(variable + c) * weight));
      } else {
        for (int64_t c = 0; c < width_; c += n_)
          simd::store(to + c, simd::load(parent + c) * simd::load(variable + c));
      }
    }
  }

  template <bool drops>
  void backpropagate_masked(const Monomial<T>* next, int64_t count, bool weighted,
                            const MonomialMask<T>& mask, const T* grads) {
    for (int64_t n = 0; n < count; ++n, ++next, grads += chunk_) {
      close(next->depth);
      const T weight = weighted ? next->weight * mask.keep_scale : mask.keep_scale;
      if (next->depth < degree_) {
        const T* parent = next->depth == 2 ? row(next->parent) : value(next->depth - 1);
        const T* variable = row(next->variable);
        open_ = next->depth;
        node_[static_cast<size_t>(open_)] = *next;
        T *product = value(open_), *grad = grad_of(open_);
        for (int64_t c = 0; c < width_; c += n_) {
          simd::store(product + c, simd::load(parent + c) * simd::load(variable + c));
          simd::store(grad + c, mask.template apply<drops>(n, c, simd::load(grads + c) * weight));
        }
      } else {
        add_to_factors(*next, [&](int64_t c) {
          return mask.template apply<drops>(n, c, simd::load(grads + c) * weight);
        });
      }
    }
  }

  /// Adds the gradient of a monomial, grad_at(c) for the vector of tokens from c on, to its variable's
  /// gradient times its parent and to its parent's gradient times its variable.
  template <class Grad>
  void add_to_factors(const Monomial<T>& monomial, Grad grad_at) {
    const bool has_variable_parent = monomial.depth == 2;
    const T* parent = has_variable_parent ? row(monomial.parent) : value(monomial.depth - 1);
    const T* variable = row(monomial.variable);
    T* to_variable = grad_rows_ + monomial.variable * chunk_;
    T* to_parent = has_variable_parent ? grad_rows_ + monomial.parent * chunk_ : grad_of(monomial.depth - 1);
    for (int64_t c = 0; c < width_; c += n_) {
      const V grad = grad_at(c);
      simd::store(to_variable + c, simd::load(to_variable + c) + grad * simd::load(parent + c));
      simd::store(to_parent + c, simd::load(to_parent + c) + grad * simd::load(variable + c));
    }
  }

  static constexpr int n_ = simd::Lanes<T>::count;
  const T* row(int64_t variable) const { return rows_ + variable * chunk_; }
  T* value(int64_t depth) const { return values_ + (depth - 2) * chunk_; }
  T* grad_of(int64_t depth) const { return grads_ + (depth - 2) * chunk_; }

  /// Passes the gradients of open monomials of degree `depth` and more to their parents and variables, since
  /// no more of their children follow.
  void close(int64_t depth) {
    for (; open_ >= depth; --open_) {
      const T* grads = grad_of(open_);
      add_to_factors(node_[static_cast<size_t>(open_)], [&](int64_t c) { return simd::load(grads + c); });
    }
  }

  int64_t degree_, chunk_, width_ = 0;
  int64_t open_ = 1;  // degree of the last monomial that may get children; node_ holds it and its ancestors
  T *values_, *grads_;
  const T* rows_ = nullptr;
  T* grad_rows_ = nullptr;
  std::vector<Monomial<T>> node_ = std::vector<Monomial<T>>(static_cast<size_t>(degree_ + 1));
};

}  // namespace heed::kernel

// Monomials of many tokens at a time, computed block by block from variables [d, chunk]; vectors run over
// tokens.
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
  int64_t chunk = 0;  ///< tokens of a row of words
  T keep_scale = 1;   ///< factor of kept monomials

  /// x, one number for each token from c on, with zeros in the lanes where monomial n is dropped.
  template <bool drops>
  simd::Vector<T> apply(int64_t n, int64_t c, simd::Vector<T> x) const {
    if constexpr (!drops) return x;
    const simd::Words<T> word = simd::load_words<T>(words + n / bits * chunk + c);
    return (word & (simd::Word<T>{1} << (n % bits))) != 0 ? x : simd::Vector<T>{};
  }
};

/// Computes monomials in the order of list_monomials(), block by block, and passes their gradients back to
/// the variables. It walks a tree depth first: the products of the current monomial's ancestors, which are
/// `open` as long as children of theirs may follow, are kept, so each monomial costs one multiplication.
/// Call begin(), then make() or backpropagate() for each block; after the last backpropagate() call finish().
template <class T>
class MonomialFeatures {
 public:
  /// Numbers of scratch memory: products and gradients of the open monomials, `chunk` tokens each.
  static int64_t scratch(int64_t degree, int64_t chunk) { return 2 * (degree > 2 ? degree - 2 : 0) * chunk; }

  MonomialFeatures(int64_t degree, int64_t chunk, T* memory)
      : degree_(degree), chunk_(chunk), products_(memory), grads_(memory + scratch(degree, chunk) / 2) {}

  /// Restarts at the first monomial. Uses the first `padded_count` tokens of variables [d, chunk];
  /// variable_grads has the same shape, or is null where no gradients are computed.
  void begin(const T* variables, T* variable_grads, int64_t padded_count) {
    variables_ = variables;
    variable_grads_ = variable_grads;
    padded_count_ = padded_count;
    open_degree_ = 1;
  }

  /// features [count, chunk] = the next `count` monomials, times their weights if `weighted`; those that
  /// `mask` drops are zero.
  void make(const Monomial<T>* next, int64_t count, bool weighted, const MonomialMask<T>& mask, T* features) {
    mask.words != nullptr ? make_masked<true>(next, count, weighted, mask, features)
                          : make_masked<false>(next, count, weighted, mask, features);
  }

  /// Adds to variable_grads the gradients that reach the variables through the next `count` monomials, whose
  /// gradients are feature_grads [count, chunk]. `weighted` and `mask` are those of make(). Gradients of
  /// monomials that are still open are held back until they are closed.
  void backpropagate(const Monomial<T>* next, int64_t count, bool weighted, const MonomialMask<T>& mask,
                     const T* feature_grads) {
    mask.words != nullptr ? backpropagate_masked<true>(next, count, weighted, mask, feature_grads)
                          : backpropagate_masked<false>(next, count, weighted, mask, feature_grads);
  }
  /// Closes all open monomials.
  void finish() { close(2); }

 private:
  using V = simd::Vector<T>;

  template <bool drops>
  void make_masked(const Monomial<T>* next, int64_t count, bool weighted, const MonomialMask<T>& mask,
                   T* features) {
    for (int64_t n = 0; n < count; ++n, ++next, features += chunk_) {
      const T *parent = parent_of(*next), *variable = variable_row(next->variable);
      const T weight = weighted ? next->weight * mask.keep_scale : mask.keep_scale;
      if (next->degree < degree_) {
        T* product = open_product(next->degree);
        for (int64_t c = 0; c < padded_count_; c += lanes) {
          const V x = simd::load(parent + c) * simd::load(variable + c);
          simd::store(product + c, x);
          simd::store(features + c, mask.template apply<drops>(n, c, x * weight));
        }
      } else if (drops || weighted) {
        for (int64_t c = 0; c < padded_count_; c += lanes)
          simd::store(features + c, mask.template apply<drops>(
                                        n, c, simd::load(parent + c) * simd::load(variable + c) * weight));
      } else {
        for (int64_t c = 0; c < padded_count_; c += lanes)
          simd::store(features + c, simd::load(parent + c) * simd::load(variable + c));
      }
    }
  }

  template <bool drops>
  void backpropagate_masked(const Monomial<T>* next, int64_t count, bool weighted,
                            const MonomialMask<T>& mask, const T* feature_grads) {
    for (int64_t n = 0; n < count; ++n, ++next, feature_grads += chunk_) {
      close(next->degree);  // those of this degree or more are no ancestors of `next`
      const T weight = weighted ? next->weight * mask.keep_scale : mask.keep_scale;
      if (next->degree < degree_) {  // it may have children
        const T *parent = parent_of(*next), *variable = variable_row(next->variable);
        open_degree_ = next->degree;
        open_monomials_[static_cast<size_t>(open_degree_)] = *next;
        // Keeps the product for its children, and its own gradient, to which theirs are added until close().
        T *product = open_product(open_degree_), *grad = open_grad(open_degree_);
        for (int64_t c = 0; c < padded_count_; c += lanes) {
          simd::store(product + c, simd::load(parent + c) * simd::load(variable + c));
          simd::store(grad + c, mask.template apply<drops>(n, c, simd::load(feature_grads + c) * weight));
        }
      } else {
        add_to_factors(*next, [&](int64_t c) {
          return mask.template apply<drops>(n, c, simd::load(feature_grads + c) * weight);
        });
      }
    }
  }

  /// Product rule for monomial = parent * variable: d variable += grad parent and d parent += grad variable,
  /// where grad_at(c) is the monomial's gradient for the vector of tokens from c on.
  template <class Grad>
  void add_to_factors(const Monomial<T>& monomial, Grad grad_at) {
    const T *parent = parent_of(monomial), *variable = variable_row(monomial.variable);
    T* variable_grad = variable_grads_ + monomial.variable * chunk_;
    T* parent_grad = monomial.degree == 2 ? variable_grads_ + monomial.parent_variable * chunk_
                                          : open_grad(monomial.degree - 1);
    for (int64_t c = 0; c < padded_count_; c += lanes) {
      const V grad = grad_at(c);
      simd::store(variable_grad + c, simd::load(variable_grad + c) + grad * simd::load(parent + c));
      simd::store(parent_grad + c, simd::load(parent_grad + c) + grad * simd::load(variable + c));
    }
  }

  static constexpr int lanes = simd::Lanes<T>::count;
  const T* variable_row(int64_t variable) const { return variables_ + variable * chunk_; }
  T* open_product(int64_t degree) const { return products_ + (degree - 2) * chunk_; }
  T* open_grad(int64_t degree) const { return grads_ + (degree - 2) * chunk_; }
  const T* parent_of(const Monomial<T>& monomial) const {
    return monomial.degree == 2 ? variable_row(monomial.parent_variable) : open_product(monomial.degree - 1);
  }

  /// Passes the gradients of open monomials of at least this degree to their parents and variables, since no
  /// more of their children follow.
  void close(int64_t degree) {
    for (; open_degree_ >= degree; --open_degree_) {
      const T* grads = open_grad(open_degree_);
      add_to_factors(open_monomials_[static_cast<size_t>(open_degree_)],
                     [&](int64_t c) { return simd::load(grads + c); });
    }
  }

  int64_t degree_, chunk_, padded_count_ = 0;
  int64_t open_degree_ = 1;  // degree of the last open monomial; 1: none is open
  T *products_, *grads_;
  const T* variables_ = nullptr;
  T* variable_grads_ = nullptr;
  std::vector<Monomial<T>> open_monomials_ =
      std::vector<Monomial<T>>(static_cast<size_t>(degree_ + 1));  // by degree
};

}  // namespace heed::kernel

// Chunks of mapped queries or keys of a PolynomialAttention call on the CPU.
#pragma once

#include <cmath>

#include "heed/core/kernels/linear_attention/polynomial_dropout.h"

namespace heed::kernel {

/// A chunk of mapped queries or keys, transposed: [d, chunk], so that vectors run over tokens.
template <class T>
class PolynomialSide {
 public:
  static int64_t scratch(const PolynomialPlan<T>& plan) {
    return (plan.d + 1) * plan.chunk + plan.chunk + plan.chunk * simd::padded<T>(plan.d) +
           (plan.drops_rows() ? plan.d * plan.chunk : 0) +
           2 * MonomialFeatures<T>::scratch(plan.degree, plan.chunk);
  }
  PolynomialSide(const PolynomialPlan<T>& plan, const PolynomialDrop<T>& drop, bool query, T* memory)
      : plan_(plan),
        mask_(plan, drop),
        drop_(drop),
        query_(query),
        rows_(memory),
        inverse_(rows_ + (plan.d + 1) * plan.chunk),
        copy_(inverse_ + plan.chunk),
        walk_(plan.degree, plan.chunk, copy_ + plan.chunk * simd::padded<T>(plan.d)),
        back_(plan.degree, plan.chunk,
              copy_ + plan.chunk * simd::padded<T>(plan.d) +
                  MonomialFeatures<T>::scratch(plan.degree, plan.chunk)) {
    if (plan.drops_rows()) {
      whole_ = copy_ + plan.chunk * simd::padded<T>(plan.d) +
               2 * MonomialFeatures<T>::scratch(plan.degree, plan.chunk);
    }
  }

  /// Loads, maps and drops `count` tokens [count, d], those of a head from t on.
  void load(const T* from, int64_t ld, int64_t count, int64_t head, int64_t t) {
    count_ = count;
    width_ = simd::padded<T>(count);
    std::fill_n(rows_, plan_.chunk, query_ ? plan_.coefficients[0] : T(1));
    simd::scaled_transpose(from, ld, count, plan_.d, T(1), rows_ + plan_.chunk, plan_.chunk);
    apply_map();
    if (query_ && plan_.prescale != T(1)) scale(rows_ + plan_.chunk, plan_.prescale);
    if (whole_ == nullptr) return;
    std::copy_n(rows_ + plan_.chunk, plan_.d * plan_.chunk, whole_);
    kept_ = query_ ? drop_.query(head, t) : drop_.key(head, t);
    drop_rows(rows_ + plan_.chunk);
  }

  int64_t count() const { return count_; }
  int64_t width() const { return width_; }
  const T* rows() const { return rows_ + plan_.chunk; }  ///< [d, chunk], prescale
  /// Call begin(), then make() for each block in order: returns its features [count, chunk], computed in
  /// `room` unless they are rows, less those of degree 2 and more that `kept` drops.
  void begin(T* grad_rows) {
    walk_.begin(rows(), nullptr, width_);
    back_.begin(rows(), grad_rows, width_);
  }
  const T* make(const FeatureBlock& block, T* room, const KeptMonomials<T>& kept = {}) {
    if (block.row >= 0) return rows_ + block.row * plan_.chunk;
    walk_.make(&plan_.nodes[static_cast<size_t>(block.node)], block.count, query_, kept, room);
    return room;
  }
  /// Adds to grad_rows [d, chunk] the gradients that reach rows() through a block's features.
  void backpropagate(const FeatureBlock& block, const T* grads, T* grad_rows,
                     const KeptMonomials<T>& kept = {}) {
    if (block.row < 0) {
      back_.backpropagate(&plan_.nodes[static_cast<size_t>(block.node)], block.count, query_, kept, grads);
      return;
    }
    for (int64_t r = 0; r < block.count; ++r) {
      if (block.row + r == 0) continue;  // the constant
      T* to = grad_rows + (block.row + r - 1) * plan_.chunk;
      for (int64_t c = 0; c < width_; c += n_)
        simd::store(to + c, simd::load(to + c) + simd::load(grads + r * plan_.chunk + c));
    }
  }
  void finish() { back_.finish(); }

  /// Turns the gradients of rows() into those of the tokens as loaded, in place.
  void unmap(T* grad_rows) {
    if (whole_ != nullptr) drop_rows(grad_rows);
    if (query_ && plan_.prescale != T(1)) scale(grad_rows, plan_.prescale);
    const T back = query_ ? T(1) / plan_.prescale : T(1);
    const T* x = whole_ != nullptr ? whole_ : rows();
    if (plan_.params.prepare == FeatureMap::positive) {
      for (int64_t a = 0; a < plan_.d; ++a) {
        for (int64_t c = 0; c < width_; c += n_) {
          const V y = simd::load(x + a * plan_.chunk + c) * back, one = simd::splat(T(1));
          T* to = grad_rows + a * plan_.chunk + c;
          simd::store(to, simd::load(to) * (y > one ? one : y));
        }
      }
    }
    if (plan_.params.prepare != FeatureMap::standard && plan_.params.prepare != FeatureMap::unit) return;
    const bool centred = plan_.params.prepare == FeatureMap::standard;
    const T share = centred ? T(1) / static_cast<T>(plan_.d) : T(1);
    for (int64_t c = 0; c < width_; c += n_) {
      V total = {}, along = {};
      for (int64_t a = 0; a < plan_.d; ++a) {
        const V grad = simd::load(grad_rows + a * plan_.chunk + c);
        total += grad;
        along += grad * simd::load(x + a * plan_.chunk + c);
      }
      total = centred ? total * share : V{};
      along *= share * back * back;
      const V inverse = simd::load(inverse_ + c);
      for (int64_t a = 0; a < plan_.d; ++a) {
        T* to = grad_rows + a * plan_.chunk + c;
        simd::store(to, (simd::load(to) - total - along * simd::load(x + a * plan_.chunk + c)) * inverse);
      }
    }
  }

  /// Transposes rows [d, chunk] to tokens [count, d]; load_tokens() does the reverse.
  void store_tokens(const T* rows, T* to, int64_t ld) {
    if (simd::padded<T>(plan_.d) == plan_.d) {
      simd::scaled_transpose(rows, plan_.chunk, plan_.d, count_, T(1), to, ld);
      return;
    }
    const int64_t padded_d = simd::padded<T>(plan_.d);
    simd::scaled_transpose(rows, plan_.chunk, plan_.d, count_, T(1), copy_, padded_d);
    for (int64_t r = 0; r < count_; ++r) std::copy_n(copy_ + r * padded_d, plan_.d, to + r * ld);
  }
  void load_tokens(const T* from, int64_t ld, T* rows) const {
    simd::scaled_transpose(from, ld, count_, plan_.d, T(1), rows, plan_.chunk);
  }

 private:
  using V = simd::Vector<T>;
  static constexpr int n_ = simd::Lanes<T>::count;

  void scale(T* rows, T factor) const {
    for (int64_t a = 0; a < plan_.d; ++a) {
      for (int64_t c = 0; c < width_; c += n_)
        simd::store(rows + a * plan_.chunk + c, simd::load(rows + a * plan_.chunk + c) * factor);
    }
  }

  /// Drops entries of rows [d, chunk], or tokens.
  void drop_rows(T* rows) {
    for (int64_t a = 0; a < plan_.d; a += KeptMonomials<T>::bits) {
      const KeptMonomials<T> kept =
          mask_.draw_rows(a, std::min(KeptMonomials<T>::bits, plan_.d - a), kept_, count_);
      for (int64_t r = a; r < plan_.d && r < a + KeptMonomials<T>::bits; ++r) {
        for (int64_t c = 0; c < width_; c += n_) {
          T* at = rows + r * plan_.chunk + c;
          simd::store(at, kept.template of<true>(r - a, c, simd::load(at) * kept.factor));
        }
      }
    }
  }

  void apply_map() {
    const FeatureMap how = plan_.params.prepare;
    T* x = rows_ + plan_.chunk;
    if (how == FeatureMap::none) return;
    if (how == FeatureMap::positive) {
      for (int64_t a = 0; a < plan_.d; ++a) {
        for (int64_t c = 0; c < width_; c += n_) {
          const V in = simd::load(x + a * plan_.chunk + c);
          const V below = simd::exp2<T>(in * static_cast<T>(1.4426950408889634));
          simd::store(x + a * plan_.chunk + c, in > V{} ? in + T(1) : below);
        }
      }
      return;
    }
    const bool centred = how == FeatureMap::standard;
    const T e = static_cast<T>(plan_.params.prepare_epsilon), share = T(1) / static_cast<T>(plan_.d);
    for (int64_t c = 0; c < width_; c += n_) {
      V mean = {}, square = {};
      for (int64_t a = 0; centred && a < plan_.d; ++a) mean += simd::load(x + a * plan_.chunk + c);
      mean *= share;
      for (int64_t a = 0; a < plan_.d; ++a) {
        const V apart = simd::load(x + a * plan_.chunk + c) - mean;
        square += apart * apart;
      }
      const V inside = centred ? square * share + e : square + e * e;
      V root;
      for (int i = 0; i < n_; ++i) root[i] = std::sqrt(inside[i]);
      const V inverse = T(1) / root;
      simd::store(inverse_ + c, inverse);
      for (int64_t a = 0; a < plan_.d; ++a) {
        T* at = x + a * plan_.chunk + c;
        // A unit vector of one number is exactly 1 or -1, so that 1 + s can be exactly 0.
        simd::store(at, centred ? (simd::load(at) - mean) * inverse : simd::load(at) / root);
      }
    }
  }

  const PolynomialPlan<T>& plan_;
  MonomialMask<T> mask_;
  const PolynomialDrop<T>& drop_;
  bool query_;
  T *rows_, *inverse_, *copy_;
  T* whole_ = nullptr;  // [d, chunk] before dropout; null: rows are not dropped
  uint64_t kept_ = 0;   // the first Philox block of the loaded tokens
  MonomialFeatures<T> walk_, back_;
  int64_t count_ = 0, width_ = 0;
};

}  // namespace heed::kernel

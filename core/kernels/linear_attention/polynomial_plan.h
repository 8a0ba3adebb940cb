// What all parts of a PolynomialAttention call on the CPU share: extents, the list of monomials, and chunks
// of mapped tokens.
#pragma once

#include <algorithm>
#include <cmath>

#include "heed/core/kernels/attention/head_rows.h"
#include "heed/core/kernels/elementwise/dropout.h"
#include "heed/core/kernels/linear_attention/monomials.h"

namespace heed::kernel {

/// A block of features that is computed and used together.
struct FeatureBlock {
  int64_t feature, count;  ///< in the state
  int64_t row;             ///< degrees 0 and 1: the first row of PolynomialSide; else -1
  int64_t node;            ///< the first monomial
};

/// Constants of a call. Queries are multiplied by `prescale`, which contains the scale and the coefficient of
/// degree 1, so features of degree 0 and 1 need no weight.
template <class T>
struct PolynomialPlan {
  static constexpr int64_t block_rows = 48;

  const PolynomialTerms& terms;
  int64_t d, dv, padded_dv, ld;  ///< padded_dv: dv in whole vectors; a state has rows [v, 1], ld apart
  int64_t chunk, degree, features;
  int64_t span;  ///< with dropout of monomials: causal tokens whose pairs go through features, not the state
  T prescale;                               ///< factor of a query's mapped row
  std::vector<T> coefficients, derivative;  ///< coefficients of f and of f', in prescale scores
  std::vector<Monomial<T>> nodes;
  std::vector<FeatureBlock> blocks;

  /// `length`: queries of a head, where known.
  PolynomialPlan(const PolynomialTerms& t, int64_t width, int64_t values, bool factored, int64_t length = 0)
      : terms(t),
        d(width),
        dv(values),
        padded_dv(simd::padded<T>(values)),
        ld(simd::padded<T>(values + 1)),
        chunk(t.chunk > 0                  ? t.chunk
              : t.coefficients.size() <= 2 ? 32
                                           : 64),  // with few features, pairs cost more
        degree(static_cast<int64_t>(t.coefficients.size()) - 1),
        features(factored ? num_polynomial_features(width, t.coefficients) : 0),
        span(length <= chunk ? chunk : 16) {
    const double first = degree >= 1 && t.coefficients[1] != 0 ? t.coefficients[1] : 1;
    prescale = static_cast<T>(first * t.scale);
    std::vector<double> scaled = t.coefficients;
    for (size_t l = 0; l < scaled.size(); ++l) {
      scaled[l] /= std::pow(first, static_cast<double>(l));
      coefficients.push_back(static_cast<T>(scaled[l]));
      if (l > 0) derivative.push_back(static_cast<T>(static_cast<double>(l) * scaled[l]));
    }
    if (!factored) return;
    nodes = monomials<T>(d, scaled);
    const int64_t begin = scaled[0] != 0 ? 0 : 1, end = degree >= 1 && scaled[1] != 0 ? d + 1 : 1;
    int64_t feature = 0;
    const auto cut = [&](int64_t from, int64_t to, bool rows) {
      for (int64_t at = from, count = 0; at < to; at += count) {
        // Dropped features draw 16 at a time: all blocks but the first begin where a draw does.
        count = std::min(rows || !drops() ? block_rows : block_rows - feature % 16, to - at);
        blocks.push_back({feature, count, rows ? at : -1, rows ? -1 : at});
        feature += count;
      }
    };
    cut(begin, end, true);
    cut(0, static_cast<int64_t>(nodes.size()), false);
  }

  /// Monomials of degree 2 and more are dropped, with bits of their own for each token.
  bool drops() const { return dropout_threshold(terms.dropout) > 0; }
  /// Numbers of a state [features, dv + 1].
  int64_t state() const { return features * ld; }
  /// Operations of `length` tokens times a state.
  int64_t pass_flops(int64_t length) const { return 2 * length * features * (dv + 1); }
  /// Number of visible keys of sequence b among keys [from, from + count).
  int64_t seen(const int32_t* lengths, int64_t b, int64_t from, int64_t count) const {
    if (lengths == nullptr) return count;
    return std::clamp<int64_t>(lengths[b] - terms.first_key - from, 0, count);
  }
};

/// A chunk of mapped queries or keys, transposed: [d, chunk], so that vectors run over tokens.
template <class T>
class PolynomialSide {
 public:
  static int64_t scratch(const PolynomialPlan<T>& plan) {
    return (plan.d + 1) * plan.chunk + plan.chunk + plan.chunk * simd::padded<T>(plan.d) +
           2 * MonomialFeatures<T>::scratch(plan.degree, plan.chunk);
  }
  PolynomialSide(const PolynomialPlan<T>& plan, bool query, T* memory)
      : plan_(plan),
        query_(query),
        rows_(memory),
        inverse_(rows_ + (plan.d + 1) * plan.chunk),
        copy_(inverse_ + plan.chunk),
        walk_(plan.degree, plan.chunk, copy_ + plan.chunk * simd::padded<T>(plan.d)),
        back_(plan.degree, plan.chunk,
              copy_ + plan.chunk * simd::padded<T>(plan.d) +
                  MonomialFeatures<T>::scratch(plan.degree, plan.chunk)) {}

  /// Loads and maps `count` tokens [count, d].
  void load(const T* from, int64_t ld, int64_t count) {
    count_ = count;
    width_ = simd::padded<T>(count);
    std::fill_n(rows_, plan_.chunk, query_ ? plan_.coefficients[0] : T(1));
    simd::scaled_transpose(from, ld, count, plan_.d, T(1), rows_ + plan_.chunk, plan_.chunk);
    apply_map();
    if (query_ && plan_.prescale != T(1)) scale(rows_ + plan_.chunk, plan_.prescale);
  }

  int64_t count() const { return count_; }
  int64_t width() const { return width_; }
  const T* rows() const { return rows_ + plan_.chunk; }  ///< [d, chunk], prescale
  /// Call begin(), then make() for each block in order: returns its features [count, chunk], computed in
  /// `room` unless they are rows.
  void begin(T* grad_rows) {
    walk_.begin(rows(), nullptr, width_);
    back_.begin(rows(), grad_rows, width_);
  }
  const T* make(const FeatureBlock& block, T* room) {
    if (block.row >= 0) return rows_ + block.row * plan_.chunk;
    walk_.make(&plan_.nodes[static_cast<size_t>(block.node)], block.count, query_, room);
    return room;
  }
  /// Adds to grad_rows [d, chunk] the gradients that reach rows() through a block's features.
  void backpropagate(const FeatureBlock& block, const T* grads, T* grad_rows) {
    if (block.row < 0) {
      back_.backpropagate(&plan_.nodes[static_cast<size_t>(block.node)], block.count, query_, grads);
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
  void unmap(T* grad_rows) const {
    if (query_ && plan_.prescale != T(1)) scale(grad_rows, plan_.prescale);
    const T back = query_ ? T(1) / plan_.prescale : T(1);
    const T* x = rows();
    if (plan_.terms.prepare == FeatureMap::positive) {
      for (int64_t a = 0; a < plan_.d; ++a) {
        for (int64_t c = 0; c < width_; c += n_) {
          const V y = simd::load(x + a * plan_.chunk + c) * back, one = simd::splat(T(1));
          T* to = grad_rows + a * plan_.chunk + c;
          simd::store(to, simd::load(to) * (y > one ? one : y));
        }
      }
    }
    if (plan_.terms.prepare != FeatureMap::standard && plan_.terms.prepare != FeatureMap::unit) return;
    const bool centred = plan_.terms.prepare == FeatureMap::standard;
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

  void apply_map() {
    const FeatureMap how = plan_.terms.prepare;
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
    const T e = static_cast<T>(plan_.terms.prepare_epsilon), share = T(1) / static_cast<T>(plan_.d);
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
  bool query_;
  T *rows_, *inverse_, *copy_;
  MonomialFeatures<T> walk_, back_;
  int64_t count_ = 0, width_ = 0;
};

/// Copies a state from tensor rows [features, dv + 1], or zeros it; and back.
template <class T>
void load_polynomial_state(const PolynomialPlan<T>& plan, const T* from, T* state) {
  std::fill_n(state, plan.state(), T(0));
  for (int64_t f = 0; from != nullptr && f < plan.features; ++f)
    std::copy_n(from + f * (plan.dv + 1), plan.dv + 1, state + f * plan.ld);
}
template <class T>
void save_polynomial_state(const PolynomialPlan<T>& plan, const T* state, T* to) {
  for (int64_t f = 0; f < plan.features; ++f)
    std::copy_n(state + f * plan.ld, plan.dv + 1, to + f * (plan.dv + 1));
}

/// sums[f] = the sum over tokens of features[f] * last, for the features of one vector of them.
template <class T>
simd::Vector<T> sums_over_tokens(const T* features, int64_t count, int64_t chunk, int64_t width,
                                 const T* last) {
  constexpr int n = simd::Lanes<T>::count;
  simd::Vector<T> part[n];
  for (int64_t r = 0; r < n; ++r) {
    part[r] = simd::Vector<T>{};
    for (int64_t c = 0; r < count && c < width; c += n)
      part[r] += simd::load(features + r * chunk + c) * simd::load(last + c);
  }
  return simd::row_sums<T>(part);
}

/// Adds sum over tokens of features[f] * last to the last column of the state, for features [count, chunk].
template <class T>
void add_ones_column(const T* features, int64_t count, int64_t chunk, int64_t width, const T* last, T* to,
                     int64_t ld) {
  constexpr int n = simd::Lanes<T>::count;
  for (int64_t f = 0; f < count; f += n) {
    const int64_t high = std::min<int64_t>(n, count - f);
    const simd::Vector<T> sums = sums_over_tokens(features + f * chunk, high, chunk, width, last);
    for (int64_t r = 0; r < high; ++r) to[(f + r) * ld] += sums[r];
  }
}

}  // namespace heed::kernel

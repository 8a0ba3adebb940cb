// A chunk of queries or keys of a PolynomialAttention call on the CPU: the feature map, its features, and
// their gradients.
#pragma once

#include <cmath>
#include <numbers>

#include "heed/core/kernels/linear_attention/polynomial_dropout.h"

namespace heed::kernel {

/// The mapped tokens of a chunk as variables [d, chunk]: transposed, so that vectors run over tokens. Numbers
/// from count() to padded_count() complete the last vector and mean nothing.
///
/// 1. load() reads tokens and applies the feature map.
/// 2. begin_features() starts a pass over plan.blocks. For each block, in their order, draw_mask() draws its
///    dropout, make_features() computes its features and backpropagate_features() adds their gradients to
///    variable_grads; a pass may do one of the two or both. A pass with gradients ends with
///    finish_features().
/// 3. backpropagate_feature_map() turns the gradients of variables into those of the tokens.
template <class T>
class MappedChunk {
 public:
  static int64_t scratch(const PolynomialPlan<T>& plan) {
    return (plan.d + 1) * plan.chunk + plan.chunk + plan.chunk * simd::padded<T>(plan.d) +
           (plan.has_row_dropout() ? plan.d * plan.chunk : 0) +
           2 * MonomialFeatures<T>::scratch(plan.degree, plan.chunk);
  }
  MappedChunk(const PolynomialPlan<T>& plan, const PolynomialDropoutDraws<T>& dropout, TokenRole role,
              T* memory)
      : plan_(plan),
        masks_(plan, dropout),
        dropout_(dropout),
        role_(role),
        low_degree_rows_(memory),
        inverse_divisors_(low_degree_rows_ + (plan.d + 1) * plan.chunk),
        token_copies_(inverse_divisors_ + plan.chunk),
        forward_(plan.degree, plan.chunk, token_copies_ + plan.chunk * simd::padded<T>(plan.d)),
        backward_(plan.degree, plan.chunk,
                  token_copies_ + plan.chunk * simd::padded<T>(plan.d) +
                      MonomialFeatures<T>::scratch(plan.degree, plan.chunk)) {
    if (plan.has_row_dropout()) {
      undropped_ = token_copies_ + plan.chunk * simd::padded<T>(plan.d) +
                   2 * MonomialFeatures<T>::scratch(plan.degree, plan.chunk);
    }
  }

  /// Loads `count` tokens [count, d], which are those of a head from token t on: applies the feature map, and
  /// the dropout of entries or whole tokens.
  void load(Rows<T> tokens, int64_t count, int64_t head, int64_t t) {
    count_ = count;
    padded_count_ = simd::padded<T>(count);
    first_block_ = dropout_.first_block(role_, head, t);
    // Only features of queries have weights: degree 0 here, degree 1 by prescale, others in make_features().
    std::fill_n(low_degree_rows_, plan_.chunk, is_query() ? plan_.coefficients[0] : T(1));
    load_tokens(tokens.data, tokens.ld, mutable_variables());
    apply_feature_map(mutable_variables());
    if (is_query() && plan_.prescale != T(1)) scale(mutable_variables(), plan_.prescale);
    if (!plan_.has_row_dropout()) return;
    std::copy_n(variables(), plan_.d * plan_.chunk, undropped_);
    drop_rows(mutable_variables());
  }

  int64_t count() const { return count_; }                ///< tokens
  int64_t padded_count() const { return padded_count_; }  ///< tokens in whole vectors
  /// [d, chunk]: the mapped tokens; those of queries times prescale.
  const T* variables() const { return low_degree_rows_ + plan_.chunk; }

  /// Starts a pass over all blocks of features. backpropagate_features() will add to variable_grads
  /// [d, chunk], which may be null in a pass without it.
  void begin_features(T* variable_grads) {
    variable_grads_ = variable_grads;
    forward_.begin(variables(), nullptr, padded_count_);
    backward_.begin(variables(), variable_grads, padded_count_);
  }
  /// The dropout mask of a block of features; without dropout of monomials nothing is dropped. Valid until
  /// the next call.
  MonomialMask<T> draw_mask(const FeatureBlock& block) { return masks_.draw(block, first_block_, count_); }
  /// Returns the features [block.count, chunk] of the next block, computed in `buffer` unless they are
  /// variables. Features that `mask` drops are zero.
  const T* make_features(const FeatureBlock& block, T* buffer, const MonomialMask<T>& mask) {
    if (block.low_degree_row >= 0) return low_degree_rows_ + block.low_degree_row * plan_.chunk;
    forward_.make(first_monomial(block), block.count, is_query(), mask, buffer);
    return buffer;
  }
  /// Adds to the variables' gradients what reaches them through the features of the next block, whose
  /// gradients are feature_grads [block.count, chunk].
  void backpropagate_features(const FeatureBlock& block, const T* feature_grads,
                              const MonomialMask<T>& mask) {
    if (block.low_degree_row < 0) {
      backward_.backpropagate(first_monomial(block), block.count, is_query(), mask, feature_grads);
      return;
    }
    for (int64_t r = 0; r < block.count; ++r) {
      if (block.low_degree_row + r == 0) continue;  // the feature of degree 0 is constant
      T* grads = variable_grads_ + (block.low_degree_row + r - 1) * plan_.chunk;
      for (int64_t c = 0; c < padded_count_; c += lanes)
        simd::store(grads + c, simd::load(grads + c) + simd::load(feature_grads + r * plan_.chunk + c));
    }
  }
  /// Adds the gradients that backpropagate_features() still holds back to those of the variables.
  void finish_features() { backward_.finish(); }

  /// Turns `grads` [d, chunk], the gradients of variables(), into those of the tokens before the feature map,
  /// in place. With y the mapped row and g its gradient: `positive` dx = g min(y, 1); `unit` dx = (g - (g .
  /// y) y) / norm; `standard` dx = (g - mean(g) - mean(g y) y) / deviation.
  void backpropagate_feature_map(T* grads) {
    if (undropped_ != nullptr) drop_rows(grads);
    if (is_query() && plan_.prescale != T(1)) scale(grads, plan_.prescale);
    const T inverse_prescale = is_query() ? T(1) / plan_.prescale : T(1);
    const T* y_rows = undropped_ != nullptr ? undropped_ : variables();
    if (plan_.params.prepare == FeatureMap::positive) {
      for (int64_t a = 0; a < plan_.d; ++a) {
        for (int64_t c = 0; c < padded_count_; c += lanes) {
          const V y = simd::load(y_rows + a * plan_.chunk + c) * inverse_prescale, one = simd::splat(T(1));
          T* grad = grads + a * plan_.chunk + c;
          simd::store(grad, simd::load(grad) * (y > one ? one : y));
        }
      }
    }
    if (plan_.params.prepare != FeatureMap::standard && plan_.params.prepare != FeatureMap::unit) return;
    const bool is_centred = plan_.params.prepare == FeatureMap::standard;
    const T mean_factor = is_centred ? T(1) / static_cast<T>(plan_.d) : T(1);
    for (int64_t c = 0; c < padded_count_; c += lanes) {
      V grad_sum = {}, grad_dot_y = {};
      for (int64_t a = 0; a < plan_.d; ++a) {
        const V grad = simd::load(grads + a * plan_.chunk + c);
        grad_sum += grad;
        grad_dot_y += grad * simd::load(y_rows + a * plan_.chunk + c);
      }
      grad_sum = is_centred ? grad_sum * mean_factor : V{};
      grad_dot_y *= mean_factor * inverse_prescale * inverse_prescale;
      const V inverse = simd::load(inverse_divisors_ + c);
      for (int64_t a = 0; a < plan_.d; ++a) {
        T* grad = grads + a * plan_.chunk + c;
        const V y = simd::load(y_rows + a * plan_.chunk + c);
        simd::store(grad, (simd::load(grad) - grad_sum - grad_dot_y * y) * inverse);
      }
    }
  }

  /// Transposes rows [d, chunk] to tokens [count, d]; load_tokens() does the reverse.
  void store_tokens(const T* rows, T* tokens, int64_t ld) {
    const int64_t padded_d = simd::padded<T>(plan_.d);
    if (padded_d == plan_.d) {
      simd::scaled_transpose(rows, plan_.chunk, plan_.d, count_, T(1), tokens, ld);
      return;
    }
    simd::scaled_transpose(rows, plan_.chunk, plan_.d, count_, T(1), token_copies_, padded_d);
    for (int64_t c = 0; c < count_; ++c) std::copy_n(token_copies_ + c * padded_d, plan_.d, tokens + c * ld);
  }
  void load_tokens(const T* tokens, int64_t ld, T* rows) const {
    simd::scaled_transpose(tokens, ld, count_, plan_.d, T(1), rows, plan_.chunk);
  }

 private:
  using V = simd::Vector<T>;
  static constexpr int lanes = simd::Lanes<T>::count;

  bool is_query() const { return role_ == TokenRole::query; }
  T* mutable_variables() { return low_degree_rows_ + plan_.chunk; }
  const Monomial<T>* first_monomial(const FeatureBlock& block) const {
    return &plan_.monomials[static_cast<size_t>(block.first_monomial)];
  }

  void scale(T* rows, T factor) const {
    for (int64_t a = 0; a < plan_.d; ++a) {
      for (int64_t c = 0; c < padded_count_; c += lanes)
        simd::store(rows + a * plan_.chunk + c, simd::load(rows + a * plan_.chunk + c) * factor);
    }
  }

  /// Applies the dropout of entries or tokens to rows [d, chunk], one word of mask bits at a time.
  void drop_rows(T* rows) {
    constexpr int64_t bits = MonomialMask<T>::bits;
    for (int64_t first = 0; first < plan_.d; first += bits) {
      const int64_t entries = std::min(bits, plan_.d - first);
      const MonomialMask<T> mask = masks_.draw_rows(first, entries, first_block_, count_);
      for (int64_t a = 0; a < entries; ++a) {
        for (int64_t c = 0; c < padded_count_; c += lanes) {
          T* entry = rows + (first + a) * plan_.chunk + c;
          simd::store(entry, mask.template apply<true>(a, c, simd::load(entry) * mask.keep_scale));
        }
      }
    }
  }

  /// Applies the feature map to x [d, chunk] in place, and keeps 1 / divisor of each token.
  void apply_feature_map(T* x) {
    const FeatureMap map = plan_.params.prepare;
    if (map == FeatureMap::none) return;
    if (map == FeatureMap::positive) {
      for (int64_t a = 0; a < plan_.d; ++a) {
        for (int64_t c = 0; c < padded_count_; c += lanes) {
          const V in = simd::load(x + a * plan_.chunk + c);
          const V power = simd::exp2<T>(in * static_cast<T>(std::numbers::log2e));
          simd::store(x + a * plan_.chunk + c, in > V{} ? in + T(1) : power);
        }
      }
      return;
    }
    const bool is_centred = map == FeatureMap::standard;
    const T e = static_cast<T>(plan_.params.prepare_epsilon), inverse_d = T(1) / static_cast<T>(plan_.d);
    for (int64_t c = 0; c < padded_count_; c += lanes) {
      V mean = {}, square = {};
      for (int64_t a = 0; is_centred && a < plan_.d; ++a) mean += simd::load(x + a * plan_.chunk + c);
      mean *= inverse_d;
      for (int64_t a = 0; a < plan_.d; ++a) {
        const V centred = simd::load(x + a * plan_.chunk + c) - mean;
        square += centred * centred;
      }
      const V squared_divisor = is_centred ? square * inverse_d + e : square + e * e;
      V divisor;
      for (int i = 0; i < lanes; ++i) divisor[i] = std::sqrt(squared_divisor[i]);
      const V inverse = T(1) / divisor;
      simd::store(inverse_divisors_ + c, inverse);
      for (int64_t a = 0; a < plan_.d; ++a) {
        T* entry = x + a * plan_.chunk + c;
        // Times 1 / divisor would round twice: a vector of one number would not become 1 or -1, and its
        // weight 1 + q . k not 0.
        simd::store(entry, is_centred ? (simd::load(entry) - mean) * inverse : simd::load(entry) / divisor);
      }
    }
  }

  const PolynomialPlan<T>& plan_;
  MonomialMaskGenerator<T> masks_;
  const PolynomialDropoutDraws<T>& dropout_;
  TokenRole role_;
  T* low_degree_rows_;        // [1 + d, chunk]: the feature of degree 0, then the variables
  T* inverse_divisors_;       // [chunk]: 1 / divisor of the feature maps `standard` and `unit`
  T* token_copies_;           // [chunk, padded d]: buffer of store_tokens()
  T* undropped_ = nullptr;    // [d, chunk]: variables before dropout; null where rows are not dropped
  uint64_t first_block_ = 0;  // the first Philox block of the loaded tokens
  MonomialFeatures<T> forward_, backward_;
  T* variable_grads_ = nullptr;
  int64_t count_ = 0, padded_count_ = 0;
};

}  // namespace heed::kernel

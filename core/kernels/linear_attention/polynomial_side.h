// Chunks of mapped queries or keys of a PolynomialAttention call on the CPU.
#pragma once

#include <cmath>

#include "heed/core/kernels/linear_attention/polynomial_dropout.h"

namespace heed::kernel {

/// A chunk of mapped queries or keys, transposed: [d, chunk], so that vectors run over tokens.
template <class T>
class MappedChunk {
 public:
  static int64_t scratch(const PolynomialPlan<T>& plan) {
    return (plan.d + 1) * plan.chunk + plan.chunk + plan.chunk * simd::padded<T>(plan.d) +
           (plan.has_row_dropout() ? plan.d * plan.chunk : 0) +
           2 * MonomialFeatures<T>::scratch(plan.degree, plan.chunk);
  }
  MappedChunk(const PolynomialPlan<T>& plan, const PolynomialDropoutDraws<T>& dropout, bool query, T* memory)
      : plan_(plan),
        masks_(plan, dropout),
        dropout_(dropout),
        query_(query),
        rows_(memory),
        inverse_(rows_ + (plan.d + 1) * plan.chunk),
        copy_(inverse_ + plan.chunk),
        forward_(plan.degree, plan.chunk, copy_ + plan.chunk * simd::padded<T>(plan.d)),
        backward_(plan.degree, plan.chunk,
                  copy_ + plan.chunk * simd::padded<T>(plan.d) +
                      MonomialFeatures<T>::scratch(plan.degree, plan.chunk)) {
    if (plan.has_row_dropout()) {
      undropped_ = copy_ + plan.chunk * simd::padded<T>(plan.d) +
                   2 * MonomialFeatures<T>::scratch(plan.degree, plan.chunk);
    }
  }

  /// Loads `count` tokens [count, d], those of a head from t on, applies the feature map, and drops entries
  /// or rows.
  void load(const T* from, int64_t ld, int64_t count, int64_t head, int64_t t) {
    count_ = count;
    width_ = simd::padded<T>(count);
    std::fill_n(rows_, plan_.chunk, query_ ? plan_.coefficients[0] : T(1));
    simd::scaled_transpose(from, ld, count, plan_.d, T(1), rows_ + plan_.chunk, plan_.chunk);
    apply_map();
    if (query_ && plan_.prescale != T(1)) scale(rows_ + plan_.chunk, plan_.prescale);
    if (undropped_ == nullptr) return;
    std::copy_n(rows_ + plan_.chunk, plan_.d * plan_.chunk, undropped_);
    first_block_ = query_ ? dropout_.query_draw(head, t) : dropout_.key_draw(head, t);
    drop_rows(rows_ + plan_.chunk);
  }

  int64_t count() const { return count_; }
  int64_t width() const { return width_; }
  const T* rows() const { return rows_ + plan_.chunk; }  ///< [d, chunk], times prescale

  /// Restarts at the first block of features. backpropagate() adds to grad_rows, which may be null.
  void begin(T* grad_rows) {
    forward_.begin(rows(), nullptr, width_);
    backward_.begin(rows(), grad_rows, width_);
  }
  /// Returns the features [count, chunk] of the next block, computed in `buffer` unless they are rows.
  /// Features that `mask` drops are zero.
  const T* make(const FeatureBlock& block, T* buffer, const MonomialMask<T>& mask = {}) {
    if (block.row >= 0) return rows_ + block.row * plan_.chunk;
    forward_.make(&plan_.nodes[static_cast<size_t>(block.node)], block.count, query_, mask, buffer);
    return buffer;
  }
  /// Adds to grad_rows [d, chunk] the gradients that reach rows() through a block's features.
  void backpropagate(const FeatureBlock& block, const T* grads, T* grad_rows,
                     const MonomialMask<T>& mask = {}) {
    if (block.row < 0) {
      backward_.backpropagate(&plan_.nodes[static_cast<size_t>(block.node)], block.count, query_, mask,
                              grads);
      return;
    }
    for (int64_t r = 0; r < block.count; ++r) {
      if (block.row + r == 0) continue;  // the feature of degree 0 is constant
      T* to = grad_rows + (block.row + r - 1) * plan_.chunk;
      for (int64_t c = 0; c < width_; c += n_)
        simd::store(to + c, simd::load(to + c) + simd::load(grads + r * plan_.chunk + c));
    }
  }
  void finish() { backward_.finish(); }

  /// Turns grad_rows, the gradients of rows(), into those of the tokens before the feature map, in place.
  /// With y the mapped row and g its gradient: `positive` dx = g min(y, 1); `unit` dx = (g - (g . y) y) /
  /// norm; `standard` dx = (g - mean(g) - mean(g y) y) / deviation.
  void unmap(T* grad_rows) {
    if (undropped_ != nullptr) drop_rows(grad_rows);
    if (query_ && plan_.prescale != T(1)) scale(grad_rows, plan_.prescale);
    const T inverse_prescale = query_ ? T(1) / plan_.prescale : T(1);
    const T* y_rows = undropped_ != nullptr ? undropped_ : rows();
    if (plan_.params.prepare == FeatureMap::positive) {
      for (int64_t a = 0; a < plan_.d; ++a) {
        for (int64_t c = 0; c < width_; c += n_) {
          const V y = simd::load(y_rows + a * plan_.chunk + c) * inverse_prescale, one = simd::splat(T(1));
          T* to = grad_rows + a * plan_.chunk + c;
          simd::store(to, simd::load(to) * (y > one ? one : y));
        }
      }
    }
    if (plan_.params.prepare != FeatureMap::standard && plan_.params.prepare != FeatureMap::unit) return;
    const bool is_centred = plan_.params.prepare == FeatureMap::standard;
    const T mean_factor = is_centred ? T(1) / static_cast<T>(plan_.d) : T(1);
    for (int64_t c = 0; c < width_; c += n_) {
      V grad_sum = {}, grad_dot_y = {};
      for (int64_t a = 0; a < plan_.d; ++a) {
        const V grad = simd::load(grad_rows + a * plan_.chunk + c);
        grad_sum += grad;
        grad_dot_y += grad * simd::load(y_rows + a * plan_.chunk + c);
      }
      grad_sum = is_centred ? grad_sum * mean_factor : V{};
      grad_dot_y *= mean_factor * inverse_prescale * inverse_prescale;
      const V inverse = simd::load(inverse_ + c);
      for (int64_t a = 0; a < plan_.d; ++a) {
        T* to = grad_rows + a * plan_.chunk + c;
        simd::store(to, (simd::load(to) - grad_sum - grad_dot_y * simd::load(y_rows + a * plan_.chunk + c)) *
                            inverse);
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

  /// Applies the dropout of entries or tokens to rows [d, chunk].
  void drop_rows(T* rows) {
    for (int64_t a = 0; a < plan_.d; a += MonomialMask<T>::bits) {
      const MonomialMask<T> mask =
          masks_.draw_rows(a, std::min(MonomialMask<T>::bits, plan_.d - a), first_block_, count_);
      for (int64_t r = a; r < plan_.d && r < a + MonomialMask<T>::bits; ++r) {
        for (int64_t c = 0; c < width_; c += n_) {
          T* at = rows + r * plan_.chunk + c;
          simd::store(at, mask.template apply<true>(r - a, c, simd::load(at) * mask.keep_scale));
        }
      }
    }
  }

  /// Applies the feature map to the loaded rows, and keeps 1 / divisor of each token.
  void apply_map() {
    const FeatureMap map = plan_.params.prepare;
    T* x = rows_ + plan_.chunk;
    if (map == FeatureMap::none) return;
    if (map == FeatureMap::positive) {
      for (int64_t a = 0; a < plan_.d; ++a) {
        for (int64_t c = 0; c < width_; c += n_) {
          const V in = simd::load(x + a * plan_.chunk + c);
          const V power = simd::exp2<T>(in * static_cast<T>(1.4426950408889634));
          simd::store(x + a * plan_.chunk + c, in > V{} ? in + T(1) : power);
        }
      }
      return;
    }
    const bool is_centred = map == FeatureMap::standard;
    const T e = static_cast<T>(plan_.params.prepare_epsilon), inverse_d = T(1) / static_cast<T>(plan_.d);
    for (int64_t c = 0; c < width_; c += n_) {
      V mean = {}, square = {};
      for (int64_t a = 0; is_centred && a < plan_.d; ++a) mean += simd::load(x + a * plan_.chunk + c);
      mean *= inverse_d;
      for (int64_t a = 0; a < plan_.d; ++a) {
        const V centred = simd::load(x + a * plan_.chunk + c) - mean;
        square += centred * centred;
      }
      const V squared_divisor = is_centred ? square * inverse_d + e : square + e * e;
      V divisor;
      for (int i = 0; i < n_; ++i) divisor[i] = std::sqrt(squared_divisor[i]);
      const V inverse = T(1) / divisor;
      simd::store(inverse_ + c, inverse);
      for (int64_t a = 0; a < plan_.d; ++a) {
        T* at = x + a * plan_.chunk + c;
        // A unit vector of one number is exactly 1 or -1, so that 1 + s can be exactly 0.
        simd::store(at, is_centred ? (simd::load(at) - mean) * inverse : simd::load(at) / divisor);
      }
    }
  }

  const PolynomialPlan<T>& plan_;
  MonomialMaskGenerator<T> masks_;
  const PolynomialDropoutDraws<T>& dropout_;
  bool query_;
  T *rows_, *inverse_, *copy_;
  T* undropped_ = nullptr;    // [d, chunk] before dropout; null where rows are not dropped
  uint64_t first_block_ = 0;  // the first Philox block of the loaded tokens
  MonomialFeatures<T> forward_, backward_;
  int64_t count_ = 0, width_ = 0;
};

}  // namespace heed::kernel

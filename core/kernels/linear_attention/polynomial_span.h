// Products of the features of one block with its rows of a state, a span of 16 tokens at a time. With dropout
// of monomials the weight of a pair is no function of its score, so each span of tokens is added to the state
// before the next span reads it, and the weights of pairs within a span are products of features.
#pragma once

#include "heed/core/kernels/gemm/small_gemm.h"
#include "heed/core/kernels/linear_attention/polynomial_plan.h"

namespace heed::kernel {

/// The rows [features, dv] of a block in a state. Its last column is mask in an array of its own while this
/// lives.
template <class T>
class BlockState {
 public:
  BlockState(const PolynomialPlan<T>& plan, const FeatureBlock& block, T* state)
      : plan_(plan), count_(block.count), rows_(state + block.feature * plan.ld) {
    for (int64_t f = 0; f < count_; ++f) last_[f] = rows_[f * plan_.ld + plan_.dv];
  }
  ~BlockState() {
    for (int64_t f = 0; f < count_; ++f) rows_[f * plan_.ld + plan_.dv] = last_[f];
  }
  BlockState(const BlockState&) = delete;
  BlockState& operator=(const BlockState&) = delete;

  /// rows += phi b, last += phi ones, for phi [features, tokens], b [tokens, dv] and ones [tokens].
  int64_t add(const T* phi, int64_t tokens, Rows<T> b, const T* ones) {
    const int64_t width = simd::padded<T>(tokens);
    const int64_t flops = small_gemm(Left::row_major, count_, plan_.padded_dv, tokens, phi, plan_.chunk,
                                     b.data, b.ld, rows_, plan_.ld, true);
    for (int64_t f = 0; f < count_; f += n) {
      const V sums =
          sums_over_tokens(phi + f * plan_.chunk, std::min<int64_t>(n, count_ - f), plan_.chunk, width, ones);
      simd::store(last_ + f, simd::load(last_ + f) + sums);
    }
    return flops + 2 * count_ * width;
  }

  /// to [tokens, dv] += phi^T rows; with `sums`: sums [tokens] += phi^T last.
  int64_t read(const T* phi, int64_t tokens, T* to, T* sums) const {
    const int64_t flops = small_gemm(Left::transposed, tokens, plan_.padded_dv, count_, phi, plan_.chunk,
                                     rows_, plan_.ld, to, plan_.padded_dv, true);
    if (sums == nullptr) return flops;
    for (int64_t c = 0; c < tokens; c += n) {
      V part[4] = {simd::load(sums + c), V{}, V{}, V{}};
      for (int64_t f = 0; f < count_; f += 4) {
        for (int64_t i = 0; i < 4 && f + i < count_; ++i)
          part[i] += last_[f + i] * simd::load(phi + (f + i) * plan_.chunk + c);
      }
      simd::store(sums + c, (part[0] + part[1]) + (part[2] + part[3]));
    }
    return flops + 2 * count_ * simd::padded<T>(tokens);
  }

  /// to [features, tokens] = rows b + last ones^T, for b [dv, tokens] and ones [tokens].
  int64_t grads(const T* b, const T* ones, int64_t tokens, T* to) const {
    const int64_t width = simd::padded<T>(tokens);
    const int64_t flops = small_gemm(Left::row_major, count_, width, plan_.dv, rows_, plan_.ld, b,
                                     plan_.chunk, to, plan_.chunk, false);
    for (int64_t f = 0; f < count_; ++f) {
      for (int64_t c = 0; c < width; c += n) {
        T* at = to + f * plan_.chunk + c;
        simd::store(at, simd::load(at) + last_[f] * simd::load(ones + c));
      }
    }
    return flops + 2 * count_ * width;
  }

 private:
  using V = simd::Vector<T>;
  static constexpr int n = simd::Lanes<T>::count;

  const PolynomialPlan<T>& plan_;
  int64_t count_;
  T* rows_;
  alignas(64) T last_[PolynomialPlan<T>::block_rows + n] = {};
};

/// Zeros rows [count, width] of a block, `chunk` apart.
template <class T>
void clear_block(const PolynomialPlan<T>& plan, const FeatureBlock& block, int64_t width, T* rows) {
  for (int64_t f = 0; f < block.count; ++f) std::fill_n(rows + f * plan.chunk, width, T(0));
}

/// Calls f(first, tokens, keys) for each span of a chunk of `count` queries and `visible` visible keys.
template <class T, class F>
void each_span(const PolynomialPlan<T>& plan, int64_t count, int64_t visible, F&& f) {
  for (int64_t s = 0; s < count; s += plan.span) {
    const int64_t tokens = std::min(plan.span, count - s);
    f(s, tokens, std::clamp<int64_t>(visible - s, 0, tokens));
  }
}

}  // namespace heed::kernel

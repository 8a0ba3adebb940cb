// Dropout of a PolynomialAttention call on the CPU: where it draws its random numbers, and its masks.
#pragma once

#include "heed/core/distributed/batch_shard.h"
#include "heed/core/kernels/linear_attention/polynomial_plan.h"

namespace heed::kernel {

/// Where the dropout of a call draws its random numbers. Item f of token t of head n draws at element
/// (n length + t) items_per_token + f, plus an offset for keys. Items are features, entries of mapped rows,
/// or the token itself; items_per_token is rounded up to whole Philox blocks. Heads of earlier processes
/// count in n (core/distributed/batch_shard.h).
template <class T>
class PolynomialDropoutDraws {
 public:
  PolynomialDropoutDraws() = default;
  PolynomialDropoutDraws(const PolynomialPlan<T>& plan, const PolynomialCall<T>& call)
      : blocks_per_token_(ceil_div(items_per_token(plan), simd::KeepBits::block)),
        queries_(call.queries),
        keys_(call.keys) {
    drops_monomials_ = plan.has_monomial_dropout();
    drops_tokens_ = plan.has_row_dropout() && plan.params.drops == PolynomialDropout::tokens;
    is_on_ = plan.has_monomial_dropout() || plan.has_row_dropout();
    if (!is_on_) return;
    keep_scale_ = static_cast<T>(dropout_scale(plan.params.dropout));
    const Draw& draw = plan.params.draw;
    bits_ = {draw.seed, Draw::high(draw.stream, *draw.tick.template data<int64_t>()),
             dropout_threshold(plan.params.dropout)};
    skipped_heads_ = static_cast<int64_t>(skipped_draws(call.B * call.H));
  }
  bool drops_monomials() const { return drops_monomials_; }
  bool drops_tokens() const { return drops_tokens_; }
  bool is_on() const { return is_on_; }

  /// The first Philox block of token t of a head. Those of keys begin at 2^58, so keys share none with
  /// queries.
  uint64_t first_block(TokenRole role, int64_t head, int64_t t) const {
    const bool is_key = role == TokenRole::key;
    const int64_t row = (skipped_heads_ + head) * (is_key ? keys_ : queries_) + t;
    return (is_key ? uint64_t{1} << 58 : 0) + static_cast<uint64_t>(row * blocks_per_token_);
  }
  uint64_t blocks_per_token() const { return static_cast<uint64_t>(blocks_per_token_); }
  const simd::KeepBits& bits() const { return bits_; }
  T keep_scale() const { return keep_scale_; }

 private:
  static int64_t items_per_token(const PolynomialPlan<T>& plan) {
    if (!plan.has_row_dropout()) return plan.num_features;
    return plan.params.drops == PolynomialDropout::tokens ? 1 : plan.d;
  }

  int64_t blocks_per_token_ = 0, queries_ = 0, keys_ = 0;
  int64_t skipped_heads_ = 0;  // heads of earlier processes
  bool is_on_ = false, drops_monomials_ = false, drops_tokens_ = false;
  T keep_scale_ = 1;
  simd::KeepBits bits_;
};

/// Draws the dropout mask of one block of features and one chunk of tokens: one word of bits per token, so
/// that one vector of words serves the vectors of all features. Each mask is valid until the next is drawn.
template <class T>
class MonomialMaskGenerator {
 public:
  MonomialMaskGenerator(const PolynomialPlan<T>& plan, const PolynomialDropoutDraws<T>& dropout)
      : dropout_(dropout), chunk_(plan.chunk) {
    if (dropout.is_on()) words_.resize(static_cast<size_t>(num_words * chunk_));
  }

  /// Draws the mask of a block of features of `count` tokens, the first of which draws from first_block on.
  /// Features of degree 0 and 1 are never dropped.
  MonomialMask<T> draw(const FeatureBlock& block, uint64_t first_block, int64_t count) {
    if (!dropout_.drops_monomials() || block.low_degree_row >= 0) return {};
    return draw_items(block.first_feature, block.count, first_block, count);
  }
  /// Draws the mask of entries [first_entry, first_entry + entries) of the mapped rows of `count` tokens, or
  /// one bit per row where whole rows are dropped.
  MonomialMask<T> draw_rows(int64_t first_entry, int64_t entries, uint64_t first_block, int64_t count) {
    if (!dropout_.drops_tokens()) return draw_items(first_entry, entries, first_block, count);
    const MonomialMask<T> mask = draw_items(0, 1, first_block, count);
    for (int64_t t = 0; t < chunk_; ++t) {  // copies the bit of a token to all of its entries
      simd::Word<T>& word = words_[static_cast<size_t>(t)];
      word = simd::Word<T>{0} - (word & 1);
    }
    return mask;
  }

 private:
  static constexpr int lanes = simd::KeepBits::lanes;
  static constexpr int64_t num_words = 64 / MonomialMask<T>::bits;
  static_assert(PolynomialPlan<T>::block_rows % simd::KeepBits::block == 0 &&
                    PolynomialPlan<T>::block_rows <= 64,
                "the features of a block draw from whole Philox blocks, whose bits fit in 64");

  /// The mask bits of items [first_item, first_item + items) of each token. They are at most 64, together
  /// with the items before them in the Philox block of the first.
  MonomialMask<T> draw_items(int64_t first_item, int64_t items, uint64_t first_block, int64_t count) {
    constexpr int64_t block_size = simd::KeepBits::block;
    const int64_t offset = first_item % block_size, blocks = ceil_div(offset + items, block_size);
    simd::Counters counters = {};  // the first Philox block of the item of each lane's token
    for (uint64_t i = 0; i < lanes; ++i) counters[i] = i * dropout_.blocks_per_token();
    counters += first_block + static_cast<uint64_t>(first_item / block_size);
    for (int64_t t = 0; t < count; t += lanes, counters += lanes * dropout_.blocks_per_token()) {
      simd::Counters mask = {};
      for (int64_t b = 0; b < blocks; ++b)
        mask |= dropout_.bits().keep_masks(counters + static_cast<uint64_t>(b)) << (block_size * b);
      mask >>= offset;
      for (int64_t w = 0; w < num_words; ++w)
        store_words(mask >> (MonomialMask<T>::bits * w), &words_[static_cast<size_t>(w * chunk_ + t)]);
    }
    return {.words = words_.data(), .chunk = chunk_, .keep_scale = dropout_.keep_scale()};
  }
  /// Narrows a vector of masks to words and stores them.
  static void store_words(simd::Counters mask, simd::Word<T>* words) {
    typedef simd::Word<T> Narrow __attribute__((vector_size(lanes * sizeof(simd::Word<T>))));
    const Narrow narrow = __builtin_convertvector(mask, Narrow);
    std::memcpy(words, &narrow, sizeof narrow);
  }

  const PolynomialDropoutDraws<T>& dropout_;
  int64_t chunk_;
  std::vector<simd::Word<T>> words_;  // [num_words, chunk]
};

}  // namespace heed::kernel

// A PolynomialAttention call on the CPU as plain pointers, and the dropout of its monomials.
#pragma once

#include "heed/core/ceil_div.h"
#include "heed/core/distributed/batch_shard.h"
#include "heed/core/kernels/linear_attention/polynomial_plan.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {

/// One head of a call.
template <class T>
struct PolynomialHead {
  int64_t index, batch;
  Rows<T> q, k, v;
  T* out = nullptr;
  int64_t ld_out = 0;
  T* sums = nullptr;
};

/// Pointers and extents of a call.
template <class T>
struct PolynomialCall {
  const PolynomialParams& params;
  int64_t B, H, queries, keys, d, dv;
  bool has_keys;
  const int32_t* lengths;
  HeadView<T> q, k, v, out;

  PolynomialCall(const PolynomialInputs& x, const PolynomialParams& p, const Tensor& output,
                 const Tensor& sums)
      : params(p),
        B((x.q ? x.q : x.k).extent(0)),
        H((x.q ? x.q : x.k).extent(1)),
        queries(x.q ? x.q.extent(2) : 0),
        keys(x.k ? x.k.extent(2) : 0),
        d((x.q ? x.q : x.k).extent(3)),
        dv(x.v ? x.v.extent(3) : x.start.extent(3) - 1),
        has_keys(static_cast<bool>(x.k)),
        lengths(p.key_lengths ? p.key_lengths.data<int32_t>() : nullptr),
        q(x.q),
        k(x.k),
        v(x.v),
        out(output),
        start_(x.start ? x.start.data<T>() : nullptr),
        state_size_(x.start ? x.start.extent(2) * x.start.extent(3) : 0),
        sums_(sums ? sums.data<T>() : nullptr) {}

  PolynomialHead<T> head(int64_t index) const {
    const int64_t b = index / H, h = index % H;
    return {.index = index,
            .batch = b,
            .q = {q.at(b, h, 0), q.ld},
            .k = {k.at(b, h, 0), k.ld},
            .v = {v.at(b, h, 0), v.ld},
            .out = out.at(b, h, 0),
            .ld_out = out.ld,
            .sums = sums_ == nullptr ? nullptr : sums_ + index * queries};
  }
  const T* start_of(int64_t index) const {
    return start_ == nullptr ? nullptr : start_ + index * state_size_;
  }

 private:
  const T* start_;
  int64_t state_size_;
  T* sums_;
};

/// Where the dropout of a call draws its random numbers. Item f of token t of head n draws at element
/// (n length + t) items_per_token + f, plus an offset for keys; items are features, entries of mapped rows,
/// or the token itself, and items_per_token is rounded up to whole Philox blocks. Heads of earlier processes
/// count in n (core/distributed/batch_shard.h).
template <class T>
class PolynomialDropoutDraws {
 public:
  PolynomialDropoutDraws() = default;
  PolynomialDropoutDraws(const PolynomialPlan<T>& plan, const PolynomialCall<T>& call)
      : blocks_per_token_(ceil_div(numbers_of(plan), simd::KeepBits::block)),
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

  /// The first Philox block of query t, and of key t. Keys draw from the upper half of the counters.
  uint64_t query_draw(int64_t head, int64_t t) const {
    return static_cast<uint64_t>(((skipped_heads_ + head) * queries_ + t) * blocks_per_token_);
  }
  uint64_t key_draw(int64_t head, int64_t t) const {
    return (uint64_t{1} << 58) +
           static_cast<uint64_t>(((skipped_heads_ + head) * keys_ + t) * blocks_per_token_);
  }
  uint64_t blocks_per_token() const { return static_cast<uint64_t>(blocks_per_token_); }
  const simd::KeepBits& bits() const { return bits_; }
  T keep_scale() const { return keep_scale_; }

 private:
  static int64_t numbers_of(const PolynomialPlan<T>& plan) {
    if (!plan.has_row_dropout()) return plan.features;
    return plan.params.drops == PolynomialDropout::tokens ? 1 : plan.d;
  }

  int64_t blocks_per_token_ = 0, queries_ = 0, keys_ = 0;
  int64_t skipped_heads_ = 0;  // heads of earlier ranks: see core/distributed/batch_shard.h
  bool is_on_ = false, drops_monomials_ = false, drops_tokens_ = false;
  T keep_scale_ = 1;
  simd::KeepBits bits_;
};

/// Draws the dropout mask of one block of features and one chunk of tokens: one word of bits per token, so
/// that one vector of words serves the vectors of all features.
template <class T>
class MonomialMaskGenerator {
 public:
  MonomialMaskGenerator(const PolynomialPlan<T>& plan, const PolynomialDropoutDraws<T>& dropout)
      : dropout_(dropout), chunk_(plan.chunk) {
    if (dropout.is_on()) words_.resize(static_cast<size_t>(num_words * chunk_));
  }

  /// Draws the mask of a block of features of `count` tokens, whose first Philox block is `first`. Features
  /// of degree 0 and 1 are never dropped. The result is valid until the next call.
  MonomialMask<T> draw(const FeatureBlock& block, uint64_t first, int64_t count) {
    if (!dropout_.drops_monomials() || block.row >= 0) return {};
    return words(block.feature, block.count, first, count);
  }
  /// Draws the mask of entries [a, a + entries) of the mapped rows of `count` tokens, or one bit per row.
  MonomialMask<T> draw_rows(int64_t a, int64_t entries, uint64_t first, int64_t count) {
    if (!dropout_.drops_tokens()) return words(a, entries, first, count);
    const MonomialMask<T> mask = words(0, 1, first, count);
    for (int64_t t = 0; t < chunk_; ++t) {  // the bit of a token, for all of its entries
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
                "the features of a block draw from whole blocks, whose bits fit in 64");

  /// The mask bits of items [begin, begin + numbers) of each token, at most 64 together with the items before
  /// them in the first Philox block.
  MonomialMask<T> words(int64_t begin, int64_t numbers, uint64_t first, int64_t count) {
    constexpr int64_t block_size = simd::KeepBits::block;
    const int64_t offset = begin % block_size, blocks = ceil_div(offset + numbers, block_size);
    simd::Counters token = {};
    for (uint64_t i = 0; i < lanes; ++i) token[i] = i * dropout_.blocks_per_token();
    token += first + static_cast<uint64_t>(begin / block_size);
    for (int64_t t = 0; t < count; t += lanes, token += lanes * dropout_.blocks_per_token()) {
      simd::Counters mask = {};
      for (int64_t b = 0; b < blocks; ++b)
        mask |= dropout_.bits().keep_masks(token + static_cast<uint64_t>(b)) << (block_size * b);
      mask >>= offset;
      for (int64_t w = 0; w < num_words; ++w)
        store_words(mask >> (MonomialMask<T>::bits * w), &words_[static_cast<size_t>(w * chunk_ + t)]);
    }
    return {words_.data(), chunk_, dropout_.keep_scale()};
  }
  /// Narrows a vector of masks to words and stores them.
  static void store_words(simd::Counters mask, simd::Word<T>* to) {
    typedef simd::Word<T> Narrow __attribute__((vector_size(lanes * sizeof(simd::Word<T>))));
    const Narrow narrow = __builtin_convertvector(mask, Narrow);
    std::memcpy(to, &narrow, sizeof narrow);
  }

  const PolynomialDropoutDraws<T>& dropout_;
  int64_t chunk_;
  std::vector<simd::Word<T>> words_;  // [num_words, chunk]
};

}  // namespace heed::kernel

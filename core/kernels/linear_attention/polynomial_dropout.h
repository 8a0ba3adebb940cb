// A PolynomialAttention call on the CPU as plain pointers, and the dropout of its monomials.
#pragma once

#include "heed/core/ceil_div.h"
#include "heed/core/distributed/batch_shard.h"
#include "heed/core/kernels/linear_attention/polynomial_plan.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {

/// One head of a call; row t of q is q.from(t).
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
  bool has_queries, has_keys;
  const int32_t* lengths;

  PolynomialCall(const PolynomialInputs& x, const PolynomialParams& t, const Tensor& out, const Tensor& sums)
      : params(t),
        B((x.q ? x.q : x.k).extent(0)),
        H((x.q ? x.q : x.k).extent(1)),
        queries(x.q ? x.q.extent(2) : 0),
        keys(x.k ? x.k.extent(2) : 0),
        d((x.q ? x.q : x.k).extent(3)),
        dv(x.v ? x.v.extent(3) : x.start.extent(3) - 1),
        has_queries(static_cast<bool>(x.q)),
        has_keys(static_cast<bool>(x.k)),
        lengths(t.key_lengths ? t.key_lengths.data<int32_t>() : nullptr),
        start_(x.start ? x.start.data<T>() : nullptr),
        state_size_(x.start ? x.start.extent(2) * x.start.extent(3) : 0),
        sums_(sums ? sums.data<T>() : nullptr) {
    place(x.q, 0);
    place(x.k, 1);
    place(x.v, 2);
    place(out, 3);
  }

  PolynomialHead<T> head(int64_t index) const {
    const int64_t b = index / H, h = index % H;
    const auto at = [&](int n) {
      return data_[n] == nullptr ? nullptr : data_[n] + b * batch_[n] + h * head_[n];
    };
    return {index,           b,     {at(0), ld_[0]}, {at(1), ld_[1]},
            {at(2), ld_[2]}, at(3), ld_[3],          sums_ == nullptr ? nullptr : sums_ + index * queries};
  }
  const T* start_of(int64_t index) const {
    return start_ == nullptr ? nullptr : start_ + index * state_size_;
  }

 private:
  void place(const Tensor& x, int n) {
    if (!x) return;
    data_[n] = x.data<T>();
    batch_[n] = x.strides()[0];
    head_[n] = x.strides()[1];
    ld_[n] = x.strides()[2];
  }

  T* data_[4] = {};
  int64_t batch_[4] = {}, head_[4] = {}, ld_[4] = {};
  const T* start_;
  int64_t state_size_;
  T* sums_;
};

/// The dropout of a call: number f of token t of head n and one side draws at element
/// ((side offset + n length + t) numbers + f), `numbers` of a token rounded up to whole draws; n counts from
/// what core/distributed/batch_shard.h says on. Numbers are features, entries, or the token itself.
template <class T>
class PolynomialDrop {
 public:
  PolynomialDrop() = default;
  PolynomialDrop(const PolynomialPlan<T>& plan, const PolynomialCall<T>& call)
      : row_(ceil_div(numbers_of(plan), simd::KeepBits::block)), queries_(call.queries), keys_(call.keys) {
    drops_monomials_ = plan.drops();
    drops_tokens_ = plan.drops_rows() && plan.params.drops == PolynomialDropout::tokens;
    is_on_ = plan.drops() || plan.drops_rows();
    if (!is_on_) return;
    factor_ = static_cast<T>(dropout_scale(plan.params.dropout));
    const Draw& draw = plan.params.draw;
    bits_ = {draw.seed, Draw::high(draw.stream, *draw.tick.template data<int64_t>()),
             dropout_threshold(plan.params.dropout)};
    skipped_heads_ = static_cast<int64_t>(skipped_draws(call.B * call.H));
  }
  bool of_monomials() const { return drops_monomials_; }
  bool of_tokens() const { return drops_tokens_; }
  bool is_on() const { return is_on_; }

  /// The Philox block of feature 0 of token t. Keys draw from the upper half of the counters.
  uint64_t query(int64_t head, int64_t t) const {
    return static_cast<uint64_t>(((skipped_heads_ + head) * queries_ + t) * row_);
  }
  uint64_t key(int64_t head, int64_t t) const {
    return (uint64_t{1} << 58) + static_cast<uint64_t>(((skipped_heads_ + head) * keys_ + t) * row_);
  }
  uint64_t row() const { return static_cast<uint64_t>(row_); }  ///< blocks of a token
  const simd::KeepBits& bits() const { return bits_; }
  T factor() const { return factor_; }  ///< of what is kept

 private:
  static int64_t numbers_of(const PolynomialPlan<T>& plan) {
    if (!plan.drops_rows()) return plan.features;
    return plan.params.drops == PolynomialDropout::tokens ? 1 : plan.d;
  }

  int64_t row_ = 0, queries_ = 0, keys_ = 0;
  int64_t skipped_heads_ = 0;  // heads of earlier ranks: see core/distributed/batch_shard.h
  bool is_on_ = false, drops_monomials_ = false, drops_tokens_ = false;
  T factor_ = 1;
  simd::KeepBits bits_;
};

/// Draws what dropout keeps of one block of features and one chunk of tokens: a word of bits a token, so that
/// one vector of words serves the vectors of all features.
template <class T>
class MonomialMask {
 public:
  MonomialMask(const PolynomialPlan<T>& plan, const PolynomialDrop<T>& drop)
      : drop_(drop), chunk_(plan.chunk) {
    if (drop.is_on()) words_.resize(static_cast<size_t>(num_words * chunk_));
  }

  /// For `count` tokens, of which feature 0 of the first draws at Philox block `first`. Features of degree 0
  /// and 1 are never dropped. The result holds until the next call.
  KeptMonomials<T> draw(const FeatureBlock& block, uint64_t first, int64_t count) {
    if (!drop_.of_monomials() || block.row >= 0) return {};
    return words(block.feature, block.count, first, count);
  }
  /// The same for entries [a, a + entries) of mapped rows, or for whole rows.
  KeptMonomials<T> draw_rows(int64_t a, int64_t entries, uint64_t first, int64_t count) {
    if (!drop_.of_tokens()) return words(a, entries, first, count);
    const KeptMonomials<T> kept = words(0, 1, first, count);
    for (int64_t t = 0; t < chunk_; ++t) {  // the bit of a token, for all of its entries
      simd::Word<T>& word = words_[static_cast<size_t>(t)];
      word = simd::Word<T>{0} - (word & 1);
    }
    return kept;
  }

 private:
  static constexpr int lanes = simd::KeepBits::lanes;
  static constexpr int64_t num_words = 64 / KeptMonomials<T>::bits;
  static_assert(PolynomialPlan<T>::block_rows % simd::KeepBits::block == 0 &&
                    PolynomialPlan<T>::block_rows <= 64,
                "the features of a block draw from whole blocks, whose bits fit in 64");

  /// The bits of numbers [begin, begin + numbers) of each token, at most 64 with those before them in a draw.
  KeptMonomials<T> words(int64_t begin, int64_t numbers, uint64_t first, int64_t count) {
    constexpr int64_t each = simd::KeepBits::block;
    const int64_t skipped = begin % each, blocks = ceil_div(skipped + numbers, each);
    simd::Counters token = {};
    for (uint64_t i = 0; i < lanes; ++i) token[i] = i * drop_.row();
    token += first + static_cast<uint64_t>(begin / each);
    for (int64_t t = 0; t < count; t += lanes, token += lanes * drop_.row()) {
      simd::Counters kept = {};
      for (int64_t b = 0; b < blocks; ++b)
        kept |= drop_.bits().sixteen(token + static_cast<uint64_t>(b)) << (each * b);
      kept >>= skipped;
      for (int64_t w = 0; w < num_words; ++w)
        put(kept >> (KeptMonomials<T>::bits * w), &words_[static_cast<size_t>(w * chunk_ + t)]);
    }
    return {words_.data(), chunk_, drop_.factor()};
  }
  static void put(simd::Counters kept, simd::Word<T>* to) {
    typedef simd::Word<T> Narrow __attribute__((vector_size(lanes * sizeof(simd::Word<T>))));
    const Narrow narrow = __builtin_convertvector(kept, Narrow);
    std::memcpy(to, &narrow, sizeof narrow);
  }

  const PolynomialDrop<T>& drop_;
  int64_t chunk_;
  std::vector<simd::Word<T>> words_;  // [num_words, chunk]
};

}  // namespace heed::kernel

// A PolynomialAttention call on the CPU as plain pointers, and the dropout of its monomials.
#pragma once

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
  const PolynomialTerms& terms;
  int64_t B, H, queries, keys, d, dv;
  bool has_queries, has_keys;
  const int32_t* lengths;

  PolynomialCall(const PolynomialInputs& x, const PolynomialTerms& t, const Tensor& out, const Tensor& sums)
      : terms(t),
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

/// Dropout of monomials of degree 2 and more: entry f of token t of head n and one side draws at element
/// ((side offset + n length + t) features + f), features rounded up to whole draws; n counts from
/// what core/distributed/batch_shard.h says on.
template <class T>
class PolynomialDrop {
 public:
  PolynomialDrop() = default;
  PolynomialDrop(const PolynomialPlan<T>& plan, const PolynomialCall<T>& call)
      : plan_(&plan), row_((plan.features + 7) / 8 * 8), queries_(call.queries), keys_(call.keys) {
    if (plan.terms.dropout <= 0) return;
    least_ = dropout_threshold(plan.terms.dropout);
    factor_ = static_cast<T>(dropout_scale(plan.terms.dropout));
    seed_ = plan.terms.draw.seed;
    high_ = Draw::high(plan.terms.draw.stream, *plan.terms.draw.tick.template data<int64_t>());
    skipped_heads_ = static_cast<int64_t>(skipped_draws(call.B * call.H));
  }
  explicit operator bool() const { return least_ > 0; }

  /// The element of feature 0 of token t. Keys draw from the upper half of the counters.
  uint64_t query(int64_t head, int64_t t) const {
    return static_cast<uint64_t>(((skipped_heads_ + head) * queries_ + t) * row_);
  }
  uint64_t key(int64_t head, int64_t t) const {
    return (uint64_t{1} << 62) + static_cast<uint64_t>(((skipped_heads_ + head) * keys_ + t) * row_);
  }

  /// Writes a block's features after dropout to `room`. Returns features of degree 0 and 1 unchanged.
  const T* apply(const FeatureBlock& block, uint64_t first, int64_t count, const T* features, T* room) const {
    if (block.row >= 0) return features;
    for (int64_t t = 0; t < count; ++t) {
      const uint64_t begin = first + static_cast<uint64_t>(t * row_ + block.feature);
      Philox drawn{};
      for (int64_t f = 0; f < block.count; ++f) {
        const uint64_t element = begin + static_cast<uint64_t>(f);
        if (f == 0 || element % 8 == 0) drawn = Philox::at(seed_, element / 8, high_);
        const uint32_t bits = (drawn.word[(element % 8) / 2] >> (16 * (element % 2))) & 0xffffU;
        T& x = room[f * plan_->chunk + t];
        x = bits >= least_ ? features[f * plan_->chunk + t] * factor_ : T(0);
      }
    }
    return room;
  }

 private:
  const PolynomialPlan<T>* plan_ = nullptr;
  int64_t row_ = 0, queries_ = 0, keys_ = 0;
  int64_t skipped_heads_ = 0;  // heads of earlier ranks: see core/distributed/batch_shard.h
  uint32_t least_ = 0;
  T factor_ = 1;
  uint64_t seed_ = 0, high_ = 0;
};

}  // namespace heed::kernel

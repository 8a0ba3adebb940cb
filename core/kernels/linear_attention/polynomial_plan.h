// A PolynomialAttention call on the CPU: its tensors as pointers, its constants, and its list of features.
#pragma once

#include <algorithm>
#include <cmath>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/attention/head_rows.h"
#include "heed/core/kernels/elementwise/dropout.h"
#include "heed/core/kernels/linear_attention/monomials.h"

namespace heed::kernel {

/// A block of features that is computed and used together. Features of degree 0 and 1 are rows that a
/// MappedChunk already holds; those of higher degree are monomials, which are computed.
struct FeatureBlock {
  int64_t first_feature, count;  ///< features [first_feature, first_feature + count) of a state
  int64_t low_degree_row;  ///< degrees 0 and 1: first row of MappedChunk's array [1 + d, chunk]; else -1
  int64_t first_monomial;  ///< degree 2 and more: index in PolynomialPlan::monomials; else -1
};

/// Constants of a call. Queries are multiplied by `prescale`, which contains the scale and the coefficient of
/// degree 1, so that features of degree 1 need no weight.
template <class T>
struct PolynomialPlan {
  static constexpr int64_t block_rows = 48;  ///< most features of a block

  const PolynomialParams& params;
  int64_t d, dv;
  int64_t padded_dv;  ///< dv in whole vectors
  int64_t state_ld;   ///< distance between the rows of a state, [dv + 1] numbers each
  int64_t chunk;      ///< tokens of a chunk, and distance between the rows of arrays [.., chunk]
  int64_t degree, num_features;
  int64_t span;  ///< tokens of a span, for dropout of monomials: see polynomial_state_block.h
  T prescale;    ///< factor of a query's mapped row
  std::vector<T> coefficients, derivative;  ///< coefficients of f and of f' in terms of prescaled scores
  std::vector<Monomial<T>> monomials;       ///< features of degree 2 and more
  std::vector<FeatureBlock> blocks;         ///< all features, in the order of a state

  /// `factored`: lists the features. `length`: number of queries of a head, 0 where it does not matter.
  PolynomialPlan(const PolynomialParams& settings, int64_t head_width, int64_t value_width, bool factored,
                 int64_t length = 0)
      : params(settings),
        d(head_width),
        dv(value_width),
        padded_dv(simd::padded<T>(value_width)),
        state_ld(simd::padded<T>(value_width + 1)),
        chunk(chunk_of(settings, value_width, length)),
        degree(static_cast<int64_t>(settings.coefficients.size()) - 1),
        num_features(factored ? num_polynomial_features(head_width, settings.coefficients) : 0),
        span(length <= chunk ? chunk : 16) {
    const double linear = degree >= 1 && params.coefficients[1] != 0 ? params.coefficients[1] : 1;
    prescale = static_cast<T>(linear * params.scale);
    std::vector<double> scaled = params.coefficients;
    for (size_t l = 0; l < scaled.size(); ++l) {
      scaled[l] /= std::pow(linear, static_cast<double>(l));
      coefficients.push_back(static_cast<T>(scaled[l]));
      if (l > 0) derivative.push_back(static_cast<T>(static_cast<double>(l) * scaled[l]));
    }
    if (!factored) return;
    monomials = list_monomials<T>(d, scaled);
    append_blocks(scaled[0] != 0 ? 0 : 1, degree >= 1 && scaled[1] != 0 ? d + 1 : 1, /*are_rows=*/true);
    append_blocks(0, static_cast<int64_t>(monomials.size()), /*are_rows=*/false);
  }

  /// True where dropout drops monomials of degree 2 and more of each token.
  bool has_monomial_dropout() const {
    return drops_monomials(params) && dropout_threshold(params.dropout) > 0;
  }
  /// True where dropout drops entries of mapped rows, or whole rows.
  bool has_row_dropout() const { return !drops_monomials(params) && dropout_threshold(params.dropout) > 0; }
  /// Numbers of a state [num_features, dv + 1], whose rows are state_ld apart.
  int64_t state_size() const { return num_features * state_ld; }
  /// The rows of a block in a state.
  template <class Number>
  Number* rows_of(const FeatureBlock& block, Number* state) const {
    return state + block.first_feature * state_ld;
  }
  /// Floating-point operations of the product of the features of `length` tokens with a state.
  int64_t pass_flops(int64_t length) const { return 2 * length * num_features * (dv + 1); }
  /// Number of visible keys of sequence b among keys [first, first + count).
  int64_t visible_keys(const int32_t* lengths, int64_t b, int64_t first, int64_t count) const {
    if (lengths == nullptr) return count;
    return std::clamp<int64_t>(lengths[b] - params.first_key - first, 0, count);
  }

 private:
  /// Number of tokens of a chunk. With few features, pairs cost more than the state, so chunks are short.
  /// With dropout of monomials, pairs of n tokens cost 4 (n / 2 + 8) multiplications per token and feature,
  /// and the state 7 dv, so a short input is one chunk, without a state.
  static int64_t chunk_of(const PolynomialParams& params, int64_t dv, int64_t length) {
    if (params.chunk > 0) return params.chunk;
    if (params.coefficients.size() <= 2) return 32;
    const bool is_short = drops_monomials(params) && length <= std::min<int64_t>(3 * dv, 256);
    return is_short ? std::max<int64_t>(64, ceil_div(length, int64_t{16}) * 16) : 64;
  }
  /// Appends rows or monomials [begin, end) to `blocks`, in blocks of up to block_rows.
  void append_blocks(int64_t begin, int64_t end, bool are_rows) {
    int64_t feature = blocks.empty() ? 0 : blocks.back().first_feature + blocks.back().count;
    for (int64_t first = begin, count = 0; first < end; first += count, feature += count) {
      // Dropped features draw 16 at a time: all blocks but the first begin where a draw does.
      const bool draws = !are_rows && has_monomial_dropout();
      count = std::min(draws ? block_rows - feature % 16 : block_rows, end - first);
      blocks.push_back({.first_feature = feature,
                        .count = count,
                        .low_degree_row = are_rows ? first : -1,
                        .first_monomial = are_rows ? -1 : first});
    }
  }
};

/// One head of a call. `out` and `sums` are null where a call has none.
template <class T>
struct PolynomialHead {
  int64_t index, batch;   ///< number of the head among all B H, and its sequence
  int64_t queries, keys;  ///< rows of q, and of k and v
  Rows<T> q, k, v;
  T* out = nullptr;  ///< [Tq, dv]
  int64_t ld_out = 0;
  T* sums = nullptr;  ///< [Tq]
};

/// Pointers and extents of a call.
template <class T>
struct PolynomialCall {
  const PolynomialParams& params;
  int64_t B, H;
  int64_t queries, keys;  ///< Tq and Tk: largest numbers of rows of a head
  int64_t d, dv;
  bool has_keys;
  const int32_t *query_starts, *key_starts;  ///< [B + 1]: of packed sequences; null: padded rows
  const int32_t* lengths;                    ///< [B]; null: all keys are visible
  HeadView<T> q, k, v, out;

  PolynomialCall(const PolynomialInputs& x, const PolynomialParams& settings, const Tensor& output,
                 const Tensor& weight_sums)
      : params(settings),
        B(settings.queries ? settings.queries.count()
          : settings.keys  ? settings.keys.count()
                           : (x.q ? x.q : x.k).extent(0)),
        H((x.q ? x.q : x.k).extent(1)),
        queries(!x.q               ? 0
                : settings.queries ? settings.queries.longest
                                   : x.q.extent(2)),
        keys(!x.k            ? 0
             : settings.keys ? settings.keys.longest
                             : x.k.extent(2)),
        d((x.q ? x.q : x.k).extent(3)),
        dv(x.v ? x.v.extent(3) : x.start.extent(3) - 1),
        has_keys(static_cast<bool>(x.k)),
        query_starts(data_or_null<int32_t>(settings.queries.starts)),
        key_starts(data_or_null<int32_t>(settings.keys.starts)),
        lengths(data_or_null<int32_t>(settings.key_lengths)),
        q(x.q, query_starts),
        k(x.k, key_starts),
        v(x.v, key_starts),
        out(output, query_starts),
        start_(data_or_null<T>(x.start)),
        start_size_(x.start ? x.start.extent(2) * x.start.extent(3) : 0),
        sums_(data_or_null<T>(weight_sums)) {}

  PolynomialHead<T> head(int64_t index) const {
    const int64_t b = index / H, h = index % H;
    return {.index = index,
            .batch = b,
            .queries = query_starts == nullptr ? queries : query_starts[b + 1] - query_starts[b],
            .keys = key_starts == nullptr ? keys : key_starts[b + 1] - key_starts[b],
            .q = {q.at(b, h, 0), q.ld},
            .k = {k.at(b, h, 0), k.ld},
            .v = {v.at(b, h, 0), v.ld},
            .out = out.at(b, h, 0),
            .ld_out = out.ld,
            .sums = sums_ == nullptr ? nullptr : sums_ + index * queries};
  }
  /// The start [num_features, dv + 1] of a head, contiguous; null where there is none.
  const T* start_of(int64_t index) const {
    return start_ == nullptr ? nullptr : start_ + index * start_size_;
  }

 private:
  const T* start_;
  int64_t start_size_;
  T* sums_;
};

}  // namespace heed::kernel

// Packed sequences of test inputs, and what kernels make of padded rows in the places of packed ones.
#pragma once

#include <algorithm>
#include <vector>

#include "heed/core/packed_sequences.h"
#include "heed/tests/any_device.h"
#include "heed/tests/core/kernels/attention_reference.h"

namespace heed {

inline PackedSequences mirrored(Mirror& mirror, PackedSequences sequences) {
  sequences.starts = mirror(sequences.starts);
  return sequences;
}

}  // namespace heed

namespace heed::test {

using Lengths = std::vector<int32_t>;

inline Tensor lengths_tensor(const Lengths& lengths) {
  return Tensor::of<int32_t>(lengths, Shape{static_cast<int64_t>(lengths.size())});
}

/// Sequences of these lengths, in a frame of `longest` rows; no lengths: they are padded.
inline PackedSequences packed_sequences(const Lengths& lengths, int64_t longest) {
  if (lengths.empty()) return {};
  Lengths starts{0};
  for (const int32_t length : lengths) starts.push_back(starts.back() + length);
  return {.starts = lengths_tensor(starts), .longest = longest};
}

/// The rows of padded heads [B, H, T, d] as packed ones [1, H, N, d], a view of memory [1, N, H, d]. Three
/// more rows, of no sequence, are NaN. No sequences: x.
inline Tensor packed_heads(const Tensor& x, const PackedSequences& sequences) {
  if (!sequences) return x;
  const int64_t B = x.extent(0), H = x.extent(1), T = x.extent(2), d = x.extent(3);
  const int32_t* starts = sequences.starts.data<int32_t>();
  const int64_t rows = starts[B] + 3;
  const std::vector<double> from = x.to_doubles();
  std::vector<double> to(static_cast<size_t>(rows * H * d), std::nan(""));
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t t = 0; t < starts[b + 1] - starts[b]; ++t)
        std::copy_n(from.data() + ((b * H + h) * T + t) * d, d, to.data() + ((starts[b] + t) * H + h) * d);
    }
  }
  return view::transpose(tensor(to, Shape{1, rows, H, d}, x.dtype()), 1, 2);
}

/// x [..., B, H, T] whose numbers of rows past each sequence become NaN, as no kernel writes them.
inline std::vector<double> frame_of(const Tensor& x, const PackedSequences& sequences) {
  std::vector<double> values = x.to_doubles();
  if (!sequences) return values;
  const int64_t B = sequences.count(), T = x.extent(-1), H = x.extent(-2);
  const int32_t* starts = sequences.starts.data<int32_t>();
  for (int64_t n = 0; n < x.size(); ++n) {
    const int64_t b = n / T / H % B;
    if (n % T >= starts[b + 1] - starts[b]) values[static_cast<size_t>(n)] = std::nan("");
  }
  return values;
}

/// Sets the rows past each sequence of padded heads x [B, H, T, d] to zero: gradients of outputs that nobody
/// reads.
inline void clear_rows_past(const Tensor& x, const PackedSequences& sequences) {
  if (!sequences) return;
  const int32_t* starts = sequences.starts.data<int32_t>();
  visit_float("clear_rows_past", x.dtype(), [&]<class T>(Type<T>) {
    const Strides& step = x.strides();
    for (int64_t b = 0; b < x.extent(0); ++b) {
      for (int64_t h = 0; h < x.extent(1); ++h) {
        for (int64_t t = starts[b + 1] - starts[b]; t < x.extent(2); ++t)
          std::fill_n(x.data<T>() + b * step[0] + h * step[1] + t * step[2], x.extent(3), T(0));
      }
    }
  });
}

/// Key lengths of the padded call that computes as packed keys of these lengths and key lengths do; empty
/// where both are.
inline Tensor padded_key_lengths(const Lengths& keys, const Lengths& key_lengths) {
  if (keys.empty() && key_lengths.empty()) return {};
  Lengths visible = keys.empty() ? key_lengths : keys;
  for (size_t b = 0; b < key_lengths.size(); ++b) visible[b] = std::min(visible[b], key_lengths[b]);
  return lengths_tensor(visible);
}

/// Sizes of heads; fewer heads of keys (Hk) than of queries are shared.
struct PackedSizes {
  int64_t H, Hk, Tq, Tk, d, dv;
  Lengths queries, keys;     ///< rows of each sequence; empty: padded
  Lengths key_lengths = {};  ///< empty: none

  int64_t batch() const { return static_cast<int64_t>((queries.empty() ? keys : queries).size()); }
};

/// One call on padded rows, and the same on packed ones. Params has queries, keys and key_lengths.
template <class Params>
struct PaddedAndPacked {
  HeadInputs padded, packed;
  Params padded_params, packed_params;

  PaddedAndPacked(const PackedSizes& s, const Params& params, DType dtype)
      : padded({.B = s.batch(), .H = s.H, .Tq = s.Tq, .Tk = s.Tk, .d = s.d, .dv = s.dv}, dtype),
        packed(padded),
        padded_params(params),
        packed_params(params) {
    padded.k = heads(s.batch(), s.Hk, s.Tk, s.d, dtype, 2);
    padded.v = heads(s.batch(), s.Hk, s.Tk, s.dv, dtype, 3);
    padded_params.key_lengths = padded_key_lengths(s.keys, s.key_lengths);
    if (!s.key_lengths.empty()) packed_params.key_lengths = lengths_tensor(s.key_lengths);
    const PackedSequences queries = packed_sequences(s.queries, s.Tq), keys = packed_sequences(s.keys, s.Tk);
    packed_params.queries = queries;
    packed_params.keys = keys;
    clear_rows_past(padded.dout, queries);
    packed.q = packed_heads(padded.q, queries);
    packed.k = packed_heads(padded.k, keys);
    packed.v = packed_heads(padded.v, keys);
    packed.dout = packed_heads(padded.dout, queries);
  }
};

}  // namespace heed::test

// PackedSequences: sequences of different lengths, stored one after the other without padding.
#pragma once

#include "heed/core/tensor.h"

namespace heed {

/// How the B sequences of a batch lie in the rows of one tensor: x [1, N, W] in place of padded rows
/// [B, T, W], or heads [1, H, N, d] in place of [B, H, T, d]. Sequence b has rows starts[b] to
/// starts[b + 1] - 1. Kernels compute as with padded rows, but neither read nor write padding.
struct PackedSequences {
  Tensor starts = {};   ///< i32 [B + 1]: the first row of each sequence, and N; empty: not packed
  int64_t longest = 0;  ///< T: no sequence has more rows
  /// True where sequences are packed.
  explicit operator bool() const { return static_cast<bool>(starts); }
  /// B: the number of sequences.
  int64_t count() const { return starts.extent(0) - 1; }
};

/// Where the rows of packed x [1, N, W] would be in padded rows. Dropout draws the same numbers there for
/// both, so packing changes no mask, and processes that share a batch draw those of a single one.
struct PaddedPlaces {
  Tensor places = {};       ///< i32 [N]: b T + t for row t of sequence b; empty: x is not packed
  int64_t padded_rows = 0;  ///< B T, without sequences that fill a batch up
};

}  // namespace heed

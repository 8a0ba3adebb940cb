// Copies between padded rows and packed sequences, and sums of packed sequences.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/packed_sequences.h"

namespace heed::kernel {

/// padded[b, t, :] = packed[0, starts[b] + t, :] for the rows t of sequence b, and 0 behind them. packed
/// [1, N, W] and padded [B, T, W] are contiguous and of one dtype; sequences from number B on are left out.
struct PadPacked {
  template <Isa>
  static void cpu(const Tensor& packed, const PackedSequences& sequences, const Tensor& padded);
  static void cuda(const Tensor& packed, const PackedSequences& sequences, const Tensor& padded);
};

/// The reverse of PadPacked: packed[0, starts[b] + t, :] = padded[b, t, :]; rows that belong to none of the B
/// sequences become 0.
struct PackPadded {
  template <Isa>
  static void cpu(const Tensor& padded, const PackedSequences& sequences, const Tensor& packed);
  static void cuda(const Tensor& padded, const PackedSequences& sequences, const Tensor& packed);
};

/// sums[b, :] = sum of the rows of sequence b of packed x [1, N, W], in order; zeros for a sequence without
/// rows. sums [B, W]; both are contiguous, f32 or f64; sequences from number B on are left out.
struct SumSequences {
  template <Isa>
  static void cpu(const Tensor& x, const PackedSequences& sequences, const Tensor& sums);
  static void cuda(const Tensor& x, const PackedSequences& sequences, const Tensor& sums);
};

/// The gradient of SumSequences: every row of sequence b of packed y [1, N, W] becomes row b of x [B, W];
/// rows that belong to none of the B sequences become 0.
struct RepeatOverSequences {
  template <Isa>
  static void cpu(const Tensor& x, const PackedSequences& sequences, const Tensor& y);
  static void cuda(const Tensor& x, const PackedSequences& sequences, const Tensor& y);
};

}  // namespace heed::kernel

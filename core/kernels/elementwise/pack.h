// Copies between padded rows and packed sequences.
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

}  // namespace heed::kernel

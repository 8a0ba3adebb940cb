// Copies between padded rows and packed sequences, sums of packed sequences, and positions added to them.
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

/// sums[n, :] = sum of the rows of sequence n step of packed x [1, N, W], in order; zeros for a sequence
/// without rows. sums [B, W], step B being the number of sequences; both are contiguous, f32 or f64.
struct SumSequences {
  template <Isa>
  static void cpu(const Tensor& x, const PackedSequences& sequences, int64_t step, const Tensor& sums);
  static void cuda(const Tensor& x, const PackedSequences& sequences, int64_t step, const Tensor& sums);
};

/// The gradient of SumSequences: every row of sequence n step of packed y [1, N, W] becomes row n of x
/// [B, W]; all other rows become 0.
struct RepeatOverSequences {
  template <Isa>
  static void cpu(const Tensor& x, const PackedSequences& sequences, int64_t step, const Tensor& y);
  static void cuda(const Tensor& x, const PackedSequences& sequences, int64_t step, const Tensor& y);
};

/// y[0, starts[b] + t, :] = x[0, starts[b] + t, :] + table[t, :] for the rows t of every sequence. x and y
/// [1, N, W] are contiguous and of one dtype; table [L, W], of the type of computation, has at least as many
/// rows as the longest sequence.
struct AddPositions {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& table, const PackedSequences& sequences, const Tensor& y);
  static void cuda(const Tensor& x, const Tensor& table, const PackedSequences& sequences, const Tensor& y);
};

/// The gradient of the table of AddPositions: dtable[t, :] = sum of dy[0, starts[b] + t, :] over the
/// sequences that have a row t, in order; zeros where none has.
struct AddPositionsBack {
  template <Isa>
  static void cpu(const Tensor& dy, const PackedSequences& sequences, const Tensor& dtable);
  static void cuda(const Tensor& dy, const PackedSequences& sequences, const Tensor& dtable);
};

}  // namespace heed::kernel

// Packing: the tokens of a batch one after the other, without its padding.
#pragma once

#include <memory>
#include <vector>

#include "heed/core/packed_sequences.h"

namespace heed {

/// How sequences of a batch [B, T] lie packed in [1, N], N being the sum of their lengths, or a larger number
/// of rows, for which the last sequences keep some of their padding. Row-wise modules compute on packed rows
/// as on any others; Mask::packed() tells attentions of it. One object serves a whole forward pass.
struct Packing {
  PackedSequences sequences;  ///< the first row of each, and T
  PaddedPlaces places;        ///< i32 [N]: the index b T + t of each row
  Tensor positions;           ///< i32 [1, N]: the position t of each row
  Tensor lengths;             ///< i32 [B]: the lengths, at most T
  Tensor last_rows;           ///< i32 [B]: the row of the last token of each sequence; -1: it has none
  /// i32 [2 B + 1], where sequences keep padding: the first row of the tokens of a sequence, then the first
  /// row of its padding, for one sequence after the other, and N. Empty: every row is a token.
  Tensor sections = {};

  /// For lengths i32 [B] of sequences padded to T tokens. The host reads them, so they must be on the CPU,
  /// where the result is, too. `rows` above 0: N, at least the sum of the lengths and at most B T. Fails
  /// (Fault::internal) for lengths on another device, and for other numbers of rows.
  static Packing of(const Tensor& lengths, int64_t padded_length, int64_t rows = 0);
  /// of() where packing leaves padding out; null where tokens stay padded: without lengths, where they are
  /// not on the CPU, and without padding.
  static std::shared_ptr<const Packing> where_padded(const Tensor& lengths, int64_t padded_length);
  /// The packing whose places are the given ones, i32 [N]; null where they are not on the CPU, or not the
  /// first ones of each of `batch` sequences of `padded_length` tokens, ascending.
  static std::shared_ptr<const Packing> of_places(const Tensor& places, int64_t batch, int64_t padded_length);
  Packing to(Device device) const;                             ///< a copy on a device
  int64_t batch() const { return sequences.count(); }          ///< B
  int64_t num_tokens() const { return places.places.size(); }  ///< N, with the padding that is kept
  /// The lengths where sequences keep padding, which attentions must then hide; else empty.
  Tensor key_lengths() const { return sections ? lengths : Tensor(); }

  /// All of a packing with `rows` given, as one tensor i32 [5 B + 2 + 2 N] for a batch to carry: its shape
  /// tells N without a look at the lengths.
  Tensor table() const;
  /// The packing of a table() on any device, of `batch` sequences padded to T tokens. The host reads nothing
  /// of it. Fails (Fault::internal) for a table of another shape.
  static Packing of_table(const Tensor& table, int64_t batch, int64_t padded_length);

  /// The tokens of padded x [B, T, W] -> [1, N, W].
  Tensor packed(const Tensor& x) const;
  /// The tokens of padded ids or positions, i32 [B, T] -> [1, N].
  Tensor packed_ids(const Tensor& ids) const;
  /// Packed x [1, N, W] -> [B, T, W], with zeros in padding that is not kept.
  Tensor padded(const Tensor& x) const;
  /// The sum over the tokens of each sequence of packed x [1, N, W] -> [B, W].
  Tensor sum_of_tokens(const Tensor& x) const;
  /// Heads [1, H, N, d] -> [B, H, T, d], as padded(); an empty tensor stays empty.
  Tensor padded_heads(const Tensor& heads) const;
  /// Heads [B, H, T, d] -> [1, H, N, d].
  Tensor packed_heads(const Tensor& heads) const;
};

/// The rows that sequences of so many tokens take packed, out of `padded_rows` = B T: the next multiple of
/// `row_step`, or all B T. With few numbers of rows, steps have few shapes.
int64_t packed_rows(int64_t tokens, int64_t padded_rows, int64_t row_step);
/// Packing::table() of sequences of these lengths, padded to T tokens, on the default device, of as many rows
/// as packed_rows().
Tensor packing_table(const std::vector<int32_t>& lengths, int64_t padded_length, int64_t row_step = 1);

}  // namespace heed

// Packing: the tokens of a batch one after the other, without its padding.
#pragma once

#include <memory>

#include "heed/core/packed_sequences.h"

namespace heed {

/// How sequences of a batch [B, T] lie packed in [1, N], N being the sum of their lengths. Row-wise modules
/// compute on packed rows as on any others; Mask::packed() tells attentions of it. One object serves a whole
/// forward pass.
struct Packing {
  PackedSequences sequences;  ///< the first row of each, and T
  PaddedPlaces places;        ///< i32 [N]: the index b T + t of each token
  Tensor positions;           ///< i32 [1, N]: the position t of each token
  Tensor lengths;             ///< i32 [B]: the lengths, at most T
  Tensor last_rows;           ///< i32 [B]: the row of the last token of each sequence; -1: it has none

  /// For lengths i32 [B] of sequences padded to T tokens. The host reads them, so they must be on the CPU,
  /// where the result is, too. Fails (Fault::internal) for lengths on another device.
  static Packing of(const Tensor& lengths, int64_t padded_length);
  /// of() where packing leaves padding out; null where tokens stay padded: without lengths, where they are
  /// not on the CPU, and without padding.
  static std::shared_ptr<const Packing> where_padded(const Tensor& lengths, int64_t padded_length);
  /// The packing whose places are the given ones, i32 [N]; null where they are not on the CPU, or not the
  /// first ones of each of `batch` sequences of `padded_length` tokens, ascending.
  static std::shared_ptr<const Packing> of_places(const Tensor& places, int64_t batch, int64_t padded_length);
  Packing to(Device device) const;                             ///< a copy on a device
  int64_t batch() const { return sequences.count(); }          ///< B
  int64_t num_tokens() const { return places.places.size(); }  ///< N

  /// The tokens of padded x [B, T, W] -> [1, N, W].
  Tensor packed(const Tensor& x) const;
  /// The tokens of padded ids or positions, i32 [B, T] -> [1, N].
  Tensor packed_ids(const Tensor& ids) const;
  /// Packed x [1, N, W] -> [B, T, W], with zeros in padding.
  Tensor padded(const Tensor& x) const;
  /// Heads [1, H, N, d] -> [B, H, T, d], with zeros in padding; an empty tensor stays empty.
  Tensor padded_heads(const Tensor& heads) const;
  /// Heads [B, H, T, d] -> [1, H, N, d].
  Tensor packed_heads(const Tensor& heads) const;
};

}  // namespace heed

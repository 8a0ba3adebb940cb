// The key-value cache: keys and values of all earlier tokens, kept while text is generated.
#pragma once

#include "heed/nn/attention.h"

namespace heed {

/// Queries, keys and values of all heads, views of [B, T, H, d]. k and v are empty when the call has no keys.
/// With fewer key-value heads than query heads, k and v have fewer heads until attend() or read_cache()
/// repeats them.
struct Heads {
  Tensor q;  ///< [B, H, Tq, d]
  Tensor k;  ///< [B, H, Tk, d]
  Tensor v;  ///< [B, H, Tk, dv]
};

/// The key-value cache: all keys and values so far, or the last and first ones.
struct KeyValueCache : AttentionCache {
  int64_t reach = -1;     ///< number of keys before its own that a query attends to; -1: all
  int64_t anchors = 0;    ///< number of first keys that every query also attends to
  int64_t front = 0;      ///< number of first keys that append_to_cache() put before the recent ones
  int64_t forgotten = 0;  ///< number of removed keys, which no query can reach any more
  Tensor keys;            ///< [B, Hk, capacity, d]; row r is key forgotten + r, up to `length`
  Tensor values;          ///< [B, Hk, capacity, dv], rows as in keys
  Tensor first_keys;      ///< [B, Hk, at most `anchors`, d]; empty without anchors
  Tensor first_values;    ///< the values of first_keys
  void fields(Fields& f) override;  ///< names keys and values, for copying and reordering rows

  /// Appends heads.k and heads.v (where given), then sets them to the cached ones: all keys, or those that
  /// the queries of this call reach, after the `front` first ones. While gradients are recorded, rows are
  /// concatenated; under NoGrad they are written into a buffer that doubles when it is full, or drops removed
  /// keys.
  void append_to_cache(Heads& heads);

 private:
  void append(Tensor& all, const Tensor& rows, int64_t from, bool keep_history) const;
};

}  // namespace heed

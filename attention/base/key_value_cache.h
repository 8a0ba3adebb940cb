// KeyValueCache: keys and values of earlier tokens, kept while text is generated.
#pragma once

#include "heed/nn/attention.h"

namespace heed {

/// Queries, keys and values of all heads, views of [B, T, H, d]. k and v are empty when the call has no keys.
/// With fewer key-value heads than query heads, k and v have fewer heads until they are repeated.
struct Heads {
  Tensor q;  ///< [B, H, Tq, d]
  Tensor k;  ///< [B, H, Tk, d]
  Tensor v;  ///< [B, H, Tk, dv]
};

/// The key-value cache: all keys and values so far, or those of a sliding window and the first ones.
struct KeyValueCache : AttentionCache {
  int64_t window = -1;         ///< number of keys before its own that a query attends to; -1: all
  int64_t num_first_keys = 0;  ///< number of first keys that every query also attends to
  int64_t num_prepended = 0;  ///< number of first keys that append_to_cache() puts before those of the window
  int64_t num_evicted = 0;    ///< number of removed keys, which no query attends to any more
  Tensor keys;                ///< [B, Hk, capacity, d]; row r is key num_evicted + r, up to `length`
  Tensor values;              ///< [B, Hk, capacity, dv]; row r is the value of row r of `keys`
  Tensor first_keys;          ///< [B, Hk, at most num_first_keys, d]; empty when num_first_keys is 0
  Tensor first_values;        ///< the values of first_keys
  void fields(Fields& f) override;

  /// Appends heads.k and heads.v (where given), then sets them to the cached ones: all keys, or the first
  /// num_prepended and those in the window. While gradients are recorded, rows are concatenated; under NoGrad
  /// they are written into a buffer, which doubles when it is full, or drops removed keys.
  void append_to_cache(Heads& heads);

 private:
  /// Keeps the rows of `all` from position `first` on and appends `rows`.
  void append_rows(Tensor& all, const Tensor& rows, int64_t first, bool keep_history) const;
};

}  // namespace heed

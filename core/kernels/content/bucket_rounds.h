// Views of sorted tokens and tiles of attention within buckets, and who sees which key, for both devices.
#pragma once

#include "heed/core/host_device.h"
#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/kernels/content/bucket.h"

namespace heed::kernel {

/// The sorted tokens of all rounds of all heads. A place is an index into the sorted order of a round.
struct BucketRounds {
  int64_t num_heads, heads_per_sequence;
  int64_t R;  ///< rounds
  int64_t N;  ///< tokens, padding included
  const int32_t *order, *buckets, *lengths;

  explicit BucketRounds(const BucketOrder& sorted)
      : num_heads(sorted.order.extent(0) * sorted.order.extent(1)),
        heads_per_sequence(sorted.order.extent(1)),
        R(sorted.order.extent(2)),
        N(sorted.order.extent(3)),
        order(sorted.order.data<int32_t>()),
        buckets(sorted.buckets.data<int32_t>()),
        lengths(data_or_null<int32_t>(sorted.lengths)) {}

  /// Number of tokens of a head that are not padding: the first ones of each sorted order.
  HEED_BOTH int64_t num_tokens(int64_t head) const {
    if (lengths == nullptr) return N;
    const int64_t length = lengths[head / heads_per_sequence];
    return length < 0 ? 0 : length < N ? length : N;
  }
  /// Index of (head, r, token) in arrays [heads, R, N].
  HEED_BOTH int64_t index(int64_t head, int64_t r, int64_t token) const { return (head * R + r) * N + token; }
  /// The tokens of round r in sorted order, [N].
  HEED_BOTH const int32_t* tokens(int64_t head, int64_t r) const { return order + index(head, r, 0); }
  HEED_BOTH int32_t bucket(int64_t head, int64_t r, int32_t token) const {
    return buckets[index(head, r, token)];
  }
  /// True where the token at this place of round r is the first of its bucket.
  HEED_BOTH bool starts_bucket(int64_t head, int64_t r, int64_t place) const {
    const int32_t* token = tokens(head, r) + place;
    return place == 0 || bucket(head, r, token[0]) != bucket(head, r, token[-1]);
  }
  /// The round of the chunk that precedes chunk `chunk` of round r.
  HEED_BOTH int64_t round_of_chunk_before(int64_t r, int64_t chunk, bool wraps_to_previous_round) const {
    return chunk == 0 && wraps_to_previous_round ? (r + R - 1) % R : r;
  }
  /// True where flags [heads, R, N] has a flag of this token in any round.
  HEED_BOTH bool in_any_round(const uint8_t* flags, int64_t head, int32_t token) const {
    for (int64_t r = 0; r < R; ++r) {
      if (flags[index(head, r, token)] != 0) return true;
    }
    return false;
  }
};

/// The tiles of all heads: queries [heads, R, T, queries_per_tile], keys [heads, R, T, keys_per_tile], slots
/// [heads, R, N] or null. A row is an index into all queries.
struct BucketTileView {
  int64_t R, N, tiles_per_round, queries_per_tile, keys_per_tile, window, num_rows;
  int32_t *queries, *keys, *slots;

  BucketTileView(const BucketRounds& rounds, const BucketWindow& bucket_window, const Tensor& queries_,
                 const Tensor& keys_, const Tensor& slots_ = {})
      : R(rounds.R),
        N(rounds.N),
        tiles_per_round(keys_.extent(3)),
        queries_per_tile(bucket_window.queries_per_tile),
        keys_per_tile(bucket_window.keys_per_tile()),
        window(bucket_window.window),
        num_rows(queries_.size()),
        queries(queries_.data<int32_t>()),
        keys(keys_.data<int32_t>()),
        slots(data_or_null<int32_t>(slots_)) {}

  HEED_BOTH int32_t* queries_of_round(int64_t head, int64_t r) const {
    return queries + (head * R + r) * tiles_per_round * queries_per_tile;
  }
  HEED_BOTH int32_t* keys_of_tile(int64_t head, int64_t r, int64_t tile) const {
    return keys + ((head * R + r) * tiles_per_round + tile) * keys_per_tile;
  }
  HEED_BOTH int32_t* slots_of_round(int64_t head, int64_t r) const { return slots + (head * R + r) * N; }
  /// Makes a token query number `query_in_tile` of a tile of round r.
  HEED_BOTH void set_query(int64_t head, int64_t r, int64_t tile, int64_t query_in_tile,
                           int32_t token) const {
    queries_of_round(head, r)[tile * queries_per_tile + query_in_tile] = token;
    slots_of_round(head, r)[token] =
        static_cast<int32_t>((r * tiles_per_round + tile) * queries_per_tile + query_in_tile);
  }

  HEED_BOTH int64_t query_in_tile(int64_t row) const { return row % queries_per_tile; }
  HEED_BOTH int64_t round(int64_t row) const { return row / queries_per_tile / tiles_per_round % R; }
  HEED_BOTH int64_t head(int64_t row) const { return row / queries_per_tile / tiles_per_round / R; }
  /// The keys [keys_per_tile] of the tile that a row belongs to.
  HEED_BOTH const int32_t* keys_of_row(int64_t row) const {
    return keys + row / queries_per_tile * keys_per_tile;
  }
};

/// Extents of BucketLists.
struct BucketListShape {
  int64_t num_heads, R, N, tiles_per_head, queries_per_tile, keys_per_tile;

  BucketListShape(const Tensor& keys, const Tensor& tile_bias, const Tensor& ids)
      : num_heads(keys.extent(0) * keys.extent(1)),
        R(keys.extent(2)),
        N(ids.extent(2)),
        tiles_per_head(R * keys.extent(3)),
        queries_per_tile(tile_bias.extent(2)),
        keys_per_tile(keys.extent(4)) {}

  /// Index of the first key of the tile with this slot in keys [heads, R T, keys_per_tile].
  HEED_BOTH int64_t tile_keys(int64_t head, int64_t slot) const {
    return (head * tiles_per_head + slot / queries_per_tile) * keys_per_tile;
  }
  /// Index of the row of this slot in the bias [heads, R T queries_per_tile, keys_per_tile].
  HEED_BOTH int64_t bias_row(int64_t head, int64_t slot) const {
    return (head * tiles_per_head * queries_per_tile + slot) * keys_per_tile;
  }
};

/// True where query number `query_in_tile` of a tile, which is token `query`, sees entry `entry` of the
/// tile's keys, which is token `key`.
HEED_BOTH inline bool sees_key(const BucketWindow& bucket_window, int64_t query_in_tile, int32_t query,
                               int64_t entry, int32_t key) {
  if (query < 0 || key < 0 || (bucket_window.causal && key > query)) return false;
  return !bucket_window.by_bucket || (entry > query_in_tile && entry <= bucket_window.window + query_in_tile);
}

/// Number of times that token `query` sees token `key` in all rounds. places [heads, R, N]: the place of each
/// token.
HEED_BOTH inline int64_t times_seen(const BucketRounds& rounds, const BucketWindow& bucket_window,
                                    const int32_t* places, int64_t head, int32_t query, int32_t key) {
  const int64_t chunk_size = bucket_window.queries_per_tile,
                last_chunk = (rounds.num_tokens(head) - 1) / chunk_size;
  const auto place = [&](int64_t r, int32_t token) -> int64_t {
    return places[rounds.index(head, r, token)];
  };
  int64_t times = 0;
  for (int64_t r = 0; r < rounds.R; ++r) {
    if (bucket_window.by_bucket) {
      const int64_t distance = place(r, query) - place(r, key);
      const bool same_bucket = rounds.bucket(head, r, query) == rounds.bucket(head, r, key);
      times += same_bucket && distance >= 0 && distance < bucket_window.window ? 1 : 0;
      continue;
    }
    const int64_t chunk = place(r, query) / chunk_size, chunk_before = chunk > 0 ? chunk - 1 : last_chunk;
    const int64_t round_before =
        rounds.round_of_chunk_before(r, chunk, bucket_window.wraps_to_previous_round);
    times += place(r, key) / chunk_size == chunk ? 1 : 0;
    times += place(round_before, key) / chunk_size == chunk_before ? 1 : 0;
  }
  return times;
}

}  // namespace heed::kernel

// Sorted tokens and tiles of attention within buckets as pointers, and who sees whom, for both devices.
#pragma once

#include "heed/core/host_device.h"
#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/kernels/content/bucket.h"

namespace heed::kernel {

/// The sorted tokens of all rounds of all heads. A place is an index into the sorted order of a round.
struct BucketRounds {
  int64_t num_heads, heads_per_sequence, R, N;
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
  /// The tokens of round r in sorted order, [N].
  HEED_BOTH const int32_t* tokens(int64_t head, int64_t r) const { return order + (head * R + r) * N; }
  HEED_BOTH int32_t bucket(int64_t head, int64_t r, int32_t token) const {
    return buckets[(head * R + r) * N + token];
  }
  /// True where the token at this place of round r is the first of its bucket.
  HEED_BOTH bool starts_bucket(int64_t head, int64_t r, int64_t place) const {
    const int32_t* token = tokens(head, r) + place;
    return place == 0 || bucket(head, r, token[0]) != bucket(head, r, token[-1]);
  }
  /// The round with the chunk that precedes chunk `chunk` of round r; see BucketWindow::ring.
  HEED_BOTH int64_t round_before(int64_t r, int64_t chunk, bool ring) const {
    return chunk > 0 || !ring ? r : (r + R - 1) % R;
  }
};

/// The tiles of all heads: queries [heads, R, T, tile], keys [heads, R, T, window + tile], slots [heads, R,
/// N].
struct BucketTileView {
  int64_t T, tile, window, R, N;
  int32_t *queries, *keys, *slots;

  BucketTileView(const BucketRounds& rounds, const BucketWindow& bucket_window, const Tensor& queries_,
                 const Tensor& keys_, const Tensor& slots_)
      : T(keys_.extent(3)),
        tile(bucket_window.tile),
        window(bucket_window.window),
        R(rounds.R),
        N(rounds.N),
        queries(queries_.data<int32_t>()),
        keys(keys_.data<int32_t>()),
        slots(slots_.data<int32_t>()) {}

  HEED_BOTH int32_t* queries_of(int64_t head, int64_t r) const { return queries + (head * R + r) * T * tile; }
  HEED_BOTH int32_t* keys_of(int64_t head, int64_t r, int64_t t) const {
    return keys + ((head * R + r) * T + t) * (window + tile);
  }
  HEED_BOTH int32_t* slots_of(int64_t head, int64_t r) const { return slots + (head * R + r) * N; }
  /// Makes a token query number `lane` of tile t of round r.
  HEED_BOTH void set_query(int64_t head, int64_t r, int64_t t, int64_t lane, int32_t token) const {
    queries_of(head, r)[t * tile + lane] = token;
    slots_of(head, r)[token] = static_cast<int32_t>((r * T + t) * tile + lane);
  }
};

/// True where query number `lane` of a tile sees entry e of the tile's keys.
HEED_BOTH inline bool sees_key(const BucketWindow& bucket_window, int64_t lane, int32_t query, int64_t e,
                               int32_t key) {
  if (query < 0 || key < 0 || (bucket_window.causal && key > query)) return false;
  return !bucket_window.by_bucket || (e > lane && e <= bucket_window.window + lane);
}

/// Number of times that query i sees key j in all rounds. places [heads, R, N]: the place of each token.
HEED_BOTH inline int64_t times_seen(const BucketRounds& rounds, const BucketWindow& bucket_window,
                                    const int32_t* places, int64_t head, int32_t i, int32_t j) {
  const int64_t chunk = bucket_window.tile, last_chunk = (rounds.num_tokens(head) - 1) / chunk;
  const auto place = [&](int64_t r, int32_t token) {
    return static_cast<int64_t>(places[(head * rounds.R + r) * rounds.N + token]);
  };
  int64_t times = 0;
  for (int64_t r = 0; r < rounds.R; ++r) {
    if (bucket_window.by_bucket) {
      const int64_t distance = place(r, i) - place(r, j);
      const bool same_bucket = rounds.bucket(head, r, i) == rounds.bucket(head, r, j);
      times += same_bucket && distance >= 0 && distance < bucket_window.window ? 1 : 0;
      continue;
    }
    const int64_t own = place(r, i) / chunk, before = own > 0 ? own - 1 : last_chunk;
    times += place(r, j) / chunk == own ? 1 : 0;
    times += place(rounds.round_before(r, own, bucket_window.ring), j) / chunk == before ? 1 : 0;
  }
  return times;
}

}  // namespace heed::kernel

// Attention within buckets, for hashing (Reformer) and clusters (Routing). In each of R rounds every token
// has a bucket; tokens sorted by bucket are cut into tiles, and the queries of a tile attend to its keys.
// Letters of shapes: B sequences, H heads, R rounds, N tokens, T tiles of a round.
#pragma once

#include "heed/core/host_device.h"
#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// buckets[b, h, r, i] = argmax of scores[b, h, r, i, :], the first index of equals; with `both_signs` argmax
/// of [x, -x] for the row x, so that the buckets of x and -x differ by f. Tokens at or past lengths[b] (i32
/// [B] or empty) get `none`. scores [B, H, R, N, f], buckets i32 [B, H, R, N]; token 0 has position `first`
/// in its sequence. Both are contiguous.
struct Buckets {
  template <Isa>
  static void cpu(const Tensor& scores, bool both_signs, const Tensor& lengths, int64_t first, int32_t none,
                  const Tensor& buckets);
  static void cuda(const Tensor& scores, bool both_signs, const Tensor& lengths, int64_t first, int32_t none,
                   const Tensor& buckets);
};

/// Which keys a query sees. In each round the tokens are sorted by (bucket, position).
struct BucketWindow {
  int64_t window = 0;  ///< number of keys of a tile that precede its queries in the sorted order
  int64_t queries_per_tile = 0;
  bool by_bucket = false;  ///< a query sees the last `window` tokens of its own bucket up to itself, which
                           ///< later tokens do not change; else the order is cut into chunks of
                           ///< queries_per_tile = `window`, and a query sees its chunk and the one before
  bool causal = false;     ///< a query sees only keys at or before itself among those
  bool wraps_to_previous_round = false;  ///< the chunk before chunk 0 is the last one of the previous round;
                                         ///< else the last one of the round itself
  bool hides_self = false;        ///< a token sees itself only where it sees no other token in any round
  bool counts_keys_once = false;  ///< a key that a query sees in n rounds counts as one: its score falls by
                                  ///< log n

  HEED_BOTH int64_t keys_per_tile() const { return window + queries_per_tile; }
};

/// The tokens of each round sorted by bucket.
struct BucketOrder {
  Tensor order;    ///< i32 [B, H, R, N]: Argsort of the buckets
  Tensor buckets;  ///< i32 [B, H, R, N], written by Buckets
  Tensor lengths;  ///< i32 [B] or empty; tokens at or past it are in no tile
};

/// Tiles of sorted tokens: queries i32 [B, H, R, T queries_per_tile] and keys i32 [B, H, R, T, keys_per_tile]
/// hold tokens, -1 for none. slots i32 [B, H, R N] holds for each round the index of each token among the
/// queries of all tiles of its head (R T queries_per_tile), -1 for tokens past the length. T is N /
/// queries_per_tile rounded up, plus the number of buckets with by_bucket.
struct BucketTiles {
  template <Isa>
  static void cpu(const BucketOrder& sorted, const BucketWindow& bucket_window, const Tensor& queries,
                  const Tensor& keys, const Tensor& slots);
  static void cuda(const BucketOrder& sorted, const BucketWindow& bucket_window, const Tensor& queries,
                   const Tensor& keys, const Tensor& slots);
};

/// bias [B H, R T, queries_per_tile, keys_per_tile], added to the scores of tiles: -inf where a query does
/// not see a key, else 0, or with counts_keys_once -log(number of times that it sees the key in all rounds).
struct BucketBias {
  template <Isa>
  static void cpu(const BucketOrder& sorted, const BucketWindow& bucket_window, const Tensor& queries,
                  const Tensor& keys, const Tensor& bias);
  static void cuda(const BucketOrder& sorted, const BucketWindow& bucket_window, const Tensor& queries,
                   const Tensor& keys, const Tensor& bias);
};

/// The keys and biases of tiles listed for each token, for attention maps: ids i32 [B, H, N, R E] and bias
/// [B, H, N, R E] from keys [B, H, R, T, E] and slots [B, H, R N] of BucketTiles and the bias of BucketBias,
/// with E = keys_per_tile. A token that is in no tile gets -1 and -inf.
struct BucketLists {
  template <Isa>
  static void cpu(const Tensor& keys, const Tensor& slots, const Tensor& tile_bias, const Tensor& ids,
                  const Tensor& bias);
  static void cuda(const Tensor& keys, const Tensor& slots, const Tensor& tile_bias, const Tensor& ids,
                   const Tensor& bias);
};

/// Keys of tokens that are decoded: query i is token first + i of buckets i32 [B, H, R, N]. ids i32 [B, H,
/// Tq, R window] are, for each round, the last `window` tokens of the query's bucket up to itself, latest
/// first, -1 for none; bias [B, H, Tq, R window] is that of BucketBias. A query whose bucket is `none` has no
/// keys. Needs by_bucket.
struct RecentInBucket {
  template <Isa>
  static void cpu(const Tensor& buckets, int64_t first, int32_t none, const BucketWindow& bucket_window,
                  const Tensor& ids, const Tensor& bias);
  static void cuda(const Tensor& buckets, int64_t first, int32_t none, const BucketWindow& bucket_window,
                   const Tensor& ids, const Tensor& bias);
};

/// bias [B, H, G, 1 or n, m] for groups of queries and keys: -inf where there is no key (an id of -1) or,
/// when `causal`, where it comes after the query; else 0. queries i32 [B, H, G, n], keys i32 [B, H, G, m].
struct GroupBias {
  template <Isa>
  static void cpu(const Tensor& queries, const Tensor& keys, bool causal, const Tensor& bias);
  static void cuda(const Tensor& queries, const Tensor& keys, bool causal, const Tensor& bias);
};

}  // namespace heed::kernel

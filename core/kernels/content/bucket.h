// Attention within buckets, for hashing (Reformer) and clusters (Routing): the bucket of each token, and
// tiles of queries and keys of the same or neighbouring buckets, in R rounds of their own.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// buckets[b, h, r, t] = argmax of scores[b, h, r, t, :], the first place among equal ones; with `both_signs`
/// argmax of [x, -x] for the row x, so that x and -x fall f apart. Tokens at or past lengths[b] (i32 [B] or
/// empty) get `none`. scores [B, H, R, N, f], buckets i32 [B, H, R, N]; token 0 has position `first` in its
/// sequence. Contiguous.
struct Buckets {
  template <Isa>
  static void cpu(const Tensor& scores, bool both_signs, const Tensor& lengths, int64_t first, int32_t none,
                  const Tensor& buckets);
  static void cuda(const Tensor& scores, bool both_signs, const Tensor& lengths, int64_t first, int32_t none,
                   const Tensor& buckets);
};

/// Which keys a query sees. In each round the tokens are sorted by (bucket, position).
struct BucketWindow {
  int64_t window = 0;      ///< keys before a tile that it sees
  int64_t tile = 0;        ///< queries of a tile
  bool by_bucket = false;  ///< a query sees the last `window` tokens of its own bucket up to itself, which
                           ///< later tokens do not change; else the order is cut into chunks of `tile` =
                           ///< `window`, and a query sees its chunk and the one before
  bool causal = false;     ///< a query sees only keys at or before itself among those
  bool ring = false;      ///< the chunk before the first one of a round is the last of the round before; else
                          ///< the last of its own round
  bool not_self = false;  ///< a token sees itself only where it sees no other token in any round
  bool once = false;      ///< a key that a query sees in n rounds counts as one: its score falls by log n
};

/// The tokens of each round sorted by bucket.
struct BucketOrder {
  Tensor order;    ///< i32 [B, H, R, N]: Argsort of the buckets
  Tensor buckets;  ///< i32 [B, H, R, N], of Buckets
  Tensor lengths;  ///< i32 [B] or empty; tokens at or past it are in no tile
};

/// Tiles of sorted tokens: queries i32 [B, H, R, T tile] and keys i32 [B, H, R, T, window + tile] hold
/// tokens, -1 for none; slots i32 [B, H, R N] holds the index of each token among the queries of all rounds,
/// -1 for tokens past the length. T is N / tile rounded up, plus the number of buckets if tiles keep to
/// buckets.
struct BucketTiles {
  template <Isa>
  static void cpu(const BucketOrder& sorted, const BucketWindow& bucket_window, const Tensor& queries,
                  const Tensor& keys, const Tensor& slots);
  static void cuda(const BucketOrder& sorted, const BucketWindow& bucket_window, const Tensor& queries,
                   const Tensor& keys, const Tensor& slots);
};

/// bias [B H, R T, tile, window + tile], added to the scores of tiles: -inf where a query does not see a key,
/// else 0, or with `once` -log(number of rounds in which it sees the key).
struct BucketBias {
  template <Isa>
  static void cpu(const BucketOrder& sorted, const BucketWindow& bucket_window, const Tensor& queries,
                  const Tensor& keys, const Tensor& bias);
  static void cuda(const BucketOrder& sorted, const BucketWindow& bucket_window, const Tensor& queries,
                   const Tensor& keys, const Tensor& bias);
};

/// The keys and biases of tiles listed for each token, for attention maps: ids i32 [B, H, N, R E] and bias
/// [B, H, N, R E] from keys [B, H, R, T, E], slots [B, H, R N] and the bias of tiles. -1 and -inf where a
/// token is in no tile.
struct BucketLists {
  template <Isa>
  static void cpu(const Tensor& keys, const Tensor& slots, const Tensor& tile_bias, const Tensor& ids,
                  const Tensor& bias);
  static void cuda(const Tensor& keys, const Tensor& slots, const Tensor& tile_bias, const Tensor& ids,
                   const Tensor& bias);
};

/// Keys of tokens that are decoded: query i is token first + i of buckets i32 [B, H, R, N]. ids i32 [B, H,
/// Tq, R window] are the last `window` tokens of its bucket in each round up to itself, -1 for none; bias [B,
/// H, Tq, R window] is that of BucketBias. All are none where the bucket of the query is `none`. Needs
/// by_bucket.
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

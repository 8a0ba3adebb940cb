// BucketedAttention, a base class: softmax among tokens of the same bucket; a variant assigns the buckets.
#pragma once

#include "heed/attention/base/multi_head_attention.h"
#include "heed/core/kernels/content/bucket.h"

namespace heed {

/// Attention in tiles of tokens sorted by (bucket, position), in any number of rounds. Rounds are weighted by
/// their sums of exponentials, so the result is one softmax over the keys of all rounds. Time and memory grow
/// with T times the keys of a tile, not with T^2. Kitaev et al. 2020, arXiv 2001.04451, section 2.
class BucketedAttention : public MultiHeadAttention {
 public:
  using MultiHeadAttention::MultiHeadAttention;

 protected:
  /// The number of buckets, and which keys of the sorted order a tile attends to. Padding is in an extra
  /// bucket, number `buckets`.
  struct BucketParams {
    kernel::BucketWindow bucket_window;  ///< which keys of the sorted order a tile attends to
    int64_t buckets = 0;                 ///< number of buckets of tokens that are not padding
    double scale = 1;                    ///< factor of the dot products
  };

  /// How the scores s of a token choose its bucket: argmax of s, or of [s, -s], which has twice as many
  /// buckets.
  enum class BucketSigns { positive, both };
  /// The bucket of each token in each of R rounds: scores [B, H, R, T, f] of positions `first` and later ->
  /// i32 [B, H, R, T], `padding_bucket` for padding (kernel::Buckets). Without a gradient.
  static Tensor buckets_of(const Tensor& scores, BucketSigns signs, const Mask& mask, int64_t first,
                           int64_t padding_bucket);
  /// Self-attention within buckets i32 [B, H, R, T] -> [B, H, T, dv].
  Tensor attend_in_buckets(const Heads& heads, const Tensor& buckets, const BucketParams& bucket_params,
                           const AttentionInput& input) const;
  /// Self-attention of tokens that follow those in input.cache (a KeyValueCache), each to the last `window`
  /// keys of its bucket; needs bucket_window.by_bucket. Cached keys carry their buckets as R extra columns.
  /// Keys that are no longer among the last `window` of their bucket in any round are removed when the cache
  /// exceeds twice the maximum it needs.
  Tensor attend_to_recent_in_buckets(Heads heads, const Tensor& buckets, const BucketParams& bucket_params,
                                     const AttentionInput& input) const;

 private:
  /// Removes cached keys that are not among the last `window` of their bucket in any round of `buckets` [B,
  /// H, R, N].
  static void evict(KeyValueCache& cache, const Tensor& buckets, const BucketParams& bucket_params);
  Tensor attend_to_ids(const Heads& heads, const Tensor& ids, const Tensor& bias, double scale,
                       const AttentionInput& input) const;
  Tensor map_of_ids(const Heads& heads, const Tensor& ids, const Tensor& bias, double scale) const;
};

}  // namespace heed

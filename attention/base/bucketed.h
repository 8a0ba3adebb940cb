// Rung 3': softmax among tokens that fall into a bucket together; a variant says who falls where.
#pragma once

#include "attention/headed.h"
#include "core/kernels/bucket.h"

namespace heed {

/// Attention in tiles of tokens that stand together in the order of (bucket, position), in any number of
/// rounds: each round's softmax is weighed by its sum of exponentials, so the whole is one softmax over all
/// keys that were met. Time and memory grow with the keys of a tile, not with pairs. Kitaev et al. 2020,
/// arXiv 2001.04451, section 2.
class BucketedAttention : public HeadedAttention {
 public:
  using HeadedAttention::HeadedAttention;

 protected:
  /// How tokens meet, and how many buckets there are besides the one of padding, which is number `buckets`.
  struct Rules {
    kernel::Meeting meeting;
    int64_t buckets = 0;
    double scale = 1;
  };

  /// scores [B, H, R, T, f] of tokens `first` and later -> i32 [B, H, R, T]: see kernel::Buckets. Choosing
  /// has no gradient.
  static Tensor buckets_of(const Tensor& scores, bool both_signs, const Mask& mask, int64_t first,
                           int64_t none);
  /// Self-attention among all tokens; buckets i32 [B, H, R, T]. -> [B, H, T, dv]
  Tensor meet(const Heads& heads, const Tensor& buckets, const Rules& rules, const Attend& call) const;
  /// The same for tokens that come after those in call.memory (a KeyValueMemory), by_bucket only. Remembered
  /// keys carry their buckets as R more columns; those that have left the last `window` of their bucket in
  /// every round are let go of, once they are as many as the others can ever be.
  Tensor meet_recent(Heads heads, const Tensor& buckets, const Rules& rules, const Attend& call) const;

 private:
  static void forget(KeyValueMemory& memory, const Tensor& buckets, const Rules& rules);
  Tensor listed(const Heads& heads, const Tensor& ids, const Tensor& bias, const Rules& rules,
                const Attend& call) const;
  void show(const Heads& heads, const Tensor& ids, const Tensor& bias, const Rules& rules,
            const Attend& call) const;
};

}  // namespace heed

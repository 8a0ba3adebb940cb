// Reformer: hashing sorts tokens into buckets, and tokens attend to their neighbours in that order. Kitaev et
// al. 2020, "Reformer: the efficient transformer", arXiv 2001.04451, section 2.
//
//   y_i = sum_j a_ij v_j,      a_i = softmax over the selected j of q_i . q_j / |q_j|,
//   bucket = argmax [q R, -q R]
//
// Keys are the queries at unit length (|q|^2 + 1e-6 d under the root, as in trax). In each round tokens are
// sorted by (bucket, position) and cut into chunks; a token attends to its chunk and the previous one, to
// itself only when there is no other key, and to a key once per round that selects it. There is no further
// 1 / sqrt(d).
//
// With by = bucket, a causal query attends to the last `chunk` tokens of its own bucket, which a decoder
// caches for every bucket. The published form (by = chunk) masks later tokens, but they move the borders of
// chunks and so change the selected keys; it cannot decode step by step.
//
// Parameters: rotations [rounds, d, buckets / 2], a fixed draw of normal numbers R; all heads share them. In
// on_heads(), k is used as given, and a token is in the bucket of its query.
#include <algorithm>

#include "heed/attention/base/bucketed_attention.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

enum class By { bucket, chunk };

struct ReformerOptions {
  int64_t rounds = 2;
  int64_t chunk = 64;
  int64_t buckets = 0;
  By by = By::bucket;
  bool ring = true;
  bool once = false;
  bool redraw = false;
  double scale = 1;
  void fields(Fields& f) {
    f("rounds", rounds, {1, 64}, "hashes, each with its own sorting");
    f("chunk", chunk, {1, max_block},
      "tokens of a chunk, which attends to itself and the one before, or last tokens of a bucket");
    f("buckets", buckets, {0, 512},
      "number of buckets of a round, even; 0: two a chunk of the longest input, at most 128; 64 if it is not "
      "known");
    f("by", Choice(by, {"bucket", "chunk"}),
      "keys of a decoder's query: bucket never depends on later tokens, chunk is as published");
    f("ring", ring, "the first chunk attends to the last one of the round before, not of its own round");
    f("once", once, "a key selected in several rounds counts once");
    f("redraw", redraw, "new rotations at each call while training");
    f("scale", scale, "multiplies the scores");
  }
};

class ReformerAttention final : public BucketedAttention {
 public:
  ReformerAttention(const AttentionConfig& config, const ReformerOptions& o, Rng& rng)
      : BucketedAttention(config, rng, Project::shared_qk), options_(o) {
    if (o.buckets % 2 != 0)
      fail("attention 'reformer': buckets = ", o.buckets, ". They must be an even number, or 0.");
    if (o.buckets == 0) {
      options_.buckets = config.max_length == 0
                             ? 64
                             : std::min<int64_t>(128, 2 * std::max<int64_t>(1, config.max_length / o.chunk));
    }
    rotations_ = Tensor(Shape{o.rounds, head_dim(), options_.buckets / 2});
    fill_normal(rotations_, 0, 1, rng);
  }

  std::unique_ptr<AttentionCache> new_cache() const override {
    return options_.by == By::bucket ? std::make_unique<KeyValueCache>() : nullptr;
  }
  void fields(Fields& f) override {
    BucketedAttention::fields(f);
    f("rotations", rotations_);
  }

 private:
  Tensor attend(Heads heads, const AttentionInput& input) override {
    const bool causal = input.mask.is_causal(), by_bucket = causal && options_.by == By::bucket;
    const bool is_cached = input.cache != nullptr && by_bucket && !input.mask.bias();
    if (!is_cached) refuse_bias_and_cache("reformer", input);
    if (!heads.k) fail("attention 'reformer': each token is a query and a key. Give keys, too.");
    check_equal_lengths("reformer", heads.q.extent(2), heads.k.extent(2),
                        "Queries serve as keys, so there must be as many of each.");
    const BucketParams bucket_params{
        .bucket_window = {.window = options_.chunk,
                          .queries_per_tile =
                              by_bucket ? std::max<int64_t>(1, options_.chunk / 4) : options_.chunk,
                          .by_bucket = by_bucket,
                          .causal = causal,
                          .wraps_to_previous_round = options_.ring,
                          .hides_self = true,
                          .counts_keys_once = options_.once},
        .buckets = options_.buckets,
        .scale = options_.scale};
    heads.k = unit_vectors(heads.k);
    const Tensor buckets = hash_buckets(heads.q, is_cached ? input.cache->length : 0, input);
    return is_cached ? attend_to_recent_in_buckets(std::move(heads), buckets, bucket_params, input)
                     : attend_in_buckets(heads, buckets, bucket_params, input);
  }

  static Tensor unit_vectors(const Tensor& x) {
    return x / sqrt(sum(square(x), 3) + 1e-6 * static_cast<double>(x.extent(3)));
  }

  /// The bucket of each token in each round, i32 [B, H, R, T].
  Tensor hash_buckets(const Tensor& q, int64_t first, const AttentionInput& input) const {
    const NoGrad no_grad;
    Tensor rotations = rotations_;
    if (options_.redraw && input.context.training()) {
      rotations = empty_like(rotations_);
      fill_normal(rotations, 0, 1, *input.context.rng);
    }
    const Tensor rows = reshape(q.detach(), Shape{q.extent(0), q.extent(1), 1, q.extent(2), q.extent(3)});
    return buckets_of(matmul(rows, rotations), BucketSigns::both, input.mask, first, options_.buckets);
  }

  ReformerOptions options_;
  Tensor rotations_;
};

}  // namespace

Variant variant::reformer() {
  return describe<ReformerAttention, ReformerOptions>(
      {.name = "reformer",
       .paper = "Kitaev et al. 2020",
       .summary =
           "Queries that are their own keys are hashed and sorted, and attend to their neighbours only.",
       .time = {.length = 1, .width = 0.9},  // values and their sum are padded to whole vectors
       .memory = {.length = 1, .width = 0.85},
       .causal = true,
       .steps = true,
       .last_row = false,
       .map = MapKind::exact});
}

}  // namespace heed

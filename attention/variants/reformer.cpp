// Reformer's attention by hashing. Kitaev et al. 2020, "Reformer: the efficient transformer", arXiv
// 2001.04451, section 2.
//
//   y_i = sum_j a_ij v_j,   a_i = softmax over { j met by i }( q_i . q_j / |q_j| ),   bucket = argmax [q R,
//   -q R]
//
// Keys are the queries, made as long as one (|q|^2 + 1e-6 d under the root, as in trax). In each round tokens
// are sorted by (bucket, position) and cut into chunks; a token meets its chunk and the one before, itself
// only where nothing else is met, and a key as often as rounds show it. No further 1 / sqrt(d).
//
// A decoder sees, with by = bucket, the last `chunk` tokens of its own bucket, and remembers those of every
// bucket: what comes later moves the borders of chunks, so the published form (by = chunk) masks later
// tokens, but the choice of keys knows of them, and it cannot go step by step.
//
// Parameters: rotations [rounds, d, buckets / 2], a fixed draw of normal numbers R; all heads share them. On
// heads that are given, k is read as it is, and a token falls into the bucket of its query.
#include <algorithm>

#include "attention/bucketed.h"
#include "attention/variant.h"

namespace heed {
namespace {

enum class By { bucket, chunk };

struct Options {
  int64_t rounds = 2;
  int64_t chunk = 64;
  int64_t buckets = 0;
  By by = By::bucket;
  bool ring = true;
  bool once = false;
  bool redraw = false;
  double scale = 1;
  void fields(Fields& f) {
    f("rounds", rounds, "hashes, each with its own sorting");
    f("chunk", chunk, "tokens that meet: a chunk and the one before, or the last ones of a bucket");
    f("buckets", buckets,
      "of a round, even; 0: two a chunk of the longest input, at most 128; 64 if it is not known");
    f("by", Choice(by, {"bucket", "chunk"}),
      "what a decoder sees: bucket never depends on later tokens, chunk is as "
      "published");
    f("ring", ring, "the first chunk looks back at the last one of the round before, not of its own");
    f("once", once, "a key met in several rounds counts once");
    f("redraw", redraw, "new rotations at each call while training");
    f("scale", scale, "multiplies the scores");
  }
};

class ReformerAttention final : public BucketedAttention {
 public:
  ReformerAttention(const AttentionConfig& config, const Options& o, Rng& rng)
      : BucketedAttention(config, rng, Project::shared_qk), options_(o) {
    if (o.rounds < 1) fail("attention 'reformer': rounds = ", o.rounds, ". There must be 1 or more.");
    if (o.chunk < 1) fail("attention 'reformer': chunk = ", o.chunk, ". It must be at least 1.");
    if (o.buckets < 0 || o.buckets % 2 != 0)
      fail("attention 'reformer': buckets = ", o.buckets, ". They must be an even number, or 0.");
    if (o.buckets == 0) {
      options_.buckets = config.max_length == 0
                             ? 64
                             : std::min<int64_t>(128, 2 * std::max<int64_t>(1, config.max_length / o.chunk));
    }
    rotations_ = Tensor(Shape{o.rounds, head_width(), options_.buckets / 2});
    fill_normal(rotations_, 0, 1, rng);
  }

  std::unique_ptr<Memory> start() const override {
    return options_.by == By::bucket ? std::make_unique<KeyValueMemory>() : nullptr;
  }
  void fields(Fields& f) override {
    BucketedAttention::fields(f);
    f("rotations", rotations_);
  }

 private:
  Tensor attend(Heads heads, const Attend& call) override {
    const bool causal = call.mask.is_causal(), by_bucket = causal && options_.by == By::bucket;
    const bool stepping = call.memory != nullptr && by_bucket && !call.mask.bias();
    if (!stepping) refuse_extras("reformer", call);
    if (!heads.k)
      fail("attention 'reformer': each token is a query and a key, so keys must come along. Give them.");
    if (heads.q.extent(2) != heads.k.extent(2)) {
      fail("attention 'reformer': ", heads.q.extent(2), " queries for ", heads.k.extent(2),
           " keys. Queries serve as keys, so there must be as many of each.");
    }
    const Rules rules{
        .meeting = {.window = options_.chunk,
                    .tile = by_bucket ? std::max<int64_t>(1, options_.chunk / 4) : options_.chunk,
                    .by_bucket = by_bucket,
                    .causal = causal,
                    .ring = options_.ring,
                    .not_self = true,
                    .once = options_.once},
        .buckets = options_.buckets,
        .scale = options_.scale};
    heads.k = unit(heads.k);
    const Tensor buckets = hashed(heads.q, stepping ? call.memory->length : 0, call);
    return stepping ? meet_recent(std::move(heads), buckets, rules, call) : meet(heads, buckets, rules, call);
  }

  static Tensor unit(const Tensor& x) {
    return x / sqrt(sum(square(x), 3) + 1e-6 * static_cast<double>(x.extent(3)));
  }

  /// The bucket of each token in each round, i32 [B, H, R, T].
  Tensor hashed(const Tensor& q, int64_t first, const Attend& call) const {
    const NoTape choosing;
    Tensor rotations = rotations_;
    if (options_.redraw && call.pass.noise != nullptr) {
      rotations = like(rotations_);
      fill_normal(rotations, 0, 1, *call.pass.noise);
    }
    const Tensor rows = reshape(q.detach(), Shape{q.extent(0), q.extent(1), 1, q.extent(2), q.extent(3)});
    return buckets_of(matmul(rows, rotations), true, call.mask, first, options_.buckets);
  }

  Options options_;
  Tensor rotations_;
};

}  // namespace

Variant variant::reformer() {
  return describe<ReformerAttention, Options>(
      {.name = "reformer",
       .paper = "Kitaev et al. 2020",
       .idea = "Queries that are their own keys are hashed and sorted, and meet their neighbours only.",
       .time = {.length = 1, .width = 0.9},  // CPUs fill values and their sum up to whole vectors
       .memory = {.length = 1, .width = 0.85},
       .causal = true,
       .steps = true,
       .last_row = false,
       .map = MapKind::exact});
}

}  // namespace heed

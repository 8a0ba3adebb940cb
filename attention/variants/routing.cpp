// Routing attention: queries and keys attend to each other within clusters around centroids. Roy et al. 2021,
// "Efficient content-based sparse attention with routing transformers", arXiv 2003.05997, section 4.
//
// Queries and keys are scaled to unit length. Each of C centroids takes the w queries and the w keys with the
// largest cosine, which attend to each other by softmax. A query in several clusters gets the mean of their
// outputs, one in none gets zero. When training, centroids follow the mean of the vectors nearest to them; in
// the first step of a run they are initialised by spherical k-means on its batch.
//
// A decoder uses the same projection for queries and keys, as in the paper, and a token is in the cluster of
// its query. The published form (by = cluster) masks later tokens, but they compete for places in clusters;
// by default (by = nearest) a token belongs to its nearest centroid and attends to the last w tokens there,
// which do not depend on later tokens.
//
// Parameters: centroids [H, C, d], unit vectors, a buffer: no gradient.
#include <cmath>

#include "heed/attention/base/bucketed.h"
#include "heed/attention/variant.h"
#include "heed/core/kernels/content/sort.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

enum class Grouping { nearest, cluster };

struct RoutingOptions {
  int64_t clusters = 0;
  int64_t window = 0;
  int64_t init = 10;
  Grouping by = Grouping::nearest;
  double decay = 0.999;
  double commitment = 1e-4;
  double scale = 0;
  void fields(Fields& f) {
    f("clusters", clusters, {0, max_width},
      "centroids of a head; 0: the root of the longest input, 16 if it is not known");
    f("window", window, {0, 2048},
      "tokens that a cluster takes; 0: the longest input over the clusters, 32 if it is not known");
    f("init", init, {0, max_rounds},
      "rounds of k-means on the first batch of a run, which place the centroids");
    f("by", Choice(by, {"nearest", "cluster"}),
      "what a decoder sees: nearest never depends on later tokens, cluster "
      "is as published");
    f("decay", decay, "of the running mean that is a centroid");
    f("commitment", commitment, "share of the squared distances to centroids in the loss");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

class RoutingAttention final : public BucketedAttention {
 public:
  RoutingAttention(const AttentionConfig& config, const RoutingOptions& o, Rng& rng)
      : BucketedAttention(config, rng, config.causal ? Project::shared_qk : Project::qkv), options_(o) {
    if (!(o.decay >= 0 && o.decay <= 1))
      fail("attention 'routing': decay = ", o.decay, ". It must be from 0 to 1.");
    const int64_t longest = config.max_length;
    if (o.clusters == 0)
      options_.clusters =
          longest == 0 ? 16 : std::max<int64_t>(1, std::llround(std::sqrt(static_cast<double>(longest))));
    if (o.window == 0)
      options_.window = longest == 0 ? 32 : (longest + options_.clusters - 1) / options_.clusters;
    if (o.scale == 0) options_.scale = 1 / std::sqrt(static_cast<double>(head_dim()));
    const Tensor start(Shape{config.heads, options_.clusters, head_dim()});
    fill_normal(start, 0, 1, rng);
    centroids_ = unit(start);
  }

  std::unique_ptr<AttentionCache> new_cache() const override {
    return options_.by == Grouping::nearest ? std::make_unique<KeyValueCache>() : nullptr;
  }
  void fields(Fields& f) override {
    BucketedAttention::fields(f);
    f("centroids", centroids_);
  }

 private:
  static Tensor unit(const Tensor& x) { return x / sqrt(sum(square(x), -1) + 1e-12); }

  Tensor attend(Heads heads, const AttentionInput& input) override {
    const bool nearest = input.mask.is_causal() && options_.by == Grouping::nearest;
    const bool stepping = input.cache != nullptr && nearest && !input.mask.bias();
    if (!stepping) refuse_extras("routing", input);
    if (!heads.v || heads.q.extent(2) != heads.v.extent(2)) {
      fail("attention 'routing': ", heads.q.extent(2), " queries for ", heads.v ? heads.v.extent(2) : 0,
           " keys. Each token is both, so give as many keys as queries.");
    }
    const bool rehearsed = input.context.losses != nullptr && input.context.losses->dry_run;
    const bool learns = input.context.training() && recording() && !rehearsed;
    if (learns && !stepping && !input.context.rng->past(1) && input.context.rng->tick() == 1)
      settle(heads, input);
    const Tensor nearness = routed(heads.q, input);  // [B, H, T, C]
    const Tensor nearness_of_keys = input.mask.is_causal() ? nearness : routed(heads.k, input);
    Tensor y;
    if (nearest) {
      const Rules rules{.bucket_window = {.window = options_.window,
                                          .tile = std::max<int64_t>(1, options_.window / 4),
                                          .by_bucket = true,
                                          .causal = true},
                        .buckets = options_.clusters,
                        .scale = options_.scale};
      const Tensor buckets = belongs(nearness, input, stepping ? input.cache->length : 0);
      y = stepping ? attend_to_recent_in_buckets(heads, buckets, rules, input)
                   : attend_in_buckets(heads, buckets, rules, input);
    } else {
      y = clustered(heads, nearness, nearness_of_keys, input);
    }
    if (learns && !stepping) {
      commit(heads.q, nearness, input);
      if (!input.mask.is_causal()) commit(heads.k, nearness_of_keys, input);
    }
    return y;
  }

  /// Cosines with the centroids [B, H, T, C]; -inf at padding.
  Tensor routed(const Tensor& x, const AttentionInput& input) const {
    const NoGrad no_grad;
    const Tensor cosines = matmul(unit(x.detach()), transpose(centroids_, 1, 2));
    const Tensor& lengths = input.mask.key_lengths();
    if (!lengths || input.cache != nullptr) return cosines;
    const Tensor turned = transpose(cosines, 2, 3);
    return transpose(turned + Mask::lengths(lengths).dense(turned, 0), 2, 3);
  }

  /// The nearest centroid of each token: i32 [B, H, 1, T].
  Tensor belongs(const Tensor& nearness, const AttentionInput& input, int64_t first) const {
    const Shape one_round{nearness.extent(0), nearness.extent(1), 1, nearness.extent(2), nearness.extent(3)};
    return buckets_of(reshape(nearness, one_round), false, input.mask, first, options_.clusters);
  }

  /// The tokens that each centroid takes: i32 [B, H, C, w].
  Tensor taken(const Tensor& nearness) const {
    const Tensor of_centroids = contiguous(transpose(nearness, 2, 3));
    const Tensor which(Shape{nearness.extent(0), nearness.extent(1), options_.clusters,
                             std::min(options_.window, nearness.extent(2))},
                       DType::i32, nearness.device());
    launch<kernel::Largest>(nearness.device(), of_centroids, which);
    return which;
  }

  Tensor clustered(const Heads& heads, const Tensor& nearness, const Tensor& nearness_of_keys,
                   const AttentionInput& input) const {
    const bool causal = input.mask.is_causal();
    const Tensor queries = taken(nearness), keys = causal ? queries : taken(nearness_of_keys);
    const int64_t B = heads.q.extent(0), H = heads.q.extent(1), T = heads.q.extent(2), C = queries.extent(2),
                  w = queries.extent(3);
    const Tensor bias = empty_like(heads.q, Shape{B, H, C, causal ? w : 1, w});
    launch<kernel::GroupBias>(heads.q.device(), queries, keys, causal, bias);
    const Tensor of_queries = view::reshape(queries, Shape{B, H, C * w}),
                 of_keys = view::reshape(keys, Shape{B, H, C * w});
    const auto grouped = [&](const Tensor& x, const Tensor& ids) {
      return reshape(gather_rows(x, ids), Shape{B * H, C, w, x.extent(3)});
    };
    const Tensor q = grouped(heads.q, of_queries), k = grouped(heads.k, of_keys),
                 v = grouped(heads.v, of_keys);
    kernel::AttentionParams given = params(input, options_.scale);
    given.bias = view::reshape(bias, Shape{B * H, C, bias.extent(3), w});
    const Tensor each = Tensor::full(Shape{B, H, C * w, 1}, 1, q.dtype(), q.device());
    const Tensor one = Tensor::full(Shape{1, 1, 1, 1}, 1, q.dtype(), q.device());
    const Tensor share =
        1.0 * reciprocal(maximum(scatter_add_rows(each, of_queries, T), one));  // [B, H, T, 1]
    if (input.context.recorder != nullptr) {
      const NoGrad no_grad;
      const Tensor map =
          softmax(matmul(q, transpose(k, 2, 3)) * options_.scale + given.bias);  // [B H, C, w, w]
      // Scatter columns to their keys, then rows to their queries.
      const Tensor repeated =
          contiguous(view::expand(view::reshape(keys, Shape{B * H, C, 1, w}), map.shape()));
      const Tensor wide = scatter_add_rows(reshape(map, Shape{B * H, C * w, w, 1}),
                                           view::reshape(repeated, Shape{B * H, C * w, w}), T);
      input.context.recorder->record(
          *this, scatter_add_rows(reshape(wide, Shape{B, H, C * w, T}), of_queries, T) * share);
    }
    const Tensor y = reshape(attention(q, k, v, given), Shape{B, H, C * w, heads.v.extent(3)});
    return scatter_add_rows(y, of_queries, T) * share;
  }

  /// Moves centroids to the vectors nearest to them, and adds the commitment loss that pulls vectors to them.
  void commit(const Tensor& x, const Tensor& nearness, const AttentionInput& input) {
    const int64_t B = x.extent(0), H = x.extent(1), T = x.extent(2), d = x.extent(3), C = options_.clusters;
    const Tensor nearest_id = view::reshape(belongs(nearness, input, 0), Shape{B, H, T});  // C for padding
    const Tensor vectors = unit(x);
    if (input.context.losses != nullptr && options_.commitment > 0) {
      const Tensor nowhere = Tensor::zeros(Shape{H, 1, d}, centroids_.dtype(), centroids_.device());
      const Tensor all =
          expand(reshape(concat(std::vector<Tensor>{centroids_, nowhere}, 1), Shape{1, H, C + 1, d}),
                 Shape{B, H, C + 1, d});
      const Tensor kept = input.mask.padding_mask(x, 0);
      const Tensor apart = square(vectors - gather_rows(all, nearest_id));
      const Tensor of_real =
          kept ? sum(apart * kept) / (sum(kept) * static_cast<double>(H * d)) : mean(apart);
      input.context.losses->add("commitment", of_real * options_.commitment);
    }
    const NoGrad no_grad;
    move(of_clusters(vectors.detach(), nearest_id), 1 - options_.decay);
  }

  /// Sums of the vectors of each cluster, [1, H, C, d].
  Tensor of_clusters(const Tensor& vectors, const Tensor& nearest_id) const {
    const int64_t C = options_.clusters;
    return slice(sum(scatter_add_rows(vectors, nearest_id, C + 1), 0), 2, 0, C);
  }

  /// Moves centroids by `share` of the way to the normalised sums; centroids without vectors stay.
  void move(const Tensor& sums, double share) {
    const Tensor squares = sum(square(sums), 3);
    const Tensor ones = Tensor::full(squares.shape(), 1, squares.dtype(), squares.device());
    const Shape each{sums.extent(1), sums.extent(2), 1};
    const Tensor moves = reshape(squares / maximum(squares, ones * 1e-12), each) * share;
    const Tensor target = reshape(unit(sums), centroids_.shape());
    launch<kernel::Copy>(centroids_.device(), unit(centroids_ + (target - centroids_) * moves), centroids_);
  }

  /// Initialises centroids by spherical k-means, starting from random tokens of the batch.
  void settle(const Heads& heads, const AttentionInput& input) {
    if (options_.init == 0) return;
    const NoGrad no_grad;
    const int64_t B = heads.q.extent(0), H = heads.q.extent(1), T = heads.q.extent(2), C = options_.clusters;
    Rng pick(input.context.rng->seed() * 4096 + static_cast<uint64_t>(config().layer));
    std::vector<int32_t> tokens;
    for (int64_t c = 0; c < C; ++c) tokens.push_back(static_cast<int32_t>(pick.below(B * T)));
    const Tensor ids = Tensor::of<int32_t>(tokens, Shape{1, 1, C}, heads.q.device());
    const auto unit_rows = [&](const Tensor& x) {  // zero at padding
      const Tensor kept = input.mask.padding_mask(x, 0), rows = unit(x.detach());
      return kept ? rows * kept : rows;
    };
    const Tensor q = unit_rows(heads.q), k = input.mask.is_causal() ? Tensor() : unit_rows(heads.k);
    move(gather_rows(reshape(transpose(q, 0, 1), Shape{1, H, B * T, q.extent(3)}), ids), 1);
    for (int64_t round = 0; round < options_.init; ++round) {
      const auto sums = [&](const Tensor& x) {
        const Tensor nearest_id = belongs(routed(x, input), input, 0);
        return of_clusters(x, view::reshape(nearest_id, Shape{B, H, T}));
      };
      move(k ? sums(q) + sums(k) : sums(q), 1);
    }
  }

  RoutingOptions options_;
  Tensor centroids_;
};

}  // namespace

Variant variant::routing() {
  return describe<RoutingAttention, RoutingOptions>(
      {.name = "routing",
       .paper = "Roy et al. 2021",
       .idea =
           "Each of sqrt(N) centroids takes the queries and keys nearest to it, which attend to each other.",
       .time = {.length = 1.4, .width = 1},  // N sqrt(N), plus linear terms
       .memory = {.length = 1.05, .width = 0.9},
       .causal = true,
       .steps = true,
       .last_row = false,
       .map = MapKind::signed_,
       .from = 2048});
}

}  // namespace heed

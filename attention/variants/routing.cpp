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

#include "heed/attention/base/bucketed_attention.h"
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
      "tokens of a cluster; 0: the longest input over the clusters, 32 if it is not known");
    f("init", init, {0, max_rounds},
      "rounds of k-means on the first batch of a run, which initialise the centroids");
    f("by", Choice(by, {"nearest", "cluster"}),
      "keys of a decoder's query: nearest never depends on later tokens, cluster is as published");
    f("decay", decay, "decay of the running mean of the vectors of a centroid");
    f("commitment", commitment, "weight of the squared distances to centroids in the loss");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

class RoutingAttention final : public BucketedAttention {
 public:
  RoutingAttention(const AttentionConfig& config, const RoutingOptions& o, Rng& rng)
      : BucketedAttention(config, rng, config.causal ? Project::shared_qk : Project::qkv), options_(o) {
    if (!(o.decay >= 0 && o.decay <= 1))
      fail("attention 'routing': decay = ", o.decay, ". It must be from 0 to 1.");
    const int64_t length = config.max_length;
    if (o.clusters == 0)
      options_.clusters =
          length == 0 ? 16 : std::max<int64_t>(1, std::llround(std::sqrt(static_cast<double>(length))));
    if (o.window == 0)
      options_.window = length == 0 ? 32 : (length + options_.clusters - 1) / options_.clusters;
    options_.scale = attention_scale(o.scale, head_dim());
    const Tensor drawn(Shape{config.heads, options_.clusters, head_dim()});
    fill_normal(drawn, 0, 1, rng);
    centroids_ = unit_vectors(drawn);
  }

  std::unique_ptr<AttentionCache> new_cache() const override {
    return options_.by == Grouping::nearest ? std::make_unique<KeyValueCache>() : nullptr;
  }
  void fields(Fields& f) override {
    BucketedAttention::fields(f);
    f("centroids", centroids_);
  }

 private:
  static Tensor unit_vectors(const Tensor& x) { return x / sqrt(sum(square(x), -1) + 1e-12); }

  Tensor attend(Heads heads, const AttentionInput& input) override {
    const bool nearest = input.mask.is_causal() && options_.by == Grouping::nearest;
    const bool is_cached = input.cache != nullptr && nearest && !input.mask.bias();
    if (!is_cached) refuse_bias_and_cache("routing", input);
    if (!heads.v || heads.q.extent(2) != heads.v.extent(2)) {
      fail("attention 'routing': ", heads.q.extent(2), " queries for ", heads.v ? heads.v.extent(2) : 0,
           " keys. Each token is both, so give as many keys as queries.");
    }
    const bool is_dry_run = input.context.losses != nullptr && input.context.losses->dry_run;
    const bool updates_centroids = input.context.training() && recording() && !is_dry_run && !is_cached;
    if (updates_centroids && !input.context.rng->past(1) && input.context.rng->tick() == 1)
      init_centroids(heads, input);
    const Tensor query_cosines = cosines(heads.q, input);  // [B, H, T, C]
    const Tensor key_cosines = input.mask.is_causal() ? query_cosines : cosines(heads.k, input);
    Tensor y;
    if (nearest) {
      const BucketParams bucket_params{
          .bucket_window = {.window = options_.window,
                            .queries_per_tile = std::max<int64_t>(1, options_.window / 4),
                            .by_bucket = true,
                            .causal = true},
          .buckets = options_.clusters,
          .scale = options_.scale};
      const Tensor buckets = nearest_centroids(query_cosines, input, is_cached ? input.cache->length : 0);
      y = is_cached ? attend_to_recent_in_buckets(heads, buckets, bucket_params, input)
                    : attend_in_buckets(heads, buckets, bucket_params, input);
    } else {
      y = attend_in_clusters(heads, query_cosines, key_cosines, input);
    }
    if (updates_centroids) {
      update_centroids(heads.q, query_cosines, input);
      if (!input.mask.is_causal()) update_centroids(heads.k, key_cosines, input);
    }
    return y;
  }

  /// Cosines with the centroids [B, H, T, C]; -inf at padding.
  Tensor cosines(const Tensor& x, const AttentionInput& input) const {
    const NoGrad no_grad;
    const Tensor products = matmul(unit_vectors(x.detach()), transpose(centroids_, 1, 2));
    const Tensor& lengths = input.mask.key_lengths();
    if (!lengths || input.cache != nullptr) return products;
    const Tensor transposed = transpose(products, 2, 3);
    return transpose(transposed + Mask::lengths(lengths).dense(transposed, 0), 2, 3);
  }

  /// The nearest centroid of each token: i32 [B, H, 1, T].
  Tensor nearest_centroids(const Tensor& cosines, const AttentionInput& input, int64_t first) const {
    const Shape one_round{cosines.extent(0), cosines.extent(1), 1, cosines.extent(2), cosines.extent(3)};
    return buckets_of(reshape(cosines, one_round), BucketSigns::positive, input.mask, first,
                      options_.clusters);
  }

  /// The w tokens with the largest cosine of each centroid: i32 [B, H, C, w].
  Tensor members(const Tensor& cosines) const {
    const Tensor of_centroids = contiguous(transpose(cosines, 2, 3));
    const Tensor ids(Shape{cosines.extent(0), cosines.extent(1), options_.clusters,
                           std::min(options_.window, cosines.extent(2))},
                     DType::i32, cosines.device());
    launch<kernel::TopK>(cosines.device(), of_centroids, ids);
    return ids;
  }

  /// The mean over clusters of the softmax between the queries and the keys of a cluster.
  Tensor attend_in_clusters(const Heads& heads, const Tensor& query_cosines, const Tensor& key_cosines,
                            const AttentionInput& input) const {
    const bool causal = input.mask.is_causal();
    const Tensor queries = members(query_cosines), keys = causal ? queries : members(key_cosines);
    const int64_t B = heads.q.extent(0), H = heads.q.extent(1), T = heads.q.extent(2), C = queries.extent(2),
                  w = queries.extent(3);
    const Tensor bias = empty_like(heads.q, Shape{B, H, C, causal ? w : 1, w});
    launch<kernel::GroupBias>(heads.q.device(), queries, keys, causal, bias);
    const Tensor query_ids = view::reshape(queries, Shape{B, H, C * w}),
                 key_ids = view::reshape(keys, Shape{B, H, C * w});
    const auto in_clusters = [&](const Tensor& x, const Tensor& ids) {
      return reshape(gather_rows(x, ids), Shape{B * H, C, w, x.extent(3)});
    };
    const Tensor q = in_clusters(heads.q, query_ids), k = in_clusters(heads.k, key_ids),
                 v = in_clusters(heads.v, key_ids);
    kernel::AttentionParams call = params(input, options_.scale);
    call.bias = view::reshape(bias, Shape{B * H, C, bias.extent(3), w});
    const Tensor ones = Tensor::full(Shape{B, H, C * w, 1}, 1, q.dtype(), q.device());
    const Tensor share =
        1.0 * reciprocal(maximum(scatter_add_rows(ones, query_ids, T), 1));  // 1 / its clusters
    record_map(input, [&] {
      const Tensor map = softmax_map(q, k, options_.scale, Mask::none().with(call.bias), 0);
      // Columns [B H, C, w, w] are scattered to their keys, then rows to their queries.
      const Tensor column_ids =
          contiguous(view::expand(view::reshape(keys, Shape{B * H, C, 1, w}), map.shape()));
      const Tensor rows = scatter_add_rows(reshape(map, Shape{B * H, C * w, w, 1}),
                                           view::reshape(column_ids, Shape{B * H, C * w, w}), T);
      return scatter_add_rows(reshape(rows, Shape{B, H, C * w, T}), query_ids, T) * share;
    });
    const Tensor y = reshape(attention(q, k, v, call), Shape{B, H, C * w, heads.v.extent(3)});
    return scatter_add_rows(y, query_ids, T) * share;
  }

  /// Moves centroids to the vectors nearest to them, and adds the commitment loss that pulls vectors to them.
  void update_centroids(const Tensor& x, const Tensor& cosines, const AttentionInput& input) {
    const int64_t B = x.extent(0), H = x.extent(1), T = x.extent(2), d = x.extent(3), C = options_.clusters;
    const Tensor nearest_id =
        view::reshape(nearest_centroids(cosines, input, 0), Shape{B, H, T});  // C for padding
    const Tensor vectors = unit_vectors(x);
    if (input.context.losses != nullptr && options_.commitment > 0) {
      const Tensor zeros = Tensor::zeros(Shape{H, 1, d}, centroids_.dtype(), centroids_.device());  // padding
      const Tensor with_padding =
          expand(reshape(concat(std::vector<Tensor>{centroids_, zeros}, 1), Shape{1, H, C + 1, d}),
                 Shape{B, H, C + 1, d});
      const Tensor kept = input.mask.padding_mask(x, 0);
      const Tensor distances = square(vectors - gather_rows(with_padding, nearest_id));
      const Tensor mean_distance =
          kept ? sum(distances * kept) / (sum(kept) * static_cast<double>(H * d)) : mean(distances);
      input.context.losses->add("commitment", mean_distance * options_.commitment);
    }
    const NoGrad no_grad;
    move_centroids(cluster_sums(vectors.detach(), nearest_id), 1 - options_.decay);
  }

  /// Sums of the vectors of each cluster, [1, H, C, d].
  Tensor cluster_sums(const Tensor& vectors, const Tensor& nearest_id) const {
    const int64_t C = options_.clusters;
    return slice(sum(scatter_add_rows(vectors, nearest_id, C + 1), 0), 2, 0, C);
  }

  /// Moves centroids by `share` of the way to the normalised sums; centroids without vectors stay.
  void move_centroids(const Tensor& sums, double share) {
    const Tensor squares = sum(square(sums), 3);
    const Shape per_centroid{sums.extent(1), sums.extent(2), 1};
    const Tensor steps = reshape(squares / maximum(squares, 1e-12), per_centroid) * share;
    const Tensor target = reshape(unit_vectors(sums), centroids_.shape());
    launch<kernel::Copy>(centroids_.device(), unit_vectors(centroids_ + (target - centroids_) * steps),
                         centroids_);
  }

  /// Initialises centroids by spherical k-means, starting from random tokens of the batch.
  void init_centroids(const Heads& heads, const AttentionInput& input) {
    if (options_.init == 0) return;
    const NoGrad no_grad;
    const int64_t B = heads.q.extent(0), H = heads.q.extent(1), T = heads.q.extent(2), C = options_.clusters;
    Rng pick(input.context.rng->seed() * 4096 + static_cast<uint64_t>(config().layer));
    std::vector<int32_t> tokens;
    for (int64_t c = 0; c < C; ++c) tokens.push_back(static_cast<int32_t>(pick.below(B * T)));
    const Tensor ids = Tensor::of<int32_t>(tokens, Shape{1, 1, C}, heads.q.device());
    const auto unit_rows = [&](const Tensor& x) {  // zero at padding
      const Tensor kept = input.mask.padding_mask(x, 0), rows = unit_vectors(x.detach());
      return kept ? rows * kept : rows;
    };
    const Tensor q = unit_rows(heads.q), k = input.mask.is_causal() ? Tensor() : unit_rows(heads.k);
    move_centroids(gather_rows(reshape(transpose(q, 0, 1), Shape{1, H, B * T, q.extent(3)}), ids), 1);
    for (int64_t round = 0; round < options_.init; ++round) {
      const auto sums = [&](const Tensor& x) {
        const Tensor nearest_id = nearest_centroids(cosines(x, input), input, 0);
        return cluster_sums(x, view::reshape(nearest_id, Shape{B, H, T}));
      };
      move_centroids(k ? sums(q) + sums(k) : sums(q), 1);
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
       .summary =
           "Each of sqrt(N) centroids takes the queries and keys nearest to it, which attend to each other.",
       .time = {.length = 1.4, .width = 1},  // N sqrt(N), plus linear terms
       .memory = {.length = 1.05, .width = 0.9},
       .causal = true,
       .steps = true,
       .last_row = false,
       .map = MapKind::signed_,
       .min_cost_length = 2048});
}

}  // namespace heed

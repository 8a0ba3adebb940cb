// Sorts tokens into tiles by bucket, attends within tiles, and restores the order.
#include "heed/attention/base/bucketed_attention.h"

#include <algorithm>

#include "heed/core/kernels/content/sort.h"
#include "heed/core/launch.h"

namespace heed {

namespace {

/// Gathers rows of x [B, H, T, d] at ids [B, H, Tq, L] -> [B H, Tq, L, d].
Tensor rows_per_query(const Tensor& x, const Tensor& ids) {
  const Tensor flat = view::reshape(ids, Shape{ids.extent(0), ids.extent(1), -1});
  return reshape(gather_rows(x, flat),
                 Shape{ids.extent(0) * ids.extent(1), ids.extent(2), ids.extent(3), x.extent(3)});
}

}  // namespace

Tensor BucketedAttention::buckets_of(const Tensor& scores, BucketSigns signs, const Mask& mask, int64_t first,
                                     int64_t padding_bucket) {
  const NoGrad no_grad;
  const Tensor buckets(Shape{scores.extent(0), scores.extent(1), scores.extent(2), scores.extent(3)},
                       DType::i32, scores.device());
  launch<kernel::Buckets>(scores.device(), contiguous(scores.detach()), signs == BucketSigns::both,
                          mask.key_lengths(), first, static_cast<int32_t>(padding_bucket), buckets);
  return buckets;
}

// Shapes: B sequences, H heads, R rounds, N tokens, T tiles of a round, E keys of a tile.
Tensor BucketedAttention::attend_in_buckets(const Heads& heads, const Tensor& buckets,
                                            const BucketParams& bucket_params,
                                            const AttentionInput& input) const {
  const kernel::BucketWindow& m = bucket_params.bucket_window;
  const Device device = heads.q.device();
  const int64_t B = heads.q.extent(0), H = heads.q.extent(1), N = heads.q.extent(2), d = heads.q.extent(3),
                dv = heads.v.extent(3), R = buckets.extent(2), E = m.keys_per_tile();
  const int64_t T =
      (N + m.queries_per_tile - 1) / m.queries_per_tile + (m.by_bucket ? bucket_params.buckets : 0);
  const Tensor order(buckets.shape(), DType::i32, device);
  launch<kernel::Argsort>(device, buckets, order);
  const Tensor queries(Shape{B, H, R, T * m.queries_per_tile}, DType::i32, device),
      keys(Shape{B, H, R, T, E}, DType::i32, device), slots(Shape{B, H, R * N}, DType::i32, device);
  const kernel::BucketOrder sorted{.order = order, .buckets = buckets, .lengths = input.mask.key_lengths()};
  launch<kernel::BucketTiles>(device, sorted, m, queries, keys, slots);
  const Tensor bias = empty_like(heads.q, Shape{B * H, R * T, m.queries_per_tile, E});
  launch<kernel::BucketBias>(device, sorted, m, queries, keys, bias);
  record_map(input, [&] {
    const Tensor ids(Shape{B, H, N, R * E}, DType::i32, device), id_bias = empty_like(heads.q, ids.shape());
    launch<kernel::BucketLists>(device, keys, slots, bias, ids, id_bias);
    return map_of_ids(heads, ids, id_bias, bucket_params.scale);
  });
  const Tensor query_ids = view::reshape(queries, Shape{B, H, -1}),
               key_ids = view::reshape(keys, Shape{B, H, -1});
  const Tensor q = reshape(gather_rows(heads.q, query_ids), Shape{B * H, R * T, m.queries_per_tile, d});
  const Tensor k = reshape(gather_rows(heads.k, key_ids), Shape{B * H, R * T, E, d});
  const Tensor v = reshape(gather_rows(heads.v, key_ids), Shape{B * H, R * T, E, dv});
  kernel::AttentionParams tile_params = params(input, bucket_params.scale);
  tile_params.bias = bias;
  const Tensor tiles =
      reshape(attention_with_sums(q, k, v, tile_params), Shape{B, H, R * T * m.queries_per_tile, dv + 1});
  const Tensor rows = gather_rows(tiles, slots);  // [B, H, R N, dv + 1]
  if (R == 1) return slice(rows, 3, 0, dv);
  // Rounds are weighted by the softmax of their log-sum-exp.
  const Tensor rounds = reshape(rows, Shape{B, H, R, N, dv + 1});
  const Tensor sums = transpose(reshape(slice(rounds, 4, dv, dv + 1), Shape{B, H, R, N}), 2, 3);
  const Tensor shares = reshape(transpose(softmax(sums), 2, 3), Shape{B, H, R, N, 1});
  return reshape(sum(slice(rounds, 4, 0, dv) * shares, 2), Shape{B, H, N, dv});
}

Tensor BucketedAttention::attend_to_recent_in_buckets(Heads heads, const Tensor& buckets,
                                                      const BucketParams& bucket_params,
                                                      const AttentionInput& input) const {
  const kernel::BucketWindow& m = bucket_params.bucket_window;
  const int64_t B = heads.q.extent(0), H = heads.q.extent(1), num_queries = heads.q.extent(2),
                d = heads.q.extent(3), R = buckets.extent(2);
  heads.k = concat(std::vector<Tensor>{heads.k, cast(transpose(buckets, 2, 3), heads.k.dtype())}, 3);
  read_cache(heads, input);  // appends the keys of this call to the cached ones, of which some were removed
  const int64_t num_keys = heads.k.extent(2), first_query_row = num_keys - num_queries;
  const Tensor all_buckets =
      contiguous(cast(transpose(slice(heads.k, 3, d, d + R), 2, 3), DType::i32).detach());
  heads.k = slice(heads.k, 3, 0, d);
  const Tensor ids(Shape{B, H, num_queries, R * m.window}, DType::i32, heads.q.device()),
      bias = empty_like(heads.q, ids.shape());
  launch<kernel::RecentInBucket>(heads.q.device(), all_buckets, first_query_row,
                                 static_cast<int32_t>(bucket_params.buckets), m, ids, bias);
  record_map(input, [&] { return map_of_ids(heads, ids, bias, bucket_params.scale); });
  Tensor y = attend_to_ids(heads, ids, bias, bucket_params.scale, input);
  KeyValueCache& cache = *cache_of<KeyValueCache>(input);
  const bool has_history = recording() && cache.keys.node();
  if (!has_history && num_keys > 2 * R * bucket_params.buckets * m.window)
    evict(cache, all_buckets, bucket_params);
  return y;
}

namespace {

/// Marks keys [B H, N] that are among the last `window` of their bucket in any round of `buckets` [B, H, R,
/// N], 1 for these and 0 for others. Buckets from num_buckets on hold padding.
std::vector<uint8_t> recent_in_bucket(const Tensor& buckets, int64_t num_buckets, int64_t window) {
  const int64_t rows = buckets.extent(0) * buckets.extent(1), R = buckets.extent(2), N = buckets.extent(3);
  const std::vector<double> bucket_of = buckets.to_doubles();
  std::vector<uint8_t> is_recent(static_cast<size_t>(rows * N), 0);
  for (int64_t round = 0; round < rows * R; ++round) {
    std::vector<int64_t> num_in_bucket(static_cast<size_t>(num_buckets), 0);
    for (int64_t j = N; j-- > 0;) {
      const auto bucket = static_cast<int64_t>(bucket_of[static_cast<size_t>(round * N + j)]);
      if (bucket < num_buckets && num_in_bucket[static_cast<size_t>(bucket)]++ < window)
        is_recent[static_cast<size_t>(round / R * N + j)] = 1;
    }
  }
  return is_recent;
}

}  // namespace

void BucketedAttention::evict(KeyValueCache& cache, const Tensor& buckets,
                              const BucketParams& bucket_params) {
  const NoGrad no_grad;
  const int64_t B = buckets.extent(0), H = buckets.extent(1), N = buckets.extent(3);
  std::vector<uint8_t> is_kept =
      recent_in_bucket(buckets, bucket_params.buckets, bucket_params.bucket_window.window);
  const auto num_kept = [&](int64_t head) {
    return std::count(is_kept.begin() + head * N, is_kept.begin() + (head + 1) * N, uint8_t{1});
  };
  int64_t max_kept = 0;
  for (int64_t head = 0; head < B * H; ++head) max_kept = std::max<int64_t>(max_kept, num_kept(head));
  std::vector<int32_t> ids;
  for (int64_t head = 0; head < B * H; ++head) {
    // All heads keep the same number of keys: heads with fewer keep their latest other keys, too.
    const auto of_head = is_kept.begin() + head * N;
    int64_t missing = max_kept - num_kept(head);
    for (int64_t j = N; j-- > 0 && missing > 0;) {
      if (of_head[j] == 0) --missing;
      of_head[j] = 1;
    }
    for (int64_t j = 0; j < N; ++j) {
      if (of_head[j] != 0) ids.push_back(static_cast<int32_t>(j));
    }
  }
  const Tensor rows = Tensor::of<int32_t>(ids, Shape{B, H, max_kept}, buckets.device());
  for (Tensor* each : {&cache.keys, &cache.values}) *each = gather_rows(slice(*each, 2, 0, N), rows);
  cache.num_evicted = cache.length - max_kept;
}

/// Softmax over the keys `ids` [B, H, Tq, L] of each query, whose scores get `bias` [B, H, Tq, L].
Tensor BucketedAttention::attend_to_ids(const Heads& heads, const Tensor& ids, const Tensor& bias,
                                        double scale, const AttentionInput& input) const {
  const int64_t B = ids.extent(0), H = ids.extent(1), num_queries = ids.extent(2), L = ids.extent(3);
  kernel::AttentionParams call = params(input, scale);
  call.bias = view::reshape(bias, Shape{B * H, num_queries, 1, L});
  const Tensor q = reshape(heads.q, Shape{B * H, num_queries, 1, heads.q.extent(3)});
  const Tensor y = attention(q, rows_per_query(heads.k, ids), rows_per_query(heads.v, ids), call);
  return reshape(y, Shape{B, H, num_queries, heads.v.extent(3)});
}

/// The map [B, H, Tq, Tk] of attend_to_ids(): weights of the listed keys in their columns, 0 elsewhere.
Tensor BucketedAttention::map_of_ids(const Heads& heads, const Tensor& ids, const Tensor& bias,
                                     double scale) const {
  const int64_t rows = ids.extent(0) * ids.extent(1), num_queries = ids.extent(2), L = ids.extent(3),
                keys = heads.k.extent(2);
  const Tensor q = reshape(heads.q, Shape{rows, num_queries, 1, heads.q.extent(3)});
  const Mask mask = Mask::none().with(view::reshape(bias, Shape{rows, num_queries, 1, L}));
  const Tensor weights = softmax_map(q, rows_per_query(heads.k, ids), scale, mask, 0);
  const Tensor map = scatter_add_rows(reshape(weights, Shape{rows, num_queries, L, 1}),
                                      view::reshape(ids, Shape{rows, num_queries, L}), keys);
  return reshape(map, Shape{ids.extent(0), ids.extent(1), num_queries, keys});
}

}  // namespace heed

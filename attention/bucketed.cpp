// Tiles of buckets made, attended in, and put back in order.
#include "attention/bucketed.h"

#include "core/kernels/sort.h"
#include "core/launch.h"

namespace heed {

Tensor BucketedAttention::buckets_of(const Tensor& scores, bool both_signs, const Mask& mask, int64_t first,
                                     int64_t none) {
  const NoTape choosing;
  const Tensor buckets(Shape{scores.extent(0), scores.extent(1), scores.extent(2), scores.extent(3)},
                       DType::i32, scores.device());
  launch<kernel::Buckets>(scores.device(), contiguous(scores.detach()), both_signs, mask.key_lengths(), first,
                          static_cast<int32_t>(none), buckets);
  return buckets;
}

Tensor BucketedAttention::meet(const Heads& heads, const Tensor& buckets, const Rules& rules,
                               const Attend& call) const {
  const kernel::Meeting& m = rules.meeting;
  const Device device = heads.q.device();
  const int64_t B = heads.q.extent(0), H = heads.q.extent(1), N = heads.q.extent(2), d = heads.q.extent(3),
                dv = heads.v.extent(3), R = buckets.extent(2), E = m.window + m.tile;
  const int64_t T = (N + m.tile - 1) / m.tile + (m.by_bucket ? rules.buckets : 0);
  const Tensor& lengths = call.mask.key_lengths();
  const Tensor order(buckets.shape(), DType::i32, device);
  launch<kernel::Argsort>(device, buckets, order);
  const Tensor queries(Shape{B, H, R, T * m.tile}, DType::i32, device),
      keys(Shape{B, H, R, T, E}, DType::i32, device), slots(Shape{B, H, R * N}, DType::i32, device);
  launch<kernel::BucketTiles>(device, order, buckets, lengths, m, queries, keys, slots);
  const Tensor bias = like(heads.q, Shape{B * H, R * T, m.tile, E});
  launch<kernel::BucketBias>(device, order, buckets, lengths, m, queries, keys, bias);
  if (call.pass.probe != nullptr) {
    const Tensor ids(Shape{B, H, N, R * E}, DType::i32, device), each = like(heads.q, ids.shape());
    launch<kernel::BucketLists>(device, keys, slots, bias, ids, each);
    show(heads, ids, each, rules, call);
  }
  const Tensor of_queries = view::reshape(queries, Shape{B, H, -1}),
               of_keys = view::reshape(keys, Shape{B, H, -1});
  const Tensor q = reshape(take_rows(heads.q, of_queries), Shape{B * H, R * T, m.tile, d});
  const Tensor k = reshape(take_rows(heads.k, of_keys), Shape{B * H, R * T, E, d});
  const Tensor v = reshape(take_rows(heads.v, of_keys), Shape{B * H, R * T, E, dv});
  kernel::AttentionTerms given = terms(call, rules.scale);
  given.bias = bias;
  const Tensor tiles = reshape(attention_with_sums(q, k, v, given), Shape{B, H, R * T * m.tile, dv + 1});
  const Tensor rows = take_rows(tiles, slots);  // [B, H, R N, dv + 1]
  if (R == 1) return slice(rows, 3, 0, dv);
  const Tensor rounds = reshape(rows, Shape{B, H, R, N, dv + 1});
  const Tensor sums = transpose(reshape(slice(rounds, 4, dv, dv + 1), Shape{B, H, R, N}), 2, 3);
  const Tensor shares = reshape(transpose(softmax(sums), 2, 3), Shape{B, H, R, N, 1});
  return reshape(sum(slice(rounds, 4, 0, dv) * shares, 2), Shape{B, H, N, dv});
}

Tensor BucketedAttention::meet_recent(Heads heads, const Tensor& buckets, const Rules& rules,
                                      const Attend& call) const {
  const kernel::Meeting& m = rules.meeting;
  const int64_t B = heads.q.extent(0), H = heads.q.extent(1), asked = heads.q.extent(2),
                d = heads.q.extent(3), R = buckets.extent(2);
  heads.k = concat(std::vector<Tensor>{heads.k, cast(transpose(buckets, 2, 3), heads.k.dtype())}, 3);
  const int64_t first = recall(heads, call);
  const Tensor all = contiguous(cast(transpose(slice(heads.k, 3, d, d + R), 2, 3), DType::i32).detach());
  heads.k = slice(heads.k, 3, 0, d);
  const Tensor ids(Shape{B, H, asked, R * m.window}, DType::i32, heads.q.device()),
      bias = like(heads.q, ids.shape());
  launch<kernel::RecentInBucket>(heads.q.device(), all, first, static_cast<int32_t>(rules.buckets), m, ids,
                                 bias);
  if (call.pass.probe != nullptr) show(heads, ids, bias, rules, call);
  return listed(heads, ids, bias, rules, call);
}

namespace {

/// Rows [B, H, T, d] named by ids [B, H, Tq, L] -> [B H, Tq, L, d].
Tensor each_named(const Tensor& x, const Tensor& ids) {
  const Tensor flat = view::reshape(ids, Shape{ids.extent(0), ids.extent(1), -1});
  return reshape(take_rows(x, flat),
                 Shape{ids.extent(0) * ids.extent(1), ids.extent(2), ids.extent(3), x.extent(3)});
}

}  // namespace

Tensor BucketedAttention::listed(const Heads& heads, const Tensor& ids, const Tensor& bias,
                                 const Rules& rules, const Attend& call) const {
  const int64_t B = ids.extent(0), H = ids.extent(1), asked = ids.extent(2), L = ids.extent(3);
  kernel::AttentionTerms given = terms(call, rules.scale);
  given.bias = view::reshape(bias, Shape{B * H, asked, 1, L});
  const Tensor q = reshape(heads.q, Shape{B * H, asked, 1, heads.q.extent(3)});
  const Tensor y = attention(q, each_named(heads.k, ids), each_named(heads.v, ids), given);
  return reshape(y, Shape{B, H, asked, heads.v.extent(3)});
}

void BucketedAttention::show(const Heads& heads, const Tensor& ids, const Tensor& bias, const Rules& rules,
                             const Attend& call) const {
  const NoTape looking;
  const int64_t rows = ids.extent(0) * ids.extent(1), asked = ids.extent(2), L = ids.extent(3);
  const Tensor q = reshape(heads.q, Shape{rows, asked, 1, heads.q.extent(3)});
  const Tensor scores = matmul(q, transpose(each_named(heads.k, ids), 2, 3)) * rules.scale;
  const Tensor weights = softmax(scores + view::reshape(bias, Shape{rows, asked, 1, L}));
  const int64_t keys = heads.k.extent(2);
  const Tensor map =
      put_rows(reshape(weights, Shape{rows, asked, L, 1}), view::reshape(ids, Shape{rows, asked, L}), keys);
  call.pass.probe->see(*this, reshape(map, Shape{ids.extent(0), ids.extent(1), asked, keys}));
}

}  // namespace heed

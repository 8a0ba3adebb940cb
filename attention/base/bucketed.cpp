// Tiles of buckets made, attended in, and put back in order.
#include "attention/bucketed.h"

#include <algorithm>

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
  recall(heads, call);
  const int64_t rows = heads.k.extent(2), first = rows - asked;  // some are forgotten, the rest in order
  const Tensor all = contiguous(cast(transpose(slice(heads.k, 3, d, d + R), 2, 3), DType::i32).detach());
  heads.k = slice(heads.k, 3, 0, d);
  const Tensor ids(Shape{B, H, asked, R * m.window}, DType::i32, heads.q.device()),
      bias = like(heads.q, ids.shape());
  launch<kernel::RecentInBucket>(heads.q.device(), all, first, static_cast<int32_t>(rules.buckets), m, ids,
                                 bias);
  if (call.pass.probe != nullptr) show(heads, ids, bias, rules, call);
  Tensor y = listed(heads, ids, bias, rules, call);
  KeyValueMemory& memory = *memory_of<KeyValueMemory>(call);
  const bool history = recording() && memory.keys.node();
  if (!history && rows > 2 * R * rules.buckets * m.window) forget(memory, all, rules);
  return y;
}

void BucketedAttention::forget(KeyValueMemory& memory, const Tensor& buckets, const Rules& rules) {
  const NoTape quiet;
  const int64_t B = buckets.extent(0), H = buckets.extent(1), R = buckets.extent(2), N = buckets.extent(3);
  const std::vector<double> bucket = buckets.to_doubles();
  std::vector<uint8_t> kept(static_cast<size_t>(B * H * N), 0);
  int64_t most = 0;
  for (int64_t head = 0; head < B * H; ++head) {
    const auto own = kept.begin() + head * N;
    for (int64_t r = 0; r < R; ++r) {
      std::vector<int64_t> met(static_cast<size_t>(rules.buckets), 0);
      for (int64_t j = N; j-- > 0;) {
        const auto which = static_cast<int64_t>(bucket[static_cast<size_t>((head * R + r) * N + j)]);
        if (which < rules.buckets && met[static_cast<size_t>(which)]++ < rules.meeting.window) own[j] = 1;
      }
    }
    most = std::max<int64_t>(most, std::count(own, own + N, uint8_t{1}));
  }
  std::vector<int32_t> ids;
  for (int64_t head = 0; head < B * H; ++head) {
    // Heads keep as many each: the latest of those that are not met make up for it.
    const auto own = kept.begin() + head * N;
    auto missing = most - std::count(own, own + N, uint8_t{1});
    for (int64_t j = N; j-- > 0 && missing > 0;) {
      if (own[j] != 0) continue;
      own[j] = 1;
      --missing;
    }
    for (int64_t j = 0; j < N; ++j) {
      if (own[j] != 0) ids.push_back(static_cast<int32_t>(j));
    }
  }
  const Tensor rows = Tensor::of<int32_t>(ids, Shape{B, H, most}, buckets.device());
  for (Tensor* each : {&memory.keys, &memory.values}) *each = take_rows(slice(*each, 2, 0, N), rows);
  memory.forgotten = memory.length - most;
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

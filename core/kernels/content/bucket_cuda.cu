// Attention within buckets on a GPU: tiles by a scan over sorted tokens, all else by one warp per row.
#include "heed/core/kernels/content/bucket.h"

#include <algorithm>
#include <cmath>

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/cuda/device/warp_argmax.h"
#include "heed/core/kernels/content/bucket_rounds.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// buckets[row] = argmax of scores[row, :], or of [x, -x] with `both_signs`; `none` at or past the length.
/// One warp per row (b, h, r, t); lanes share the f scores.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    find_buckets(const T* scores, int64_t num_rows, int64_t f, bool both_signs, const int32_t* lengths,
                 int64_t first, int64_t N, int64_t rows_per_sequence, int32_t none, int32_t* buckets) {
  const int64_t row = cuda::grid_warp();
  if (row >= num_rows) return;
  const T* x = scores + row * f;
  int64_t bucket = none;
  if (lengths == nullptr || first + row % N < lengths[row / rows_per_sequence]) {
    bucket = cuda::warp_argmax<T>(f, [x](int64_t i) { return x[i]; });
    const int64_t low = both_signs ? cuda::warp_argmax<T>(f, [x](int64_t i) { return -x[i]; }) : 0;
    if (both_signs && -x[low] > x[bucket]) bucket = f + low;
  }
  if (cuda::lane() == 0) buckets[row] = static_cast<int32_t>(bucket);
}

/// Inclusive scan by f over the threads of a block: f of the numbers of all threads up to this one; `total`
/// becomes that of all threads. scratch holds one number per warp.
template <class F>
__device__ int block_scan(int x, int* scratch, int& total, F f) {
  for (int offset = 1; offset < cuda::lanes; offset *= 2) {
    const int other = __shfl_up_sync(cuda::all_lanes, x, static_cast<unsigned>(offset));
    if (cuda::lane() >= offset) x = f(other, x);
  }
  const int warp = static_cast<int>(threadIdx.x) / cuda::lanes, num_warps = cuda::block / cuda::lanes;
  __syncthreads();
  if (cuda::lane() == cuda::lanes - 1) scratch[warp] = x;
  __syncthreads();
  for (int w = warp - 1; w >= 0; --w) x = f(scratch[w], x);
  total = scratch[0];
  for (int w = 1; w < num_warps; ++w) total = f(total, scratch[w]);
  return x;
}

/// Tiles of round r that keep to buckets: every `tile` tokens of a bucket, in sorted order, are the queries
/// of a tile; its keys are up to `window` tokens of the bucket before them, then the queries themselves. One
/// block scans a round of a head, one thread per sorted token.
__global__ void __launch_bounds__(cuda::block) fill_by_bucket(BucketRounds rounds, BucketTileView tiles) {
  __shared__ int scratch[cuda::lanes];
  const int64_t head = blockIdx.x / rounds.R, r = blockIdx.x % rounds.R, num_tokens = rounds.num_tokens(head);
  const int32_t* tokens = rounds.tokens(head, r);
  int bucket_begin = 0, num_tiles = 0;  // place where the current bucket begins, and tiles so far
  for (int64_t from = 0; from < num_tokens; from += cuda::block) {
    const int64_t place = from + threadIdx.x;
    const bool is_token = place < num_tokens;
    const bool starts_bucket = is_token && rounds.starts_bucket(head, r, place);
    int last_begin = 0, new_tiles = 0;
    const int begin = block_scan(starts_bucket ? static_cast<int>(place) : bucket_begin, scratch, last_begin,
                                 [](int a, int b) { return a > b ? a : b; });
    const int64_t rank = place - begin, lane = rank % tiles.tile;
    const bool starts_tile = is_token && lane == 0;
    const int64_t t = num_tiles - 1 +
                      block_scan(starts_tile ? 1 : 0, scratch, new_tiles, [](int a, int b) { return a + b; });
    bucket_begin = last_begin;
    num_tiles += new_tiles;
    if (!is_token) continue;
    int32_t* const keys = tiles.keys_of(head, r, t);
    if (starts_tile) {
      const int64_t num_before = std::min(rank, tiles.window);
      for (int64_t e = 0; e < num_before; ++e)
        keys[tiles.window - num_before + e] = tokens[place - num_before + e];
    }
    keys[tiles.window + lane] = tokens[place];
    tiles.set_query(head, r, t, lane, tokens[place]);
  }
}

/// Tiles of round r that are chunks of the sorted tokens: tile t has chunk t as queries, and the chunk before
/// it and itself as keys. Before chunk 0 comes the last chunk of round r, or with `ring` of the round before.
/// One warp per tile; lanes are tokens of a chunk.
__global__ void __launch_bounds__(cuda::block)
    fill_chunks(BucketRounds rounds, BucketTileView tiles, bool ring) {
  const int64_t warp = cuda::grid_warp(), t = warp % tiles.T, r = warp / tiles.T % rounds.R,
                head = warp / tiles.T / rounds.R;
  if (head >= rounds.num_heads) return;
  const int64_t chunk_size = tiles.tile, num_tokens = rounds.num_tokens(head),
                last_chunk = (num_tokens - 1) / chunk_size;
  if (num_tokens == 0 || t > last_chunk) return;
  const int64_t chunk_before = t > 0 ? t - 1 : last_chunk;
  const int32_t *tokens_before = rounds.tokens(head, rounds.round_before(r, t, ring)),
                *tokens = rounds.tokens(head, r);
  int32_t* const keys = tiles.keys_of(head, r, t);
  for (int64_t e = cuda::lane(); e < chunk_size; e += cuda::lanes) {
    if (chunk_before * chunk_size + e < num_tokens) keys[e] = tokens_before[chunk_before * chunk_size + e];
    const int64_t place = t * chunk_size + e;
    if (place >= num_tokens) continue;
    keys[chunk_size + e] = tokens[place];
    tiles.set_query(head, r, t, e, tokens[place]);
  }
}

__global__ void __launch_bounds__(cuda::block) fill(int32_t* to, int64_t count, int32_t value) {
  for (int64_t i = cuda::global_thread(); i < count; i += cuda::grid_size()) to[i] = value;
}

/// places [heads, R, N]: the place of each token in the sorted order of each round. One thread per place.
__global__ void __launch_bounds__(cuda::block) find_places(BucketRounds rounds, int32_t* places) {
  const int64_t count = rounds.num_heads * rounds.R * rounds.N;
  for (int64_t i = cuda::global_thread(); i < count; i += cuda::grid_size())
    places[i / rounds.N * rounds.N + rounds.order[i]] = static_cast<int32_t>(i % rounds.N);
}

/// The queries [heads, R T tile] of all tiles, each a row, and their keys [heads, R T, width].
struct TileRows {
  int64_t num_rows, rows_per_head, width;
  const int32_t *queries, *keys;
};

/// sees_other[head, r, token]: the token sees another one in this round. One warp per query of a tile; lanes
/// are keys.
__global__ void __launch_bounds__(cuda::block)
    find_others(BucketRounds rounds, BucketWindow bucket_window, TileRows rows, uint8_t* sees_other) {
  const int64_t row = cuda::grid_warp();
  if (row >= rows.num_rows) return;
  const int64_t head = row / rows.rows_per_head, lane = row % bucket_window.tile,
                r = row % rows.rows_per_head / (rows.rows_per_head / rounds.R);
  const int32_t query = rows.queries[row];
  const int32_t* keys = rows.keys + row / bucket_window.tile * rows.width;
  bool found = false;
  for (int64_t e = cuda::lane(); e < rows.width; e += cuda::lanes)
    found = found || (keys[e] != query && sees_key(bucket_window, lane, query, e, keys[e]));
  const bool found_by_any = __any_sync(cuda::all_lanes, found ? 1 : 0) != 0;
  if (cuda::lane() == 0 && query >= 0)
    sees_other[(head * rounds.R + r) * rounds.N + query] = static_cast<uint8_t>(found_by_any ? 1 : 0);
}

/// bias[row, e] = 0 or -log(times seen) where the query of this row sees key e of its tile, else -inf. One
/// warp per query of a tile; lanes are keys.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    make_bias(BucketRounds rounds, BucketWindow bucket_window, TileRows rows, const int32_t* places,
              const uint8_t* sees_other, T* bias) {
  const int64_t row = cuda::grid_warp();
  if (row >= rows.num_rows) return;
  const int64_t head = row / rows.rows_per_head, lane = row % bucket_window.tile;
  const int32_t query = rows.queries[row];
  const int32_t* keys = rows.keys + row / bucket_window.tile * rows.width;
  bool hides_self = false;
  for (int64_t r = 0; r < rounds.R && bucket_window.not_self && query >= 0; ++r)
    hides_self = hides_self || sees_other[(head * rounds.R + r) * rounds.N + query] != 0;
  for (int64_t e = cuda::lane(); e < rows.width; e += cuda::lanes) {
    const bool is_seen =
        sees_key(bucket_window, lane, query, e, keys[e]) && !(hides_self && keys[e] == query);
    T value = is_seen ? T(0) : minus_infinity<T>;
    if (is_seen && bucket_window.once)
      value = -std::log(static_cast<T>(times_seen(rounds, bucket_window, places, head, query, keys[e])));
    bias[row * rows.width + e] = value;
  }
}

/// ids and bias of token i in round r: the keys of the tile with this token as a query and its row of the
/// bias, -1 and -inf where it is in no tile. One warp per (head, i, r); lanes are keys.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    list_keys(const int32_t* keys, const int32_t* slots, const T* tile_bias, int64_t heads, int64_t N,
              int64_t R, int64_t width, int64_t tile, int64_t keys_per_head, int32_t* ids, T* bias) {
  const int64_t row = cuda::grid_warp(), r = row % R, i = row / R % N, head = row / R / N;
  if (head >= heads) return;
  const int32_t slot = slots[(head * R + r) * N + i];
  for (int64_t e = cuda::lane(); e < width; e += cuda::lanes) {
    ids[row * width + e] = slot < 0 ? -1 : keys[head * keys_per_head + slot / tile * width + e];
    bias[row * width + e] =
        slot < 0 ? minus_infinity<T> : tile_bias[head * keys_per_head * tile + slot * width + e];
  }
}

/// ids and bias [R window] of one query, by one warp: for each round the last `window` tokens up to it that
/// share its bucket, latest first, -1 for none. The bias is -inf where the query does not see the token, else
/// 0, or with `once` minus the log of how often the token is listed. Lanes test 32 earlier tokens at a time.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    find_recent(const int32_t* buckets, int64_t num_rows, int64_t queries, int64_t R, int64_t N,
                int64_t first, int32_t none, BucketWindow bucket_window, int32_t* ids, T* bias) {
  const int64_t row = cuda::grid_warp();
  if (row >= num_rows) return;
  const int64_t query = first + row % queries, width = R * bucket_window.window;
  ids += row * width;
  bias += row * width;
  for (int64_t e = cuda::lane(); e < width; e += cuda::lanes) {
    ids[e] = -1;
    bias[e] = minus_infinity<T>;
  }
  __syncwarp();
  bool sees_other = false;
  for (int64_t r = 0; r < R; ++r) {
    const int32_t* bucket = buckets + (row / queries * R + r) * N;
    if (bucket[query] == none) return;
    int64_t num_found = 0;
    for (int64_t from = query; from >= 0 && num_found < bucket_window.window; from -= cuda::lanes) {
      const int64_t j = from - cuda::lane();
      const bool same_bucket = j >= 0 && bucket[j] == bucket[query];
      int num_of_warp = 0;
      const int64_t rank = num_found + cuda::warp_rank(same_bucket, num_of_warp);
      const bool is_listed = same_bucket && rank < bucket_window.window;
      if (is_listed) ids[r * bucket_window.window + rank] = static_cast<int32_t>(j);
      sees_other = sees_other || __any_sync(cuda::all_lanes, is_listed && j != query ? 1 : 0) != 0;
      num_found += num_of_warp;
    }
  }
  __syncwarp();
  for (int64_t e = cuda::lane(); e < width; e += cuda::lanes) {
    if (ids[e] < 0 || (bucket_window.not_self && sees_other && ids[e] == query)) continue;
    int64_t times = 0;
    for (int64_t other = 0; other < width && bucket_window.once; ++other)
      times += ids[other] == ids[e] ? 1 : 0;
    bias[e] = bucket_window.once ? -std::log(static_cast<T>(times)) : T(0);
  }
}

/// bias[row, j] = 0 where keys[group, j] is a key and, when `causal`, not after the query of this row; else
/// -inf. One warp per row (group, query i < n); lanes are the m keys of the group.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    group_bias(const int32_t* queries, const int32_t* keys, int64_t num_rows, int64_t n,
               int64_t queries_per_group, int64_t m, bool causal, T* bias) {
  const int64_t row = cuda::grid_warp();
  if (row >= num_rows) return;
  const int32_t* key = keys + row / n * m;
  const int32_t last_key =
      causal ? queries[row / n * queries_per_group + row % n] : std::numeric_limits<int32_t>::max();
  for (int64_t j = cuda::lane(); j < m; j += cuda::lanes)
    bias[row * m + j] = key[j] >= 0 && key[j] <= last_key ? T(0) : minus_infinity<T>;
}

void clear(const Tensor& ids) {
  cuda::run(fill, cuda::grid_over(ids.size()), ids.data<int32_t>(), ids.size(), -1);
}

}  // namespace

void Buckets::cuda(const Tensor& scores, bool both_signs, const Tensor& lengths, int64_t first, int32_t none,
                   const Tensor& buckets) {
  const int64_t rows_per_sequence = buckets.size() / std::max<int64_t>(1, scores.extent(0));
  visit_float("buckets", scores.dtype(), [&]<class T>(Type<T>) {
    cuda::run(find_buckets<T>, cuda::warp_per_row(buckets.size()), scores.data<T>(), buckets.size(),
              scores.extent(-1), both_signs, cuda::pointer<int32_t>(lengths), first, scores.extent(3),
              rows_per_sequence, none, buckets.data<int32_t>());
  });
  Count::add(scores.size());
}

/// Fills queries, keys and slots with -1, then the tiles: by one block per round of a head where tiles keep
/// to buckets, else by one warp per tile.
void BucketTiles::cuda(const BucketOrder& sorted, const BucketWindow& bucket_window, const Tensor& queries,
                       const Tensor& keys, const Tensor& slots) {
  const BucketRounds rounds(sorted);
  const BucketTileView tiles(rounds, bucket_window, queries, keys, slots);
  clear(queries);
  clear(keys);
  clear(slots);
  if (bucket_window.by_bucket)
    cuda::run(fill_by_bucket, cuda::block_per_row(rounds.num_heads * rounds.R), rounds, tiles);
  else
    cuda::run(fill_chunks, cuda::warp_per_row(rounds.num_heads * rounds.R * tiles.T), rounds, tiles,
              bucket_window.ring);
  Count::add(keys.size());
}

/// bias of the queries of all tiles, one warp per query. Before it, the places of tokens in each round for
/// `once`, and which tokens see another one for `not_self`.
void BucketBias::cuda(const BucketOrder& sorted, const BucketWindow& bucket_window, const Tensor& queries,
                      const Tensor& keys, const Tensor& bias) {
  const BucketRounds rounds(sorted);
  const TileRows rows{queries.size(), queries.size() / std::max<int64_t>(rounds.num_heads, 1), keys.extent(4),
                      queries.data<int32_t>(), keys.data<int32_t>()};
  const Tensor places(Shape{bucket_window.once ? sorted.order.size() : 0}, DType::i32, Device::cuda);
  const Tensor sees_other(Shape{bucket_window.not_self ? sorted.order.size() : 0}, DType::u8, Device::cuda);
  if (bucket_window.once)
    cuda::run(find_places, cuda::grid_over(sorted.order.size()), rounds, places.data<int32_t>());
  if (bucket_window.not_self) {
    cuda::run(find_others, cuda::warp_per_row(rows.num_rows), rounds, bucket_window, rows,
              sees_other.data<uint8_t>());
  }
  visit_float("bucket_bias", bias.dtype(), [&]<class T>(Type<T>) {
    cuda::run(make_bias<T>, cuda::warp_per_row(rows.num_rows), rounds, bucket_window, rows,
              places.data<int32_t>(), sees_other.data<uint8_t>(), bias.data<T>());
  });
  Count::add(bias.size());
}

/// ids and bias [B, H, N, R E] of each token, by one warp for each token and round.
void BucketLists::cuda(const Tensor& keys, const Tensor& slots, const Tensor& tile_bias, const Tensor& ids,
                       const Tensor& bias) {
  const int64_t R = keys.extent(2), width = keys.extent(4), N = ids.extent(2);
  const int64_t heads = keys.extent(0) * keys.extent(1),
                keys_per_head = keys.size() / std::max<int64_t>(heads, 1);
  visit_float("bucket_lists", bias.dtype(), [&]<class T>(Type<T>) {
    cuda::run(list_keys<T>, cuda::warp_per_row(heads * N * R), keys.data<int32_t>(), slots.data<int32_t>(),
              tile_bias.data<T>(), heads, N, R, width, tile_bias.extent(2), keys_per_head,
              ids.data<int32_t>(), bias.data<T>());
  });
  Count::add(ids.size());
}

void RecentInBucket::cuda(const Tensor& buckets, int64_t first, int32_t none,
                          const BucketWindow& bucket_window, const Tensor& ids, const Tensor& bias) {
  const int64_t rows = ids.size() / std::max<int64_t>(ids.extent(3), 1);
  visit_float("recent_in_bucket", bias.dtype(), [&]<class T>(Type<T>) {
    cuda::run(find_recent<T>, cuda::warp_per_row(rows), buckets.data<int32_t>(), rows, ids.extent(2),
              buckets.extent(2), buckets.extent(3), first, none, bucket_window, ids.data<int32_t>(),
              bias.data<T>());
  });
  Count::add(ids.size());
}

void GroupBias::cuda(const Tensor& queries, const Tensor& keys, bool causal, const Tensor& bias) {
  const int64_t m = bias.extent(4), rows = bias.size() / std::max<int64_t>(m, 1);
  visit_float("group_bias", bias.dtype(), [&]<class T>(Type<T>) {
    cuda::run(group_bias<T>, cuda::warp_per_row(rows), queries.data<int32_t>(), keys.data<int32_t>(), rows,
              bias.extent(3), queries.extent(3), m, causal, bias.data<T>());
  });
  Count::add(bias.size());
}

}  // namespace heed::kernel

// Attention within buckets on a GPU: tiles by a scan over sorted tokens, all else by one warp per row.
#include "heed/core/kernels/content/bucket.h"

#include <algorithm>
#include <cmath>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/cuda/device/warp_argmax.h"
#include "heed/core/kernels/content/bucket_rounds.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// buckets[row] = argmax of scores[row, :], or of [x, -x] with `both_signs`; `none` at or past the length.
/// One warp per row (b, h, r, i); lanes share the f scores.
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
    const int64_t lowest = both_signs ? cuda::warp_argmax<T>(f, [x](int64_t i) { return -x[i]; }) : 0;
    if (both_signs && -x[lowest] > x[bucket]) bucket = f + lowest;
  }
  if (cuda::lane() == 0) buckets[row] = static_cast<int32_t>(bucket);
}

/// Inclusive scan over the threads of a block: returns combine() of the numbers x of all threads up to this
/// one; `total` becomes combine() of all threads' numbers. scratch holds one number per warp.
template <class Combine>
__device__ int block_scan(int x, int* scratch, int& total, Combine combine) {
  for (int offset = 1; offset < cuda::lanes; offset *= 2) {
    const int of_earlier_lane = __shfl_up_sync(cuda::all_lanes, x, static_cast<unsigned>(offset));
    if (cuda::lane() >= offset) x = combine(of_earlier_lane, x);
  }
  const int warp = static_cast<int>(threadIdx.x) / cuda::lanes, num_warps = cuda::block / cuda::lanes;
  __syncthreads();
  if (cuda::lane() == cuda::lanes - 1) scratch[warp] = x;
  __syncthreads();
  for (int w = warp - 1; w >= 0; --w) x = combine(scratch[w], x);
  total = scratch[0];
  for (int w = 1; w < num_warps; ++w) total = combine(total, scratch[w]);
  return x;
}

/// Tiles of round r that keep to buckets: every queries_per_tile tokens of a bucket, in sorted order, are the
/// queries of a tile; its keys are up to `window` tokens of the bucket before them, then the queries
/// themselves. One block scans a round of a head, one thread per sorted token.
__global__ void __launch_bounds__(cuda::block) fill_by_bucket(BucketRounds rounds, BucketTileView tiles) {
  __shared__ int scratch[cuda::lanes];
  const int64_t head = blockIdx.x / rounds.R, r = blockIdx.x % rounds.R, num_tokens = rounds.num_tokens(head);
  const int32_t* tokens = rounds.tokens(head, r);
  // Place where the last bucket before first_place begins, and number of tiles before it.
  int last_bucket_begin = 0, num_tiles = 0;
  for (int64_t first_place = 0; first_place < num_tokens; first_place += cuda::block) {
    const int64_t place = first_place + threadIdx.x;
    const bool is_token = place < num_tokens;
    const bool starts_bucket = is_token && rounds.starts_bucket(head, r, place);
    int max_begin = 0, num_new_tiles = 0;
    const int bucket_begin = block_scan(starts_bucket ? static_cast<int>(place) : last_bucket_begin, scratch,
                                        max_begin, [](int a, int b) { return a > b ? a : b; });
    const int64_t rank_in_bucket = place - bucket_begin,
                  query_in_tile = rank_in_bucket % tiles.queries_per_tile;
    const bool starts_tile = is_token && query_in_tile == 0;
    const int64_t tile =
        num_tiles - 1 +
        block_scan(starts_tile ? 1 : 0, scratch, num_new_tiles, [](int a, int b) { return a + b; });
    last_bucket_begin = max_begin;
    num_tiles += num_new_tiles;
    if (!is_token) continue;
    int32_t* const keys = tiles.keys_of_tile(head, r, tile);
    if (starts_tile) {
      const int64_t num_before = std::min(rank_in_bucket, tiles.window);
      for (int64_t e = 0; e < num_before; ++e)
        keys[tiles.window - num_before + e] = tokens[place - num_before + e];
    }
    keys[tiles.window + query_in_tile] = tokens[place];
    tiles.set_query(head, r, tile, query_in_tile, tokens[place]);
  }
}

/// Tiles of round r that are chunks of the sorted tokens: tile n has chunk n as queries, and the chunk before
/// it and itself as keys. Before chunk 0 comes the last chunk of round r or of the previous round. One warp
/// per tile; lanes are tokens of a chunk.
__global__ void __launch_bounds__(cuda::block)
    fill_chunks(BucketRounds rounds, BucketTileView tiles, bool wraps_to_previous_round) {
  const int64_t warp = cuda::grid_warp(), chunk = warp % tiles.tiles_per_round,
                r = warp / tiles.tiles_per_round % rounds.R, head = warp / tiles.tiles_per_round / rounds.R;
  if (head >= rounds.num_heads) return;
  const int64_t chunk_size = tiles.queries_per_tile, num_tokens = rounds.num_tokens(head),
                num_chunks = ceil_div(num_tokens, chunk_size);
  if (chunk >= num_chunks) return;
  const int64_t begin = chunk * chunk_size,
                begin_before = ((chunk > 0 ? chunk : num_chunks) - 1) * chunk_size;
  const int32_t *tokens = rounds.tokens(head, r),
                *tokens_before =
                    rounds.tokens(head, rounds.round_of_chunk_before(r, chunk, wraps_to_previous_round));
  int32_t* const keys = tiles.keys_of_tile(head, r, chunk);
  for (int64_t e = cuda::lane(); e < chunk_size; e += cuda::lanes) {
    if (begin_before + e < num_tokens) keys[e] = tokens_before[begin_before + e];
    if (begin + e >= num_tokens) continue;
    keys[chunk_size + e] = tokens[begin + e];
    tiles.set_query(head, r, chunk, e, tokens[begin + e]);
  }
}

/// ids[i] = -1. One thread per number.
__global__ void __launch_bounds__(cuda::block) fill_none(int32_t* ids, int64_t count) {
  for (int64_t i = cuda::global_thread(); i < count; i += cuda::grid_size()) ids[i] = -1;
}

/// places [heads, R, N]: the place of each token in the sorted order of each round. One thread per place.
__global__ void __launch_bounds__(cuda::block) find_places(BucketRounds rounds, int32_t* places) {
  const int64_t count = rounds.num_heads * rounds.R * rounds.N;
  for (int64_t i = cuda::global_thread(); i < count; i += cuda::grid_size())
    places[i / rounds.N * rounds.N + rounds.order[i]] = static_cast<int32_t>(i % rounds.N);
}

/// sees_other[head, r, token] = 1 where the token sees another one in round r. One warp per query of a tile;
/// lanes are keys.
__global__ void __launch_bounds__(cuda::block)
    find_others(BucketRounds rounds, BucketWindow bucket_window, BucketTileView tiles, uint8_t* sees_other) {
  const int64_t row = cuda::grid_warp();
  if (row >= tiles.num_rows) return;
  const int32_t query = tiles.queries[row], *keys = tiles.keys_of_row(row);
  bool found = false;
  for (int64_t e = cuda::lane(); e < tiles.keys_per_tile; e += cuda::lanes)
    found =
        found || (keys[e] != query && sees_key(bucket_window, tiles.query_in_tile(row), query, e, keys[e]));
  const bool found_by_any = __any_sync(cuda::all_lanes, found ? 1 : 0) != 0;
  if (cuda::lane() == 0 && query >= 0)
    sees_other[rounds.index(tiles.head(row), tiles.round(row), query)] =
        static_cast<uint8_t>(found_by_any ? 1 : 0);
}

/// bias[row, e] = 0 or -log(times seen) where the query of this row sees key e of its tile, else -inf. One
/// warp per query of a tile; lanes are keys.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    make_bias(BucketRounds rounds, BucketWindow bucket_window, BucketTileView tiles, const int32_t* places,
              const uint8_t* sees_other, T* bias) {
  const int64_t row = cuda::grid_warp();
  if (row >= tiles.num_rows) return;
  const int64_t head = tiles.head(row);
  const int32_t query = tiles.queries[row], *keys = tiles.keys_of_row(row);
  const bool hides_self =
      bucket_window.hides_self && query >= 0 && rounds.in_any_round(sees_other, head, query);
  for (int64_t e = cuda::lane(); e < tiles.keys_per_tile; e += cuda::lanes) {
    const bool is_seen = sees_key(bucket_window, tiles.query_in_tile(row), query, e, keys[e]) &&
                         !(hides_self && keys[e] == query);
    T key_bias = is_seen ? T(0) : minus_infinity<T>;
    if (is_seen && bucket_window.counts_keys_once)
      key_bias = -std::log(static_cast<T>(times_seen(rounds, bucket_window, places, head, query, keys[e])));
    bias[row * tiles.keys_per_tile + e] = key_bias;
  }
}

/// ids and bias [heads, N, R, E], E = keys_per_tile. In round r token i is a query of at most one tile, whose
/// keys are copied with the query's row of tile_bias; -1 and -inf where it is of none. slots [heads, R, N]
/// has the token's index among the queries of all tiles of its head, -1 for none. One warp per (head, i, r);
/// lanes are keys.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    list_keys(BucketListShape shape, const int32_t* keys, const int32_t* slots, const T* tile_bias,
              int32_t* ids, T* bias) {
  const int64_t row = cuda::grid_warp(), r = row % shape.R, i = row / shape.R % shape.N,
                head = row / shape.R / shape.N, width = shape.keys_per_tile;
  if (head >= shape.num_heads) return;
  const int64_t slot = slots[(head * shape.R + r) * shape.N + i];
  for (int64_t e = cuda::lane(); e < width; e += cuda::lanes) {
    ids[row * width + e] = slot < 0 ? -1 : keys[shape.tile_keys(head, slot) + e];
    bias[row * width + e] = slot < 0 ? minus_infinity<T> : tile_bias[shape.bias_row(head, slot) + e];
  }
}

/// ids and bias [R window] of one query, by one warp: for each round the last `window` tokens up to it that
/// share its bucket, latest first, -1 for none. The bias is -inf where the query does not see the token, else
/// 0, or with counts_keys_once minus the log of how often the token is listed. Lanes test 32 earlier tokens
/// at a time. buckets [heads, R, N].
template <class T>
__global__ void __launch_bounds__(cuda::block)
    find_recent(const int32_t* buckets, int64_t num_rows, int64_t queries_per_head, int64_t R, int64_t N,
                int64_t first, int32_t none, BucketWindow bucket_window, int32_t* ids, T* bias) {
  const int64_t row = cuda::grid_warp();
  if (row >= num_rows) return;
  const int64_t query = first + row % queries_per_head, width = R * bucket_window.window;
  ids += row * width;
  bias += row * width;
  for (int64_t e = cuda::lane(); e < width; e += cuda::lanes) {
    ids[e] = -1;
    bias[e] = minus_infinity<T>;
  }
  __syncwarp();
  bool sees_other = false;
  for (int64_t r = 0; r < R; ++r) {
    const int32_t* bucket = buckets + (row / queries_per_head * R + r) * N;
    if (bucket[query] == none) return;
    int64_t num_found = 0;
    for (int64_t last = query; last >= 0 && num_found < bucket_window.window; last -= cuda::lanes) {
      const int64_t j = last - cuda::lane();
      const bool same_bucket = j >= 0 && bucket[j] == bucket[query];
      int num_in_warp = 0;
      const int64_t rank = num_found + cuda::warp_rank(same_bucket, num_in_warp);
      const bool is_listed = same_bucket && rank < bucket_window.window;
      if (is_listed) ids[r * bucket_window.window + rank] = static_cast<int32_t>(j);
      sees_other = sees_other || __any_sync(cuda::all_lanes, is_listed && j != query ? 1 : 0) != 0;
      num_found += num_in_warp;
    }
  }
  __syncwarp();
  for (int64_t e = cuda::lane(); e < width; e += cuda::lanes) {
    if (ids[e] < 0 || (bucket_window.hides_self && sees_other && ids[e] == query)) continue;
    int64_t times_listed = 0;
    for (int64_t n = 0; n < width && bucket_window.counts_keys_once; ++n)
      times_listed += ids[n] == ids[e] ? 1 : 0;
    bias[e] = bucket_window.counts_keys_once ? -std::log(static_cast<T>(times_listed)) : T(0);
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
  const int32_t* group_keys = keys + row / n * m;
  const int32_t last_visible =
      causal ? queries[row / n * queries_per_group + row % n] : std::numeric_limits<int32_t>::max();
  for (int64_t j = cuda::lane(); j < m; j += cuda::lanes)
    bias[row * m + j] = group_keys[j] >= 0 && group_keys[j] <= last_visible ? T(0) : minus_infinity<T>;
}

}  // namespace

/// Computes buckets with one warp per row of scores.
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
  for (const Tensor& ids : {queries, keys, slots})
    cuda::run(fill_none, cuda::grid_over(ids.size()), ids.data<int32_t>(), ids.size());
  if (bucket_window.by_bucket)
    cuda::run(fill_by_bucket, cuda::block_per_row(rounds.num_heads * rounds.R), rounds, tiles);
  else
    cuda::run(fill_chunks, cuda::warp_per_row(rounds.num_heads * rounds.R * tiles.tiles_per_round), rounds,
              tiles, bucket_window.wraps_to_previous_round);
  Count::add(keys.size());
}

/// bias of the queries of all tiles, one warp per query. Computes before it the places of tokens in each
/// round for counts_keys_once, and which tokens see another one for hides_self.
void BucketBias::cuda(const BucketOrder& sorted, const BucketWindow& bucket_window, const Tensor& queries,
                      const Tensor& keys, const Tensor& bias) {
  const BucketRounds rounds(sorted);
  const BucketTileView tiles(rounds, bucket_window, queries, keys);
  const int64_t size = sorted.order.size();
  const Tensor places(Shape{bucket_window.counts_keys_once ? size : 0}, DType::i32, Device::cuda);
  const Tensor sees_other(Shape{bucket_window.hides_self ? size : 0}, DType::u8, Device::cuda);
  if (bucket_window.counts_keys_once)
    cuda::run(find_places, cuda::grid_over(size), rounds, places.data<int32_t>());
  if (bucket_window.hides_self) {
    cuda::run(find_others, cuda::warp_per_row(tiles.num_rows), rounds, bucket_window, tiles,
              sees_other.data<uint8_t>());
  }
  visit_float("bucket_bias", bias.dtype(), [&]<class T>(Type<T>) {
    cuda::run(make_bias<T>, cuda::warp_per_row(tiles.num_rows), rounds, bucket_window, tiles,
              places.data<int32_t>(), sees_other.data<uint8_t>(), bias.data<T>());
  });
  Count::add(bias.size());
}

/// ids and bias [B, H, N, R E] of each token, by one warp for each token and round.
void BucketLists::cuda(const Tensor& keys, const Tensor& slots, const Tensor& tile_bias, const Tensor& ids,
                       const Tensor& bias) {
  const BucketListShape shape(keys, tile_bias, ids);
  visit_float("bucket_lists", bias.dtype(), [&]<class T>(Type<T>) {
    cuda::run(list_keys<T>, cuda::warp_per_row(shape.num_heads * shape.N * shape.R), shape,
              keys.data<int32_t>(), slots.data<int32_t>(), tile_bias.data<T>(), ids.data<int32_t>(),
              bias.data<T>());
  });
  Count::add(ids.size());
}

/// Computes ids and bias with one warp per query.
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

/// Computes bias with one warp per query of a group.
void GroupBias::cuda(const Tensor& queries, const Tensor& keys, bool causal, const Tensor& bias) {
  const int64_t m = bias.extent(4), rows = bias.size() / std::max<int64_t>(m, 1);
  visit_float("group_bias", bias.dtype(), [&]<class T>(Type<T>) {
    cuda::run(group_bias<T>, cuda::warp_per_row(rows), queries.data<int32_t>(), keys.data<int32_t>(), rows,
              bias.extent(3), queries.extent(3), m, causal, bias.data<T>());
  });
  Count::add(bias.size());
}

}  // namespace heed::kernel

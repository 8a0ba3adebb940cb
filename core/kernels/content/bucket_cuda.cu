// Attention within buckets on a GPU: tiles by a scan over sorted tokens, all else by one warp per row.
#include "heed/core/kernels/content/bucket.h"

#include <algorithm>
#include <cmath>

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// The first of the largest (sign 1) or least (sign -1) numbers of a row; every lane gets it.
template <class T>
__device__ int64_t peak(const T* row, int64_t n, T sign) {
  T most = cuda::lowest<T>();
  int64_t place = n;
  for (int64_t i = cuda::lane(); i < n; i += cuda::lanes) {
    if (place < n && !(sign * row[i] > most)) continue;
    most = sign * row[i];
    place = i;
  }
  for (int gap = cuda::lanes / 2; gap > 0; gap /= 2) {
    const T other = __shfl_xor_sync(cuda::all_lanes, most, gap);
    const int64_t at = __shfl_xor_sync(cuda::all_lanes, place, gap);
    if (other > most || (other == most && at < place)) {
      most = other;
      place = at;
    }
  }
  return place;
}

/// buckets[row] = argmax of scores[row, :], or of [x, -x] with `both_signs`; `none` at or past the length.
/// One warp per row (b, h, r, t).
template <class T>
__global__ void __launch_bounds__(cuda::block)
    find_buckets(const T* scores, int64_t rows, int64_t f, bool both_signs, const int32_t* lengths,
                 int64_t first, int64_t N, int64_t a_sequence, int32_t none, int32_t* buckets) {
  const int64_t row = cuda::grid_warp();
  if (row >= rows) return;
  const T* of = scores + row * f;
  int64_t found = none;
  if (lengths == nullptr || first + row % N < lengths[row / a_sequence]) {
    found = peak(of, f, T(1));
    const int64_t low = both_signs ? peak(of, f, T(-1)) : 0;
    if (both_signs && -of[low] > of[found]) found = f + low;
  }
  if (cuda::lane() == 0) buckets[row] = static_cast<int32_t>(found);
}

/// The rounds of all heads.
struct Rounds {
  int64_t heads, a_batch, R, N;  // a_batch: heads of one sequence
  const int32_t *order, *buckets, *lengths;

  explicit Rounds(const BucketOrder& sorted)
      : heads(sorted.order.extent(0) * sorted.order.extent(1)),
        a_batch(sorted.order.extent(1)),
        R(sorted.order.extent(2)),
        N(sorted.order.extent(3)),
        order(sorted.order.data<int32_t>()),
        buckets(sorted.buckets.data<int32_t>()),
        lengths(cuda::pointer<int32_t>(sorted.lengths)) {}

  __device__ int64_t real(int64_t head) const {
    return lengths != nullptr ? std::clamp<int64_t>(lengths[head / a_batch], 0, N) : N;
  }
  __device__ const int32_t* tokens(int64_t head, int64_t r) const { return order + (head * R + r) * N; }
  __device__ int32_t bucket(int64_t head, int64_t r, int32_t token) const {
    return buckets[(head * R + r) * N + token];
  }
};

/// Tiles as they are filled.
struct Tiles {
  int64_t T, tile, window, of_queries, of_keys, of_slots;  // of a head
  int32_t *queries, *keys, *slots;
};

/// The largest (or the sum) of the numbers of the threads up to this one, and of all.
template <class F>
__device__ int scan(int x, int* scratch, int& all, F f) {
  for (int gap = 1; gap < cuda::lanes; gap *= 2) {
    const int other = __shfl_up_sync(cuda::all_lanes, x, static_cast<unsigned>(gap));
    if (cuda::lane() >= gap) x = f(other, x);
  }
  const int own = static_cast<int>(threadIdx.x) / cuda::lanes, warps = cuda::block / cuda::lanes;
  __syncthreads();
  if (cuda::lane() == cuda::lanes - 1) scratch[own] = x;
  __syncthreads();
  for (int w = own - 1; w >= 0; --w) x = f(scratch[w], x);
  all = scratch[0];
  for (int w = 1; w < warps; ++w) all = f(all, scratch[w]);
  return x;
}

/// Tiles of a round that keep to buckets, as on the CPU: one block scans a round of a head.
__global__ void __launch_bounds__(cuda::block) fill_by_bucket(Rounds rounds, Tiles tiles) {
  __shared__ int scratch[cuda::lanes];
  const int64_t head = blockIdx.x / rounds.R, r = blockIdx.x % rounds.R, real = rounds.real(head);
  const int32_t* token = rounds.tokens(head, r);
  int32_t *const queries = tiles.queries + head * tiles.of_queries,
                 *const keys = tiles.keys + head * tiles.of_keys,
                 *const slots = tiles.slots + head * tiles.of_slots + r * rounds.N;
  const int64_t width = tiles.window + tiles.tile;
  int begin = 0, tile_count = 0;  // where the bucket at hand begins, and tiles so far
  for (int64_t from = 0; from < real; from += cuda::block) {
    const int64_t place = from + threadIdx.x;
    const bool inside = place < real;
    const int32_t own = inside ? token[place] : 0;
    const bool opens_bucket =
        inside && (place == 0 || rounds.bucket(head, r, own) != rounds.bucket(head, r, token[place - 1]));
    int last = 0, opened = 0;
    const int start = scan(opens_bucket ? static_cast<int>(place) : begin, scratch, last,
                           [](int a, int b) { return a > b ? a : b; });
    const int64_t rank = place - start, lane = rank % tiles.tile;
    const bool opens_tile = inside && lane == 0;
    const int64_t t =
        tile_count - 1 + scan(opens_tile ? 1 : 0, scratch, opened, [](int a, int b) { return a + b; });
    begin = last;
    tile_count += opened;
    if (!inside) continue;
    int32_t* const of_tile = keys + (r * tiles.T + t) * width;
    if (opens_tile) {
      const int64_t before = std::min(rank, tiles.window);
      for (int64_t e = 0; e < before; ++e) of_tile[tiles.window - before + e] = token[place - before + e];
    }
    const int64_t slot = (r * tiles.T + t) * tiles.tile + lane;
    queries[slot] = own;
    of_tile[tiles.window + lane] = own;
    slots[own] = static_cast<int32_t>(slot);
  }
}

/// Tiles of a round that are chunks of the sorted tokens, as on the CPU: one warp per tile.
__global__ void __launch_bounds__(cuda::block) fill_chunks(Rounds rounds, Tiles tiles, bool ring) {
  const int64_t at = cuda::grid_warp(), t = at % tiles.T, r = at / tiles.T % rounds.R,
                head = at / tiles.T / rounds.R;
  if (head >= rounds.heads) return;
  const int64_t c = tiles.tile, real = rounds.real(head), last = (real - 1) / c;
  if (real == 0 || t > last) return;
  const int64_t round = t > 0 || !ring ? r : (r + rounds.R - 1) % rounds.R, chunk = t > 0 ? t - 1 : last;
  const int32_t *before = rounds.tokens(head, round), *token = rounds.tokens(head, r);
  int32_t* const keys = tiles.keys + head * tiles.of_keys + (r * tiles.T + t) * (tiles.window + c);
  int32_t* const queries = tiles.queries + head * tiles.of_queries + r * tiles.T * c;
  for (int64_t e = cuda::lane(); e < c; e += cuda::lanes) {
    if (chunk * c + e < real) keys[e] = before[chunk * c + e];
    const int64_t place = t * c + e;
    if (place >= real) continue;
    keys[c + e] = queries[place] = token[place];
    tiles.slots[head * tiles.of_slots + r * rounds.N + token[place]] =
        static_cast<int32_t>(r * tiles.T * c + place);
  }
}

__global__ void __launch_bounds__(cuda::block) fill(int32_t* to, int64_t count, int32_t value) {
  for (int64_t i = cuda::global_thread(); i < count; i += cuda::grid_size()) to[i] = value;
}

/// places [heads, R, N]: where each token stands in each round.
__global__ void __launch_bounds__(cuda::block) find_places(Rounds rounds, int32_t* places) {
  const int64_t count = rounds.heads * rounds.R * rounds.N;
  for (int64_t i = cuda::global_thread(); i < count; i += cuda::grid_size())
    places[i / rounds.N * rounds.N + rounds.order[i]] = static_cast<int32_t>(i % rounds.N);
}

/// How often query i meets key j.
__device__ int64_t bucket_windows(const Rounds& rounds, const BucketWindow& bucket_window,
                                  const int32_t* places, int64_t head, int32_t i, int32_t j) {
  int64_t total = 0;
  const int64_t c = bucket_window.tile, last = (rounds.real(head) - 1) / c;
  const auto place = [&](int64_t r, int32_t token) {
    return static_cast<int64_t>(places[(head * rounds.R + r) * rounds.N + token]);
  };
  for (int64_t r = 0; r < rounds.R; ++r) {
    if (bucket_window.by_bucket) {
      const int64_t back = place(r, i) - place(r, j);
      const bool together = rounds.bucket(head, r, i) == rounds.bucket(head, r, j);
      total += together && back >= 0 && back < bucket_window.window ? 1 : 0;
      continue;
    }
    const int64_t own = place(r, i) / c;
    total += place(r, j) / c == own ? 1 : 0;
    const int64_t round = own > 0 || !bucket_window.ring ? r : (r + rounds.R - 1) % rounds.R;
    total += place(round, j) / c == (own > 0 ? own - 1 : last) ? 1 : 0;
  }
  return total;
}

/// Does the query in this lane of a tile see entry e of the tile's keys?
__device__ bool seen(const BucketWindow& bucket_window, int64_t lane, int32_t query, int64_t e, int32_t key) {
  if (query < 0 || key < 0 || (bucket_window.causal && key > query)) return false;
  return !bucket_window.by_bucket || (e > lane && e <= bucket_window.window + lane);
}

/// Rows of tiles [heads, R T tile], a warp for each.
struct Rows {
  int64_t rows, a_head, width;  // rows of one head
  const int32_t *queries, *keys;
};

/// sees_other [heads, R, N]: does a token see another one in this round?
__global__ void __launch_bounds__(cuda::block)
    find_others(Rounds rounds, BucketWindow bucket_window, Rows rows, uint8_t* sees_other) {
  const int64_t row = cuda::grid_warp();
  if (row >= rows.rows) return;
  const int64_t head = row / rows.a_head, r = row % rows.a_head / (rows.a_head / rounds.R);
  const int32_t query = rows.queries[row];
  const int32_t* key = rows.keys + row / bucket_window.tile * rows.width;
  bool found = false;
  for (int64_t e = cuda::lane(); e < rows.width; e += cuda::lanes)
    found = found || (key[e] != query && seen(bucket_window, row % bucket_window.tile, query, e, key[e]));
  const bool any = __any_sync(cuda::all_lanes, found ? 1 : 0) != 0;
  if (cuda::lane() == 0 && query >= 0)
    sees_other[(head * rounds.R + r) * rounds.N + query] = static_cast<uint8_t>(any ? 1 : 0);
}

/// bias[row, e] = 0 or -log(number of bucket_windows) where the query of this row of tiles sees key e, else
/// -inf. One warp per row; lanes are keys.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    make_bias(Rounds rounds, BucketWindow bucket_window, Rows rows, const int32_t* places,
              const uint8_t* sees_other, T* bias) {
  const int64_t row = cuda::grid_warp();
  if (row >= rows.rows) return;
  const int64_t head = row / rows.a_head;
  const int32_t query = rows.queries[row];
  const int32_t* key = rows.keys + row / bucket_window.tile * rows.width;
  bool shy = false;
  for (int64_t r = 0; r < rounds.R && bucket_window.not_self && query >= 0; ++r)
    shy = shy || sees_other[(head * rounds.R + r) * rounds.N + query] != 0;
  for (int64_t e = cuda::lane(); e < rows.width; e += cuda::lanes) {
    const bool open =
        seen(bucket_window, row % bucket_window.tile, query, e, key[e]) && !(shy && key[e] == query);
    T value = open ? T(0) : cuda::lowest<T>();
    if (open && bucket_window.once)
      value = -std::log(static_cast<T>(bucket_windows(rounds, bucket_window, places, head, query, key[e])));
    bias[row * rows.width + e] = value;
  }
}

/// ids and bias of token i in round r: the keys and the bias row of the place where it stands in the tiles,
/// -1 and -inf where it stands nowhere. One warp per (head, i, r); lanes are keys.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    list_keys(const int32_t* keys, const int32_t* slots, const T* tile_bias, int64_t heads, int64_t N,
              int64_t R, int64_t width, int64_t tile, int64_t of_keys, int32_t* ids, T* bias) {
  const int64_t at = cuda::grid_warp(), r = at % R, i = at / R % N, head = at / R / N;
  if (head >= heads) return;
  const int32_t place = slots[(head * R + r) * N + i];
  for (int64_t e = cuda::lane(); e < width; e += cuda::lanes) {
    ids[at * width + e] = place < 0 ? -1 : keys[head * of_keys + place / tile * width + e];
    bias[at * width + e] =
        place < 0 ? cuda::lowest<T>() : tile_bias[head * of_keys * tile + place * width + e];
  }
}

/// ids and bias [R window] of one query as on the CPU, by one warp: in each round its lanes look back 32
/// tokens at a time for those of the query's bucket.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    find_recent(const int32_t* buckets, int64_t rows, int64_t queries, int64_t R, int64_t N, int64_t first,
                int32_t none, BucketWindow bucket_window, int32_t* ids, T* bias) {
  const int64_t row = cuda::grid_warp();
  if (row >= rows) return;
  const int64_t at = first + row % queries, width = R * bucket_window.window;
  const int32_t* bucket = buckets + row / queries * R * N;
  ids += row * width;
  bias += row * width;
  for (int64_t e = cuda::lane(); e < width; e += cuda::lanes) {
    ids[e] = -1;
    bias[e] = cuda::lowest<T>();
  }
  __syncwarp();
  // Tokens of the query's bucket take places by their rank.
  bool sees_other = false;
  for (int64_t r = 0; r < R; ++r) {
    const int32_t *of = bucket + r * N, own = of[at];
    if (own == none) return;
    int64_t found = 0;
    for (int64_t from = at; from >= 0 && found < bucket_window.window; from -= cuda::lanes) {
      const int64_t j = from - cuda::lane();
      const bool same = j >= 0 && of[j] == own;
      int total = 0;
      const int64_t place = found + cuda::warp_rank(same, total);
      const bool taken = same && place < bucket_window.window;
      if (taken) ids[r * bucket_window.window + place] = static_cast<int32_t>(j);
      sees_other = sees_other || __any_sync(cuda::all_lanes, taken && j != at ? 1 : 0) != 0;
      found += total;
    }
  }
  __syncwarp();
  for (int64_t e = cuda::lane(); e < width; e += cuda::lanes) {
    if (ids[e] < 0 || (bucket_window.not_self && sees_other && ids[e] == at)) continue;
    int64_t times = 0;
    for (int64_t other = 0; other < width && bucket_window.once; ++other)
      times += ids[other] == ids[e] ? 1 : 0;
    bias[e] = bucket_window.once ? -std::log(static_cast<T>(times)) : T(0);
  }
}

template <class T>
__global__ void __launch_bounds__(cuda::block)
    group_bias(const int32_t* queries, const int32_t* keys, int64_t rows, int64_t n, int64_t asked, int64_t m,
               bool causal, T* bias) {
  const int64_t row = cuda::grid_warp();
  if (row >= rows) return;
  const int32_t* key = keys + row / n * m;
  const int32_t last = causal ? queries[row / n * asked + row % n] : std::numeric_limits<int32_t>::max();
  for (int64_t j = cuda::lane(); j < m; j += cuda::lanes)
    bias[row * m + j] = key[j] >= 0 && key[j] <= last ? T(0) : cuda::lowest<T>();
}

void clear(const Tensor& ids) {
  cuda::run(fill, cuda::line(ids.size()), ids.data<int32_t>(), ids.size(), -1);
}

}  // namespace

void Buckets::cuda(const Tensor& scores, bool both_signs, const Tensor& lengths, int64_t first, int32_t none,
                   const Tensor& buckets) {
  const int64_t a_sequence = buckets.size() / std::max<int64_t>(1, scores.extent(0));
  visit_float("buckets", scores.dtype(), [&]<class T>(Type<T>) {
    cuda::run(find_buckets<T>, cuda::warps(buckets.size()), scores.data<T>(), buckets.size(),
              scores.extent(-1), both_signs, cuda::pointer<int32_t>(lengths), first, scores.extent(3),
              a_sequence, none, buckets.data<int32_t>());
  });
  Count::add(scores.size());
}

/// Fills queries, keys and slots with -1, then the tiles: by one block per round of a head where tiles keep
/// to buckets, else by one warp per tile.
void BucketTiles::cuda(const BucketOrder& sorted, const BucketWindow& bucket_window, const Tensor& queries,
                       const Tensor& keys, const Tensor& slots) {
  const Rounds rounds(sorted);
  const int64_t heads = std::max<int64_t>(rounds.heads, 1);
  const Tiles tiles{keys.extent(3),          bucket_window.tile,   bucket_window.window,
                    queries.size() / heads,  keys.size() / heads,  slots.size() / heads,
                    queries.data<int32_t>(), keys.data<int32_t>(), slots.data<int32_t>()};
  clear(queries);
  clear(keys);
  clear(slots);
  if (bucket_window.by_bucket)
    cuda::run(fill_by_bucket, cuda::blocks(rounds.heads * rounds.R), rounds, tiles);
  else
    cuda::run(fill_chunks, cuda::warps(rounds.heads * rounds.R * tiles.T), rounds, tiles, bucket_window.ring);
  Count::add(keys.size());
}

/// bias of all rows of tiles, one warp per row. Before it, the places of tokens in each round for `once`, and
/// which tokens see another one for `not_self`.
void BucketBias::cuda(const BucketOrder& sorted, const BucketWindow& bucket_window, const Tensor& queries,
                      const Tensor& keys, const Tensor& bias) {
  const Rounds rounds(sorted);
  const Rows rows{queries.size(), queries.size() / std::max<int64_t>(rounds.heads, 1), keys.extent(4),
                  queries.data<int32_t>(), keys.data<int32_t>()};
  const Tensor places(Shape{bucket_window.once ? sorted.order.size() : 0}, DType::i32, Device::cuda);
  const Tensor sees_other(Shape{bucket_window.not_self ? sorted.order.size() : 0}, DType::u8, Device::cuda);
  if (bucket_window.once)
    cuda::run(find_places, cuda::line(sorted.order.size()), rounds, places.data<int32_t>());
  if (bucket_window.not_self)
    cuda::run(find_others, cuda::warps(rows.rows), rounds, bucket_window, rows, sees_other.data<uint8_t>());
  visit_float("bucket_bias", bias.dtype(), [&]<class T>(Type<T>) {
    cuda::run(make_bias<T>, cuda::warps(rows.rows), rounds, bucket_window, rows, places.data<int32_t>(),
              sees_other.data<uint8_t>(), bias.data<T>());
  });
  Count::add(bias.size());
}

void BucketLists::cuda(const Tensor& keys, const Tensor& slots, const Tensor& tile_bias, const Tensor& ids,
                       const Tensor& bias) {
  const int64_t R = keys.extent(2), width = keys.extent(4), N = ids.extent(2);
  const int64_t heads = keys.extent(0) * keys.extent(1), of_keys = keys.size() / std::max<int64_t>(heads, 1);
  visit_float("bucket_lists", bias.dtype(), [&]<class T>(Type<T>) {
    cuda::run(list_keys<T>, cuda::warps(heads * N * R), keys.data<int32_t>(), slots.data<int32_t>(),
              tile_bias.data<T>(), heads, N, R, width, tile_bias.extent(2), of_keys, ids.data<int32_t>(),
              bias.data<T>());
  });
  Count::add(ids.size());
}

void RecentInBucket::cuda(const Tensor& buckets, int64_t first, int32_t none,
                          const BucketWindow& bucket_window, const Tensor& ids, const Tensor& bias) {
  const int64_t rows = ids.size() / std::max<int64_t>(ids.extent(3), 1);
  visit_float("recent_in_bucket", bias.dtype(), [&]<class T>(Type<T>) {
    cuda::run(find_recent<T>, cuda::warps(rows), buckets.data<int32_t>(), rows, ids.extent(2),
              buckets.extent(2), buckets.extent(3), first, none, bucket_window, ids.data<int32_t>(),
              bias.data<T>());
  });
  Count::add(ids.size());
}

void GroupBias::cuda(const Tensor& queries, const Tensor& keys, bool causal, const Tensor& bias) {
  const int64_t m = bias.extent(4), rows = bias.size() / std::max<int64_t>(m, 1);
  visit_float("group_bias", bias.dtype(), [&]<class T>(Type<T>) {
    cuda::run(group_bias<T>, cuda::warps(rows), queries.data<int32_t>(), keys.data<int32_t>(), rows,
              bias.extent(3), queries.extent(3), m, causal, bias.data<T>());
  });
  Count::add(bias.size());
}

}  // namespace heed::kernel

// Attention within buckets on the CPU: buckets, tiles and biases.
#include "heed/core/kernels/content/bucket.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/content/bucket_rounds.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

/// Tiles of round r that keep to buckets: every `tile` tokens of a bucket, in sorted order, are the queries
/// of a tile; its keys are up to `window` tokens of the bucket before them, then the queries themselves.
void fill_by_bucket(const BucketRounds& rounds, const BucketTileView& tiles, int64_t head, int64_t r) {
  const int32_t* tokens = rounds.tokens(head, r);
  int64_t t = -1, rank = 0;  // rank of the token in its bucket
  for (int64_t place = 0; place < rounds.num_tokens(head); ++place, ++rank) {
    if (rounds.starts_bucket(head, r, place)) rank = 0;
    const int64_t lane = rank % tiles.tile;
    if (lane == 0) {
      ++t;
      const int64_t num_before = std::min(rank, tiles.window);
      std::copy_n(tokens + place - num_before, num_before,
                  tiles.keys_of(head, r, t) + tiles.window - num_before);
    }
    tiles.keys_of(head, r, t)[tiles.window + lane] = tokens[place];
    tiles.set_query(head, r, t, lane, tokens[place]);
  }
}

/// Tiles of round r that are chunks of the sorted tokens: tile t has chunk t as queries, and the chunk before
/// it and itself as keys. Before chunk 0 comes the last chunk of round r, or with `ring` of the round before.
void fill_chunks(const BucketRounds& rounds, const BucketTileView& tiles, bool ring, int64_t head,
                 int64_t r) {
  const int64_t chunk_size = tiles.tile, num_tokens = rounds.num_tokens(head),
                last_chunk = (num_tokens - 1) / chunk_size;
  const auto copy_chunk = [&](int64_t round, int64_t chunk, int32_t* to) {
    std::copy_n(rounds.tokens(head, round) + chunk * chunk_size,
                std::min(chunk_size, num_tokens - chunk * chunk_size), to);
  };
  for (int64_t t = 0; t <= last_chunk && num_tokens > 0; ++t) {
    int32_t* keys = tiles.keys_of(head, r, t);
    copy_chunk(rounds.round_before(r, t, ring), t > 0 ? t - 1 : last_chunk, keys);
    copy_chunk(r, t, keys + chunk_size);
  }
  for (int64_t place = 0; place < num_tokens; ++place)
    tiles.set_query(head, r, place / chunk_size, place % chunk_size, rounds.tokens(head, r)[place]);
}

/// places [heads, R, N]: the place of each token in the sorted order of each round.
std::vector<int32_t> places_of(const BucketRounds& rounds) {
  std::vector<int32_t> places(static_cast<size_t>(rounds.num_heads * rounds.R * rounds.N));
  for (int64_t row = 0; row < rounds.num_heads * rounds.R; ++row) {
    for (int64_t place = 0; place < rounds.N; ++place)
      places[static_cast<size_t>(row * rounds.N + rounds.order[row * rounds.N + place])] =
          static_cast<int32_t>(place);
  }
  return places;
}

/// One query of a tile: its row among those of all tiles [heads, R T tile], and the tile's keys.
struct TileRow {
  int64_t head, r, row, lane;
  int32_t query;
  const int32_t* keys;
};

/// Calls f(TileRow) for every query of every tile. One task is some tiles of a head.
template <class F>
void each_tile_row(const BucketRounds& rounds, const BucketWindow& bucket_window, const Tensor& queries,
                   const Tensor& keys, F&& f) {
  const int64_t tile = bucket_window.tile, tiles_per_round = keys.extent(3), num_keys = keys.extent(4),
                num_tiles = rounds.R * tiles_per_round, tiles_per_task = light_grain / (tile * num_keys) + 1,
                tasks_per_head = ceil_div(num_tiles, tiles_per_task);
  parallel_for(rounds.num_heads * tasks_per_head, [&](int64_t task) {
    const int64_t head = task / tasks_per_head, first = task % tasks_per_head * tiles_per_task,
                  last = std::min(first + tiles_per_task, num_tiles);
    for (int64_t t = head * num_tiles + first; t < head * num_tiles + last; ++t) {
      for (int64_t lane = 0; lane < tile; ++lane)
        f(TileRow{head, t % num_tiles / tiles_per_round, t * tile + lane, lane,
                  queries.data<int32_t>()[t * tile + lane], keys.data<int32_t>() + t * num_keys});
    }
  });
}

/// ids and bias [R window] of the query at position `at`: for each round the last `window` tokens up to it
/// that share its bucket, latest first, -1 for none. The bias is -inf where the query does not see the token,
/// else 0, or with `once` minus the log of how often the token is listed.
template <class T>
void recent_of_query(const int32_t* buckets, int64_t R, int64_t N, int64_t at, int32_t none,
                     const BucketWindow& bucket_window, int32_t* ids, T* bias) {
  const int64_t width = R * bucket_window.window;
  std::fill_n(ids, width, -1);
  std::fill_n(bias, width, minus_infinity<T>);
  bool sees_other = false;
  for (int64_t r = 0; r < R; ++r) {
    const int32_t* bucket = buckets + r * N;
    if (bucket[at] == none) return;
    int64_t num_found = 0;
    for (int64_t j = at; j >= 0 && num_found < bucket_window.window; --j) {
      if (bucket[j] != bucket[at]) continue;
      ids[r * bucket_window.window + num_found++] = static_cast<int32_t>(j);
      sees_other = sees_other || j != at;
    }
  }
  for (int64_t e = 0; e < width; ++e) {
    if (ids[e] < 0 || (bucket_window.not_self && sees_other && ids[e] == at)) continue;
    bias[e] = bucket_window.once ? -std::log(static_cast<T>(std::count(ids, ids + width, ids[e]))) : T(0);
  }
}

}  // namespace

/// buckets[b, h, r, t] = argmax of scores[b, h, r, t, :], or of [x, -x] with `both_signs`; `none` at or past
/// the length. One task is some rows (b, h, r, t).
template <>
void Buckets::cpu<target_isa>(const Tensor& scores, bool both_signs, const Tensor& lengths, int64_t first,
                              int32_t none, const Tensor& buckets) {
  const int64_t f = scores.extent(-1), N = scores.extent(3),
                rows_per_sequence = buckets.size() / std::max<int64_t>(1, scores.extent(0));
  const int32_t* length = data_or_null<int32_t>(lengths);
  int32_t* out = buckets.data<int32_t>();
  visit_float("buckets", scores.dtype(), [&]<class T>(Type<T>) {
    const T* score = scores.data<T>();
    parallel_rows(buckets.size(), light_grain / std::max<int64_t>(f, 1), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        if (length != nullptr && first + row % N >= length[row / rows_per_sequence]) {
          out[row] = none;
          continue;
        }
        const T* x = score + row * f;
        const int64_t high = std::max_element(x, x + f) - x, low = std::min_element(x, x + f) - x;
        out[row] = static_cast<int32_t>(both_signs && -x[low] > x[high] ? f + low : high);
      }
    });
  });
  Count::add(scores.size());
}

/// Tiles of all rounds from the sorted tokens. One task is one round of a head, which first fills its
/// queries, keys and slots with -1.
template <>
void BucketTiles::cpu<target_isa>(const BucketOrder& sorted, const BucketWindow& bucket_window,
                                  const Tensor& queries, const Tensor& keys, const Tensor& slots) {
  const BucketRounds rounds(sorted);
  const BucketTileView tiles(rounds, bucket_window, queries, keys, slots);
  parallel_for(rounds.num_heads * rounds.R, [&](int64_t task) {
    const int64_t head = task / rounds.R, r = task % rounds.R;
    std::fill_n(tiles.queries_of(head, r), tiles.T * tiles.tile, -1);
    std::fill_n(tiles.keys_of(head, r, 0), tiles.T * (tiles.window + tiles.tile), -1);
    std::fill_n(tiles.slots_of(head, r), tiles.N, -1);
    if (bucket_window.by_bucket)
      fill_by_bucket(rounds, tiles, head, r);
    else
      fill_chunks(rounds, tiles, bucket_window.ring, head, r);
  });
  Count::add(keys.size());
}

/// bias[b h, r t, lane, e] = 0 or -log(times seen) where query `lane` of a tile sees key e, else -inf. With
/// `not_self` a first pass finds the tokens that see another one.
template <>
void BucketBias::cpu<target_isa>(const BucketOrder& sorted, const BucketWindow& bucket_window,
                                 const Tensor& queries, const Tensor& keys, const Tensor& bias) {
  const BucketRounds rounds(sorted);
  const int64_t num_keys = keys.extent(4), R = rounds.R, N = rounds.N;
  // sees_other[head, r, token]: the token sees another one in round r, so it does not see itself in any.
  std::vector<uint8_t> sees_other(static_cast<size_t>(bucket_window.not_self ? rounds.num_heads * R * N : 0));
  if (bucket_window.not_self) {
    each_tile_row(rounds, bucket_window, queries, keys, [&](const TileRow& row) {
      if (row.query < 0) return;
      uint8_t& found = sees_other[static_cast<size_t>((row.head * R + row.r) * N + row.query)];
      for (int64_t e = 0; e < num_keys && found == 0; ++e) {
        const int32_t key = row.keys[e];
        found = key != row.query && sees_key(bucket_window, row.lane, row.query, e, key) ? 1 : 0;
      }
    });
  }
  const auto sees_other_in_any_round = [&](int64_t head, int32_t query) {
    for (int64_t r = 0; r < R; ++r) {
      if (sees_other[static_cast<size_t>((head * R + r) * N + query)] != 0) return true;
    }
    return false;
  };
  const std::vector<int32_t> places = bucket_window.once ? places_of(rounds) : std::vector<int32_t>();
  visit_float("bucket_bias", bias.dtype(), [&]<class T>(Type<T>) {
    T* out = bias.data<T>();
    each_tile_row(rounds, bucket_window, queries, keys, [&](const TileRow& row) {
      const bool hides_self =
          bucket_window.not_self && row.query >= 0 && sees_other_in_any_round(row.head, row.query);
      for (int64_t e = 0; e < num_keys; ++e) {
        const int32_t key = row.keys[e];
        const bool is_seen =
            sees_key(bucket_window, row.lane, row.query, e, key) && !(hides_self && key == row.query);
        T value = is_seen ? T(0) : minus_infinity<T>;
        if (is_seen && bucket_window.once)
          value = -std::log(
              static_cast<T>(times_seen(rounds, bucket_window, places.data(), row.head, row.query, key)));
        out[row.row * num_keys + e] = value;
      }
    });
  });
  Count::add(bias.size());
}

/// ids and bias [B, H, N, R E] of each token i: for every round the keys of the tile with this token as a
/// query and its row of the bias, -1 and -inf where it is in no tile. One task is some tokens (b, h, i).
template <>
void BucketLists::cpu<target_isa>(const Tensor& keys, const Tensor& slots, const Tensor& tile_bias,
                                  const Tensor& ids, const Tensor& bias) {
  const int64_t R = keys.extent(2), width = keys.extent(4), N = ids.extent(2), tile = tile_bias.extent(2);
  const int64_t heads = keys.extent(0) * keys.extent(1),
                keys_per_head = keys.size() / std::max<int64_t>(heads, 1);
  visit_float("bucket_lists", bias.dtype(), [&]<class T>(Type<T>) {
    const T* biases = tile_bias.data<T>();
    T* to = bias.data<T>();
    parallel_rows(heads * N, light_grain / (R * width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t head = row / N, i = row % N;
        for (int64_t r = 0; r < R; ++r) {
          const int64_t at = (row * R + r) * width, slot = slots.data<int32_t>()[(head * R + r) * N + i];
          if (slot < 0) {
            std::fill_n(ids.data<int32_t>() + at, width, -1);
            std::fill_n(to + at, width, minus_infinity<T>);
          } else {
            const int32_t* tile_keys = keys.data<int32_t>() + head * keys_per_head + slot / tile * width;
            std::copy_n(tile_keys, width, ids.data<int32_t>() + at);
            std::copy_n(biases + head * keys_per_head * tile + slot * width, width, to + at);
          }
        }
      }
    });
  });
  Count::add(ids.size());
}

/// ids and bias [B, H, Tq, R window]: recent_of_query() of each query. One task is some queries (b, h, i).
template <>
void RecentInBucket::cpu<target_isa>(const Tensor& buckets, int64_t first, int32_t none,
                                     const BucketWindow& bucket_window, const Tensor& ids,
                                     const Tensor& bias) {
  const int64_t R = buckets.extent(2), N = buckets.extent(3), queries = ids.extent(2), width = ids.extent(3);
  visit_float("recent_in_bucket", bias.dtype(), [&]<class T>(Type<T>) {
    parallel_rows(ids.size() / std::max<int64_t>(width, 1), 4, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        recent_of_query(buckets.data<int32_t>() + row / queries * R * N, R, N, first + row % queries, none,
                        bucket_window, ids.data<int32_t>() + row * width, bias.data<T>() + row * width);
      }
    });
  });
  Count::add(ids.size());
}

/// bias[b, h, g, i, j] = 0 where keys[b, h, g, j] is a key and, when `causal`, not after queries[b, h, g, i];
/// else -inf. One task is some rows (b, h, g, i).
template <>
void GroupBias::cpu<target_isa>(const Tensor& queries, const Tensor& keys, bool causal, const Tensor& bias) {
  const int64_t n = bias.extent(3), m = bias.extent(4), queries_per_group = queries.extent(3);
  visit_float("group_bias", bias.dtype(), [&]<class T>(Type<T>) {
    T* out = bias.data<T>();
    parallel_rows(
        bias.size() / std::max<int64_t>(m, 1), light_grain / (m + 1) + 1, [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            const int32_t* key = keys.data<int32_t>() + row / n * m;
            const int32_t last_key = causal ? queries.data<int32_t>()[row / n * queries_per_group + row % n]
                                            : std::numeric_limits<int32_t>::max();
            for (int64_t j = 0; j < m; ++j)
              out[row * m + j] = key[j] >= 0 && key[j] <= last_key ? T(0) : minus_infinity<T>;
          }
        });
  });
  Count::add(bias.size());
}

}  // namespace heed::kernel

// Attention within buckets on the CPU: buckets, tiles and biases.
#include "heed/core/kernels/content/bucket.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <vector>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/content/bucket_rounds.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

template <class T>
constexpr T minus_infinity = -std::numeric_limits<T>::infinity();

/// Tiles of round r that keep to buckets: every queries_per_tile tokens of a bucket, in sorted order, are the
/// queries of a tile; its keys are these after up to `window` earlier ones.
void fill_by_bucket(const BucketRounds& rounds, const BucketTileView& tiles, int64_t head, int64_t r) {
  const int32_t* tokens = rounds.tokens(head, r);
  int64_t tile = -1, rank_in_bucket = 0;
  for (int64_t place = 0; place < rounds.num_tokens(head); ++place, ++rank_in_bucket) {
    if (rounds.starts_bucket(head, r, place)) rank_in_bucket = 0;
    const int64_t query_in_tile = rank_in_bucket % tiles.queries_per_tile;
    if (query_in_tile == 0) {
      ++tile;
      const int64_t num_before = std::min(rank_in_bucket, tiles.window);
      std::copy_n(tokens + place - num_before, num_before,
                  tiles.keys_of_tile(head, r, tile) + tiles.window - num_before);
    }
    tiles.keys_of_tile(head, r, tile)[tiles.window + query_in_tile] = tokens[place];
    tiles.set_query(head, r, tile, query_in_tile, tokens[place]);
  }
}

/// Tiles of round r that are chunks of the sorted tokens: tile n has chunk n as queries, and the chunk before
/// it and itself as keys. Before chunk 0 comes the last chunk of round r or of the previous round.
void fill_chunks(const BucketRounds& rounds, const BucketTileView& tiles, bool wraps_to_previous_round,
                 int64_t head, int64_t r) {
  const int64_t chunk_size = tiles.queries_per_tile, num_tokens = rounds.num_tokens(head),
                num_chunks = ceil_div(num_tokens, chunk_size);
  const auto copy_chunk = [&](int64_t round, int64_t chunk, int32_t* keys) {
    std::copy_n(rounds.tokens(head, round) + chunk * chunk_size,
                std::min(chunk_size, num_tokens - chunk * chunk_size), keys);
  };
  for (int64_t chunk = 0; chunk < num_chunks; ++chunk) {
    int32_t* keys = tiles.keys_of_tile(head, r, chunk);
    copy_chunk(rounds.round_of_chunk_before(r, chunk, wraps_to_previous_round),
               (chunk > 0 ? chunk : num_chunks) - 1, keys);
    copy_chunk(r, chunk, keys + chunk_size);
  }
  for (int64_t place = 0; place < num_tokens; ++place)
    tiles.set_query(head, r, place / chunk_size, place % chunk_size, rounds.tokens(head, r)[place]);
}

/// places [heads, R, N]: the place of each token in the sorted order of each round.
std::vector<int32_t> places_of(const BucketRounds& rounds) {
  std::vector<int32_t> places(static_cast<size_t>(rounds.num_heads * rounds.R * rounds.N));
  for (int64_t i = 0; i < std::ssize(places); ++i) {
    const int64_t place = i % rounds.N, first_of_round = i - place;
    places[static_cast<size_t>(first_of_round + rounds.order[i])] = static_cast<int32_t>(place);
  }
  return places;
}

/// sees_other[head, r, token] = 1 where the token sees another one in round r. One task is some rows.
std::vector<uint8_t> find_others(const BucketRounds& rounds, const BucketWindow& bucket_window,
                                 const BucketTileView& tiles) {
  std::vector<uint8_t> sees_other(static_cast<size_t>(rounds.num_heads * rounds.R * rounds.N));
  parallel_rows(tiles.num_rows, light_grain / tiles.keys_per_tile + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int32_t query = tiles.queries[row], *keys = tiles.keys_of_row(row);
      if (query < 0) continue;
      uint8_t& found =
          sees_other[static_cast<size_t>(rounds.index(tiles.head(row), tiles.round(row), query))];
      for (int64_t e = 0; e < tiles.keys_per_tile && found == 0; ++e)
        found =
            keys[e] != query && sees_key(bucket_window, tiles.query_in_tile(row), query, e, keys[e]) ? 1 : 0;
    }
  });
  return sees_other;
}

/// ids and bias [R window] of one query: for each round the last `window` tokens up to it that share its
/// bucket, latest first, -1 for none. The bias is -inf where the query does not see the token, else 0, or
/// with counts_keys_once minus the log of how often the token is listed. buckets [R, N].
template <class T>
void recent_of_query(const int32_t* buckets, int64_t R, int64_t N, int64_t query, int32_t none,
                     const BucketWindow& bucket_window, int32_t* ids, T* bias) {
  const int64_t width = R * bucket_window.window;
  std::fill_n(ids, width, -1);
  std::fill_n(bias, width, minus_infinity<T>);
  bool sees_other = false;
  for (int64_t r = 0; r < R; ++r) {
    const int32_t* bucket = buckets + r * N;
    if (bucket[query] == none) return;
    int64_t num_found = 0;
    for (int64_t j = query; j >= 0 && num_found < bucket_window.window; --j) {
      if (bucket[j] != bucket[query]) continue;
      ids[r * bucket_window.window + num_found++] = static_cast<int32_t>(j);
      sees_other = sees_other || j != query;
    }
  }
  for (int64_t e = 0; e < width; ++e) {
    if (ids[e] < 0 || (bucket_window.hides_self && sees_other && ids[e] == query)) continue;
    bias[e] = bucket_window.counts_keys_once ? -std::log(static_cast<T>(std::count(ids, ids + width, ids[e])))
                                             : T(0);
  }
}

}  // namespace

/// buckets[b, h, r, i] = argmax of scores[b, h, r, i, :], or of [x, -x] with `both_signs`; `none` at or past
/// the length. One task is some rows (b, h, r, i).
template <>
void Buckets::cpu<target_isa>(const Tensor& scores, bool both_signs, const Tensor& lengths, int64_t first,
                              int32_t none, const Tensor& buckets) {
  const int64_t f = scores.extent(-1), N = scores.extent(3),
                rows_per_sequence = buckets.size() / std::max<int64_t>(1, scores.extent(0));
  const int32_t* length_of = data_or_null<int32_t>(lengths);
  int32_t* bucket = buckets.data<int32_t>();
  visit_float("buckets", scores.dtype(), [&]<class T>(Type<T>) {
    parallel_rows(buckets.size(), light_grain / std::max<int64_t>(f, 1), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        if (length_of != nullptr && first + row % N >= length_of[row / rows_per_sequence]) {
          bucket[row] = none;
          continue;
        }
        const T* x = scores.data<T>() + row * f;
        const int64_t highest = std::max_element(x, x + f) - x, lowest = std::min_element(x, x + f) - x;
        bucket[row] = static_cast<int32_t>(both_signs && -x[lowest] > x[highest] ? f + lowest : highest);
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
    std::fill_n(tiles.queries_of_round(head, r), tiles.tiles_per_round * tiles.queries_per_tile, -1);
    std::fill_n(tiles.keys_of_tile(head, r, 0), tiles.tiles_per_round * tiles.keys_per_tile, -1);
    std::fill_n(tiles.slots_of_round(head, r), tiles.N, -1);
    if (bucket_window.by_bucket)
      fill_by_bucket(rounds, tiles, head, r);
    else
      fill_chunks(rounds, tiles, bucket_window.wraps_to_previous_round, head, r);
  });
  Count::add(keys.size());
}

/// bias[row, e] = 0 or -log(times seen) where the query of this row sees key e of its tile, else -inf. One
/// task is some queries of tiles.
template <>
void BucketBias::cpu<target_isa>(const BucketOrder& sorted, const BucketWindow& bucket_window,
                                 const Tensor& queries, const Tensor& keys, const Tensor& bias) {
  const BucketRounds rounds(sorted);
  const BucketTileView tiles(rounds, bucket_window, queries, keys);
  std::vector<uint8_t> sees_other;
  if (bucket_window.hides_self) sees_other = find_others(rounds, bucket_window, tiles);
  std::vector<int32_t> places;
  if (bucket_window.counts_keys_once) places = places_of(rounds);
  visit_float("bucket_bias", bias.dtype(), [&]<class T>(Type<T>) {
    const auto bias_of = [&](int64_t row, int64_t e, bool hides_self) -> T {
      const int32_t query = tiles.queries[row], key = tiles.keys_of_row(row)[e];
      const bool is_hidden = hides_self && key == query;
      if (is_hidden || !sees_key(bucket_window, tiles.query_in_tile(row), query, e, key))
        return minus_infinity<T>;
      if (!bucket_window.counts_keys_once) return 0;
      return -std::log(
          static_cast<T>(times_seen(rounds, bucket_window, places.data(), tiles.head(row), query, key)));
    };
    parallel_rows(tiles.num_rows, light_grain / tiles.keys_per_tile + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int32_t query = tiles.queries[row];
        const bool hides_self = bucket_window.hides_self && query >= 0 &&
                                rounds.in_any_round(sees_other.data(), tiles.head(row), query);
        T* const bias_row = bias.data<T>() + row * tiles.keys_per_tile;
        for (int64_t e = 0; e < tiles.keys_per_tile; ++e) bias_row[e] = bias_of(row, e, hides_self);
      }
    });
  });
  Count::add(bias.size());
}

/// ids and bias [heads, N, R, E] of each token i: for every round the keys of the tile with this token as a
/// query and its row of the bias, -1 and -inf where it is in no tile. One task is some tokens (head, i).
template <>
void BucketLists::cpu<target_isa>(const Tensor& keys, const Tensor& slots, const Tensor& tile_bias,
                                  const Tensor& ids, const Tensor& bias) {
  const BucketListShape shape(keys, tile_bias, ids);
  const int64_t R = shape.R, N = shape.N, width = shape.keys_per_tile;
  visit_float("bucket_lists", bias.dtype(), [&]<class T>(Type<T>) {
    const auto list_round = [&](int64_t head, int64_t i, int64_t r) {
      int32_t* const id_row = ids.data<int32_t>() + ((head * N + i) * R + r) * width;
      T* const bias_row = bias.data<T>() + ((head * N + i) * R + r) * width;
      const int64_t slot = slots.data<int32_t>()[(head * R + r) * N + i];
      if (slot < 0) {
        std::fill_n(id_row, width, -1);
        std::fill_n(bias_row, width, minus_infinity<T>);
      } else {
        std::copy_n(keys.data<int32_t>() + shape.tile_keys(head, slot), width, id_row);
        std::copy_n(tile_bias.data<T>() + shape.bias_row(head, slot), width, bias_row);
      }
    };
    parallel_rows(shape.num_heads * N, light_grain / (R * width), [&](int64_t begin, int64_t end) {
      for (int64_t token = begin; token < end; ++token) {
        for (int64_t r = 0; r < R; ++r) list_round(token / N, token % N, r);
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
            const int32_t* group_keys = keys.data<int32_t>() + row / n * m;
            const int32_t last_visible = causal
                                             ? queries.data<int32_t>()[row / n * queries_per_group + row % n]
                                             : std::numeric_limits<int32_t>::max();
            for (int64_t j = 0; j < m; ++j)
              out[row * m + j] =
                  group_keys[j] >= 0 && group_keys[j] <= last_visible ? T(0) : minus_infinity<T>;
          }
        });
  });
  Count::add(bias.size());
}

}  // namespace heed::kernel

// Attention within buckets on the CPU: buckets, tiles and biases.
#include "heed/core/kernels/content/bucket.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

/// The rounds of one head.
struct Rounds {
  int64_t R, N, real;
  const int32_t *order, *bucket;  // [R, N]

  Rounds(const BucketOrder& sorted, int64_t head)
      : R(sorted.order.extent(2)),
        N(sorted.order.extent(3)),
        real(sorted.lengths
                 ? std::clamp<int64_t>(sorted.lengths.data<int32_t>()[head / sorted.order.extent(1)], 0, N)
                 : N),
        order(sorted.order.data<int32_t>() + head * R * N),
        bucket(sorted.buckets.data<int32_t>() + head * R * N) {}

  int32_t token(int64_t r, int64_t place) const { return order[r * N + place]; }
  int32_t bucket_at(int64_t r, int64_t place) const { return bucket[r * N + token(r, place)]; }
};

/// Tiles of one head as they are filled.
struct Tiles {
  int64_t T, tile, window;
  int32_t *queries, *keys, *slots;
  int32_t* keys_of(int64_t r, int64_t t) const { return keys + (r * T + t) * (window + tile); }
};

/// Tiles of round r that keep to buckets: every `tile` tokens of a bucket, in sorted order, are the queries
/// of a tile; its keys are up to `window` tokens of the bucket before them, then the queries themselves.
void fill_by_bucket(const Rounds& rounds, const Tiles& tiles, int64_t r) {
  int64_t t = -1, rank = 0;
  for (int64_t place = 0; place < rounds.real; ++place, ++rank) {
    const int32_t token = rounds.token(r, place);
    if (place == 0 || rounds.bucket_at(r, place) != rounds.bucket_at(r, place - 1)) rank = 0;
    const int64_t lane = rank % tiles.tile;
    if (lane == 0) {
      ++t;
      const int64_t before = std::min(rank, tiles.window);
      std::copy_n(rounds.order + r * rounds.N + place - before, before,
                  tiles.keys_of(r, t) + tiles.window - before);
    }
    const int64_t slot = (r * tiles.T + t) * tiles.tile + lane;
    tiles.queries[slot] = token;
    tiles.keys_of(r, t)[tiles.window + lane] = token;
    tiles.slots[r * rounds.N + token] = static_cast<int32_t>(slot);
  }
}

/// Tiles of round r that are chunks of the sorted tokens: tile t has chunk t as queries, and the chunk before
/// it and itself as keys. Before chunk 0 comes the last chunk of round r, or with `ring` of the round before.
void fill_chunks(const Rounds& rounds, const Tiles& tiles, bool ring, int64_t r) {
  const int64_t c = tiles.tile, last = (rounds.real - 1) / c;
  const auto copy_chunk = [&](int64_t round, int64_t chunk, int32_t* to) {
    std::copy_n(rounds.order + round * rounds.N + chunk * c, std::min(c, rounds.real - chunk * c), to);
  };
  for (int64_t t = 0; t <= last && rounds.real > 0; ++t) {
    int32_t* keys = tiles.keys_of(r, t);
    if (t > 0)
      copy_chunk(r, t - 1, keys);
    else
      copy_chunk(ring ? (r + rounds.R - 1) % rounds.R : r, last, keys);
    copy_chunk(r, t, keys + c);
  }
  for (int64_t place = 0; place < rounds.real; ++place) {
    const int64_t slot = r * tiles.T * c + place;
    tiles.queries[slot] = rounds.token(r, place);
    tiles.slots[r * rounds.N + rounds.token(r, place)] = static_cast<int32_t>(slot);
  }
}

/// How often query i meets key j.
class BucketWindows {
 public:
  BucketWindows(const Rounds& rounds, const BucketWindow& bucket_window)
      : rounds_(rounds), meeting_(bucket_window), place_(static_cast<size_t>(rounds.R * rounds.N)) {
    for (int64_t r = 0; r < rounds.R; ++r) {
      for (int64_t place = 0; place < rounds.N; ++place)
        place_[static_cast<size_t>(r * rounds.N + rounds.token(r, place))] = static_cast<int32_t>(place);
    }
  }

  int64_t count(int64_t i, int64_t j) const {
    int64_t total = 0;
    const int64_t c = meeting_.tile, last = (rounds_.real - 1) / c;
    for (int64_t r = 0; r < rounds_.R; ++r) {
      if (meeting_.by_bucket) {
        const int64_t back = place(r, i) - place(r, j);
        const int32_t* bucket = rounds_.bucket + r * rounds_.N;
        total += bucket[i] == bucket[j] && back >= 0 && back < meeting_.window ? 1 : 0;
        continue;
      }
      const int64_t own = place(r, i) / c;
      total += place(r, j) / c == own ? 1 : 0;
      const int64_t round = own > 0 || !meeting_.ring ? r : (r + rounds_.R - 1) % rounds_.R;
      total += place(round, j) / c == (own > 0 ? own - 1 : last) ? 1 : 0;
    }
    return total;
  }

 private:
  int64_t place(int64_t r, int64_t token) const { return place_[static_cast<size_t>(r * rounds_.N + token)]; }

  const Rounds& rounds_;
  const BucketWindow& meeting_;
  std::vector<int32_t> place_;
};

/// Does the query in this lane of a tile see entry e of the tile's keys?
bool seen(const BucketWindow& bucket_window, int64_t lane, int32_t query, int64_t e, int32_t key) {
  if (query < 0 || key < 0 || (bucket_window.causal && key > query)) return false;
  return !bucket_window.by_bucket || (e > lane && e <= bucket_window.window + lane);
}

/// The rows of tiles of one head, and what all of them share.
template <class T>
struct Rows {
  int64_t tiles, width;
  const int32_t *queries, *keys;
  T* bias;

  Rows(const Tensor& query_ids, const Tensor& key_ids, const Tensor& biases, int64_t heads, int64_t head)
      : tiles(key_ids.extent(3)),
        width(key_ids.extent(4)),
        queries(query_ids.data<int32_t>() + head * (query_ids.size() / heads)),
        keys(key_ids.data<int32_t>() + head * (key_ids.size() / heads)),
        bias(biases.data<T>() + head * (biases.size() / heads)) {}

  /// Calls f(row, lane, query, its keys) for the rows of tiles begin <= t < end.
  template <class F>
  void each(const BucketWindow& bucket_window, int64_t begin, int64_t end, F&& f) const {
    for (int64_t row = begin * bucket_window.tile; row < end * bucket_window.tile; ++row)
      f(row, row % bucket_window.tile, queries[row], keys + row / bucket_window.tile * width);
  }
};

/// ids and bias [R window] of the query at position `at`: for each round the last `window` tokens up to it
/// that share its bucket, latest first, -1 for none. The bias is -inf where nothing is seen, else 0, or minus
/// the log of how often the key occurs.
template <class T>
void recent_of_query(const int32_t* bucket, int64_t R, int64_t N, int64_t at, int32_t none,
                     const BucketWindow& bucket_window, int32_t* ids, T* bias) {
  const int64_t width = R * bucket_window.window;
  std::fill_n(ids, width, -1);
  std::fill_n(bias, width, -std::numeric_limits<T>::infinity());
  bool sees_other = false;
  for (int64_t r = 0; r < R; ++r) {
    const int32_t* of = bucket + r * N;
    if (of[at] == none) return;
    int64_t found = 0;
    for (int64_t j = at; j >= 0 && found < bucket_window.window; --j) {
      if (of[j] != of[at]) continue;
      ids[r * bucket_window.window + found++] = static_cast<int32_t>(j);
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
void Buckets::cpu<here>(const Tensor& scores, bool both_signs, const Tensor& lengths, int64_t first,
                        int32_t none, const Tensor& buckets) {
  const int64_t f = scores.extent(-1), N = scores.extent(3),
                a_sequence = buckets.size() / std::max<int64_t>(1, scores.extent(0));
  const int32_t* length = lengths ? lengths.data<int32_t>() : nullptr;
  int32_t* out = buckets.data<int32_t>();
  visit_float("buckets", scores.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T* score = scores.data<T>();
    parallel_rows(buckets.size(), light_grain / std::max<int64_t>(f, 1), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        if (length != nullptr && first + row % N >= length[row / a_sequence]) {
          out[row] = none;
          continue;
        }
        const T* of = score + row * f;
        const int64_t high = std::max_element(of, of + f) - of, low = std::min_element(of, of + f) - of;
        out[row] = static_cast<int32_t>(both_signs && -of[low] > of[high] ? f + low : high);
      }
    });
  });
  Count::add(scores.size());
}

/// Tiles of all rounds from the sorted tokens. One task is one round of a head, which first fills its
/// queries, keys and slots with -1.
template <>
void BucketTiles::cpu<here>(const BucketOrder& sorted, const BucketWindow& bucket_window,
                            const Tensor& queries, const Tensor& keys, const Tensor& slots) {
  const int64_t heads = sorted.order.extent(0) * sorted.order.extent(1), T = keys.extent(3);
  const int64_t of_queries = queries.size() / std::max<int64_t>(heads, 1),
                of_keys = keys.size() / std::max<int64_t>(heads, 1),
                of_slots = slots.size() / std::max<int64_t>(heads, 1), R = sorted.order.extent(2);
  parallel_for(heads * R, [&](int64_t piece) {
    const int64_t head = piece / R, r = piece % R;
    const Rounds rounds(sorted, head);
    const Tiles tiles{T,
                      bucket_window.tile,
                      bucket_window.window,
                      queries.data<int32_t>() + head * of_queries,
                      keys.data<int32_t>() + head * of_keys,
                      slots.data<int32_t>() + head * of_slots};
    std::fill_n(tiles.queries + r * (of_queries / R), of_queries / R, -1);
    std::fill_n(tiles.keys + r * (of_keys / R), of_keys / R, -1);
    std::fill_n(tiles.slots + r * (of_slots / R), of_slots / R, -1);
    if (bucket_window.by_bucket)
      fill_by_bucket(rounds, tiles, r);
    else
      fill_chunks(rounds, tiles, bucket_window.ring, r);
  });
  Count::add(keys.size());
}

/// bias[b h, r t, lane, e] = 0 or -log(number of bucket_windows) where the query in this lane of a tile sees
/// key e, else -inf. One task is some tiles of a head; with `not_self` a first sweep finds the tokens that
/// meet another one.
template <>
void BucketBias::cpu<here>(const BucketOrder& sorted, const BucketWindow& bucket_window,
                           const Tensor& queries, const Tensor& keys, const Tensor& bias) {
  const int64_t heads = sorted.order.extent(0) * sorted.order.extent(1), R = sorted.order.extent(2),
                N = sorted.order.extent(3);
  const int64_t tiles = R * keys.extent(3), grain = light_grain / (bucket_window.tile * keys.extent(4)) + 1;
  const int64_t cuts = ceil_div(tiles, grain);
  visit_float("bucket_bias", bias.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    // sees_other[head, r, token]: does the token see another one in round r? If so in any round, it does not
    // see itself.
    std::vector<uint8_t> sees_other(static_cast<size_t>(bucket_window.not_self ? heads * R * N : 0));
    const auto each_piece = [&](auto&& f) {
      parallel_for(heads * cuts, [&](int64_t piece) {
        const int64_t head = piece / cuts, begin = piece % cuts * grain;
        const Rows<T> rows(queries, keys, bias, heads, head);
        rows.each(bucket_window, begin, std::min(begin + grain, tiles),
                  [&](int64_t row, int64_t lane, int32_t query, const int32_t* key) {
                    f(head, rows, row, lane, query, key);
                  });
      });
    };
    // First sweep: sees_other.
    if (bucket_window.not_self) {
      each_piece([&](int64_t head, const Rows<T>& rows, int64_t row, int64_t lane, int32_t query,
                     const int32_t* key) {
        if (query < 0) return;
        uint8_t& found =
            sees_other[static_cast<size_t>((head * R + row / (rows.tiles * bucket_window.tile)) * N + query)];
        for (int64_t e = 0; e < rows.width && found == 0; ++e)
          found = key[e] != query && seen(bucket_window, lane, query, e, key[e]) ? 1 : 0;
      });
    }
    const auto alone = [&](int64_t head, int32_t query) {
      for (int64_t r = 0; r < R; ++r) {
        if (sees_other[static_cast<size_t>((head * R + r) * N + query)] != 0) return false;
      }
      return true;
    };
    // Second sweep: the bias of each row, with the number of bucket_windows where `once` asks for it.
    std::vector<Rounds> rounds;
    std::vector<BucketWindows> bucket_windows;
    for (int64_t head = 0; head < heads && bucket_window.once; ++head) rounds.emplace_back(sorted, head);
    for (const Rounds& of_head : rounds) bucket_windows.emplace_back(of_head, bucket_window);
    each_piece([&](int64_t head, const Rows<T>& rows, int64_t row, int64_t lane, int32_t query,
                   const int32_t* key) {
      const bool hides_self = bucket_window.not_self && query >= 0 && !alone(head, query);
      for (int64_t e = 0; e < rows.width; ++e) {
        const bool open = seen(bucket_window, lane, query, e, key[e]) && !(hides_self && key[e] == query);
        T value = open ? T(0) : -std::numeric_limits<T>::infinity();
        if (open && bucket_window.once)
          value = -std::log(static_cast<T>(bucket_windows[static_cast<size_t>(head)].count(query, key[e])));
        rows.bias[row * rows.width + e] = value;
      }
    });
  });
  Count::add(bias.size());
}

/// ids and bias [B, H, N, R E] of each token i: for every round the keys and the bias row of the place where
/// it stands in the tiles, -1 and -inf where it stands nowhere. One task is some tokens (b, h, i).
template <>
void BucketLists::cpu<here>(const Tensor& keys, const Tensor& slots, const Tensor& tile_bias,
                            const Tensor& ids, const Tensor& bias) {
  const int64_t R = keys.extent(2), width = keys.extent(4), N = ids.extent(2), a = tile_bias.extent(2);
  const int64_t heads = keys.extent(0) * keys.extent(1), of_keys = keys.size() / std::max<int64_t>(heads, 1);
  visit_float("bucket_lists", bias.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const int32_t *key = keys.data<int32_t>(), *slot = slots.data<int32_t>();
    const T* from = tile_bias.data<T>();
    int32_t* id = ids.data<int32_t>();
    T* to = bias.data<T>();
    parallel_rows(heads * N, light_grain / (R * width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t head = row / N, i = row % N;
        for (int64_t r = 0; r < R; ++r) {
          const int64_t at = (row * R + r) * width, place = slot[(head * R + r) * N + i];
          if (place < 0) {
            std::fill_n(id + at, width, -1);
            std::fill_n(to + at, width, -std::numeric_limits<T>::infinity());
          } else {
            std::copy_n(key + head * of_keys + place / a * width, width, id + at);
            std::copy_n(from + head * of_keys * a + place * width, width, to + at);
          }
        }
      }
    });
  });
  Count::add(ids.size());
}

/// ids and bias [B, H, Tq, R window]: what recent_of_query() finds for each query. One task is some queries
/// (b, h, i).
template <>
void RecentInBucket::cpu<here>(const Tensor& buckets, int64_t first, int32_t none,
                               const BucketWindow& bucket_window, const Tensor& ids, const Tensor& bias) {
  const int64_t R = buckets.extent(2), N = buckets.extent(3), queries = ids.extent(2), width = ids.extent(3);
  visit_float("recent_in_bucket", bias.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
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
void GroupBias::cpu<here>(const Tensor& queries, const Tensor& keys, bool causal, const Tensor& bias) {
  const int64_t n = bias.extent(3), m = bias.extent(4), asked = queries.extent(3);
  const int32_t *query = queries.data<int32_t>(), *key = keys.data<int32_t>();
  visit_float("group_bias", bias.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    T* out = bias.data<T>();
    parallel_rows(
        bias.size() / std::max<int64_t>(m, 1), light_grain / (m + 1) + 1, [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            const int32_t* of = key + row / n * m;
            const int32_t last =
                causal ? query[row / n * asked + row % n] : std::numeric_limits<int32_t>::max();
            for (int64_t j = 0; j < m; ++j)
              out[row * m + j] = of[j] >= 0 && of[j] <= last ? T(0) : -std::numeric_limits<T>::infinity();
          }
        });
  });
  Count::add(bias.size());
}

}  // namespace heed::kernel

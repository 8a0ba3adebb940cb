// The pairs of a tile of queries and a tile of keys that must be computed, as few rectangles.
#pragma once

#include <algorithm>
#include <cstdint>

namespace heed::kernel {

/// Largest number of queries, and of keys, in a tile.
inline constexpr int64_t tile = 64;

/// The keys that each group of 16 queries of a tile sees: one rectangle for a full tile; several on the
/// diagonal of a causal mask or at the edges of a window.
struct TileMask {
  static constexpr int64_t queries_per_group = 16;
  /// Queries [query_begin, query_end) see keys [key_begin, key_end).
  struct Rectangle {
    int64_t query_begin, query_end, key_begin, key_end;
    bool contains_keys(int64_t begin, int64_t end) const { return key_begin <= begin && end <= key_end; }
  };
  Rectangle rectangles[tile / queries_per_group];
  int64_t count = 0;

  /// Adds a rectangle, or extends the last one. Rectangles must be added in the order of their queries.
  void add(const Rectangle& next) {
    if (next.key_begin >= next.key_end) return;
    Rectangle* last = count > 0 ? &rectangles[count - 1] : nullptr;
    if (last != nullptr && last->query_end == next.query_begin && last->key_begin == next.key_begin &&
        last->key_end == next.key_end) {
      last->query_end = next.query_end;
    } else {
      rectangles[count++] = next;
    }
  }
  /// One past the last key of any rectangle.
  int64_t key_end() const {
    int64_t end = 0;
    for (int64_t r = 0; r < count; ++r) end = std::max(end, rectangles[r].key_end);
    return end;
  }
  /// Calls f(rectangle) for each rectangle that was added: some queries with all keys that they see.
  template <class F>
  void each_by_queries(F&& f) const {
    for (int64_t r = 0; r < count; ++r) f(rectangles[r]);
  }
  /// Calls f(rectangle) for the pairs cut at every first and last key of a rectangle: each new rectangle has
  /// some keys and all neighbouring queries that see them.
  template <class F>
  void each_by_keys(F&& f) const {
    int64_t edges[2 * (tile / queries_per_group)] = {}, num_edges = 0;
    const auto insert_sorted = [&](int64_t key) {
      int64_t position = num_edges++;
      for (; position > 0 && edges[position - 1] > key; --position) edges[position] = edges[position - 1];
      edges[position] = key;
    };
    for (int64_t r = 0; r < count; ++r) {
      insert_sorted(rectangles[r].key_begin);
      insert_sorted(rectangles[r].key_end);
    }
    for (int64_t e = 0; e + 1 < num_edges; ++e) {
      const int64_t begin = edges[e], end = edges[e + 1];
      for (int64_t r = 0; begin < end && r < count; ++r) {
        if (!rectangles[r].contains_keys(begin, end)) continue;
        const int64_t query_begin = rectangles[r].query_begin;
        while (r + 1 < count && rectangles[r + 1].query_begin == rectangles[r].query_end &&
               rectangles[r + 1].contains_keys(begin, end))
          ++r;
        f(Rectangle{query_begin, rectangles[r].query_end, begin, end});
      }
    }
  }
};

}  // namespace heed::kernel

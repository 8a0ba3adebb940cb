// The tiles of dense attention: 64 queries and, in runs of 64, all the keys that they see.
#pragma once

#include <bit>

#include "heed/core/kernels/attention/attention_tiles.h"

namespace heed::kernel {

/// Tiles of a call in which every query sees all keys, except those past the key length, if causal those
/// after it, and those that a formula hides. See attention_tiles.h for the members.
template <class T>
struct DenseTiles {
  using Queries = QueryTile;
  static constexpr bool scattered_rows = false;
  const AttentionCall<T>& call;
  bool row_by_row = false;  ///< each query is computed by itself

  int64_t passes() const { return 1; }
  int64_t tile_queries() const { return row_by_row ? 1 : tile; }
  int64_t max_query_tiles() const { return ceil_div(call.Tq, tile_queries()); }
  int64_t query_tiles(int64_t b, int64_t, int64_t) const {
    return ceil_div(call.num_queries(b), tile_queries());
  }
  QueryTile query_tile(int64_t b, int64_t h, int64_t, int64_t n) const {
    const int64_t i = n * tile_queries();
    return {b, h, {i, std::min(tile_queries(), call.num_queries(b) - i)}, row_by_row};
  }
  int64_t flops_of_head() const { return 2 * call.Tq * call.Tk * (call.d + call.dv); }
  int64_t flops_of_tile() const {
    const int64_t flops =
        2 * std::min(call.Tq, tile_queries()) * std::max<int64_t>(call.Tk * (call.d + call.dv), 1);
    // A query by itself reads its keys and values once, so memory limits it: its task is small.
    constexpr int64_t slowdown = 64;
    return row_by_row ? slowdown * flops : flops;
  }

  /// Enough runs for sixteen threads.
  int64_t max_key_runs(int64_t heads) const { return 16 / heads; }

  bool sees(const QueryTile& queries, int64_t key_begin, int64_t key_end) const {
    const KeyBounds keys = seen_keys(queries, key_begin, key_end);
    return keys.begin < keys.end;
  }

  template <class F>
  void each_key_tile(const QueryTile& queries, int64_t key_begin, int64_t key_end, TilePair<T>& tile_pair,
                     F&& f) const {
    const auto [begin, end] = seen_keys(queries, key_begin, key_end);
    for (int64_t j = begin; j < end; j += tile) {
      const int64_t num_keys = std::min(tile, end - j);
      prepare(queries, j, num_keys, tile_pair);
      f(TileRows{j - key_begin, num_keys});
    }
  }

  template <class F>
  void each_key_list(const QueryTile& queries, int64_t i, int64_t key_begin, int64_t key_end, F&& f) const {
    int32_t key_index[tile];
    T bias[tile];
    const int64_t end = end_of_keys(queries, key_end);
    for (int64_t j = key_begin; j < end; j += tile) {
      const int64_t count = std::min(tile, end - j);
      for (int32_t n = 0; n < tile; ++n) key_index[n] = static_cast<int32_t>(j - key_begin) + n;
      for (int64_t n = 0; call.has_bias() && n < count; ++n) {
        T natural = call.bias == nullptr ? T(0) : *call.bias_at(queries.b, queries.h, i, j + n);
        if (call.relative != nullptr) natural += *call.relative_at(queries.h, i, j + n);
        bias[n] = natural * static_cast<T>(log2_e);
      }
      f(KeyList{key_index, count}, call.has_bias() ? static_cast<const T*>(bias) : nullptr,
        static_cast<const T*>(nullptr));
    }
  }

 private:
  /// One past the last key below key_end that one of the queries sees.
  int64_t end_of_keys(const QueryTile& queries, int64_t key_end) const {
    return std::min(key_end, call.num_keys_before(queries.b, queries.rows.first + queries.rows.count));
  }
  /// The keys of [key_begin, key_end) that the queries may see: from the first of a tile, counted from
  /// key_begin, to end_of_keys() or, if that is less, the bounds of the mask's formula.
  KeyBounds seen_keys(const QueryTile& queries, int64_t key_begin, int64_t key_end) const {
    const KeyBounds keys{key_begin, end_of_keys(queries, key_end)};
    if (call.mask_formula == nullptr || keys.begin >= keys.end) return keys;
    KeyBounds all{keys.end, keys.begin};
    for (int64_t n = 0; n < queries.rows.count; ++n) {
      const KeyBounds one =
          call.mask_formula->bounds(queries.b, queries.h, call.first_query + queries.rows[n]);
      if (one.begin >= one.end) continue;
      all.begin = std::min(all.begin, one.begin);
      all.end = std::max(all.end, one.end);
    }
    const int64_t skipped_tiles = (std::max(all.begin, keys.begin) - keys.begin) / tile;
    return {keys.begin + skipped_tiles * tile, std::min(keys.end, all.end)};
  }

  /// Sets the masks, bias and dropout of a tile of queries with keys [j, j + num_keys).
  void prepare(const QueryTile& queries, int64_t j, int64_t num_keys, TilePair<T>& tile_pair) const {
    const int64_t i = queries.rows.first, num_queries = queries.rows.count;
    // Number of these keys that the first query sees; each later query sees one more.
    const int64_t seen_by_first = call.causal ? i + call.first_query + 1 - j : num_keys;
    tile_pair.tile_mask.count = 0;
    tile_pair.modifiers = {};
    tile_pair.modifiers.softcap = call.softcap;
    if (call.score_formula != nullptr || call.mask_formula != nullptr)
      tile_pair.modifiers.pairs = {.batch = queries.b,
                                   .head = queries.h,
                                   .first_query = call.first_query + i,
                                   .queries = num_queries,
                                   .first_key = j,
                                   .keys = num_keys};
    tile_pair.modifiers.formula = call.score_formula;
    tile_pair.modifiers.slopes = tile_pair.slopes;
    if (call.mask_formula != nullptr) {
      ask_mask_formula(seen_by_first, tile_pair);
      if (tile_pair.tile_mask.count == 0) return;
    } else if (call.causal && seen_by_first < num_keys) {
      for (int64_t begin = 0; begin < num_queries; begin += TileMask::queries_per_group) {
        const int64_t end = std::min(begin + TileMask::queries_per_group, num_queries);
        tile_pair.tile_mask.add({.query_begin = begin,
                                 .query_end = end,
                                 .key_begin = 0,
                                 .key_end = std::clamp<int64_t>(seen_by_first + end - 1, 0, num_keys)});
      }
      for (int64_t query = 0; query < simd::padded<T>(num_queries); ++query)
        tile_pair.visible.set(query, low_bits(seen_by_first + query));
      tile_pair.modifiers.visible = &tile_pair.visible;
    } else {
      tile_pair.tile_mask.add({0, num_queries, 0, num_keys});
    }
    if (call.bias != nullptr) write_bias(queries, j, num_keys, tile_pair.bias);
    if (call.relative != nullptr) add_relative(queries, j, num_keys, tile_pair.bias);
    if (call.has_bias()) tile_pair.modifiers.bias = tile_pair.bias;
    if (call.has_dropout) {
      call.dropout.draw_keep_mask(call.dropout_index(queries.b, queries.h, i, j),
                                  static_cast<uint64_t>(call.Tk), num_queries, num_keys, seen_by_first,
                                  tile_pair.keep_mask);
      tile_pair.modifiers.keep_mask = &tile_pair.keep_mask;
      tile_pair.modifiers.keep_scale = call.keep_scale;
    }
  }

  /// Sets the mask of a tile to the pairs that the formula leaves visible, of those that a causal mask
  /// leaves. No rectangle: none.
  void ask_mask_formula(int64_t seen_by_first, TilePair<T>& tile_pair) const {
    const int64_t num_queries = tile_pair.modifiers.pairs.queries, num_keys = tile_pair.modifiers.pairs.keys;
    uint64_t visible[tile] = {};
    call.mask_formula->visible_keys(tile_pair.modifiers.pairs, visible);
    const uint64_t all_keys = low_bits(num_keys);
    bool sees_all = true;
    for (int64_t query = 0; query < num_queries; ++query) {
      if (call.causal) visible[query] &= low_bits(seen_by_first + query);
      sees_all = sees_all && visible[query] == all_keys;
    }
    for (int64_t begin = 0; begin < num_queries; begin += TileMask::queries_per_group) {
      const int64_t end = std::min(begin + TileMask::queries_per_group, num_queries);
      uint64_t seen = 0;
      for (int64_t query = begin; query < end; ++query) seen |= visible[query];
      if (seen == 0) continue;
      tile_pair.tile_mask.add({.query_begin = begin,
                               .query_end = end,
                               .key_begin = std::countr_zero(seen),
                               .key_end = tile - std::countl_zero(seen)});
    }
    if (sees_all) return;
    for (int64_t query = 0; query < simd::padded<T>(num_queries); ++query)
      tile_pair.visible.set(query, visible[query]);
    tile_pair.modifiers.visible = &tile_pair.visible;
  }

  /// bias [keys, padded queries] += the relative bias in log2 units; = it where the call has no other bias.
  void add_relative(const QueryTile& queries, int64_t first_key, int64_t num_keys, T* bias) const {
    const int64_t padded_queries = simd::padded<T>(queries.rows.count);
    if (call.bias == nullptr) std::fill_n(bias, num_keys * padded_queries, T(0));
    for (int64_t j = 0; j < num_keys; ++j) {
      const T* relative = call.relative_at(queries.h, queries.rows.first, first_key + j);
      for (int64_t i = 0; i < queries.rows.count; ++i)
        bias[j * padded_queries + i] += relative[i] * static_cast<T>(log2_e);
    }
  }

  /// bias [keys, padded queries] = the bias of each pair in log2 units.
  void write_bias(const QueryTile& queries, int64_t first_key, int64_t num_keys, T* bias) const {
    const int64_t num_queries = queries.rows.count, padded_queries = simd::padded<T>(num_queries),
                  query_stride = call.bias_stride[2], key_stride = call.bias_stride[3];
    const T* natural = call.bias_at(queries.b, queries.h, queries.rows.first, first_key);
    const T unit = static_cast<T>(log2_e);
    if (query_stride == 0) {
      for (int64_t j = 0; j < num_keys; ++j)
        std::fill_n(bias + j * padded_queries, padded_queries, natural[j * key_stride] * unit);
    } else if (key_stride == 1) {
      simd::scaled_transpose(natural, query_stride, num_queries, num_keys, unit, bias, padded_queries);
    } else {
      for (int64_t j = 0; j < num_keys; ++j) {
        std::fill_n(bias + j * padded_queries, padded_queries, T(0));
        for (int64_t i = 0; i < num_queries; ++i)
          bias[j * padded_queries + i] = natural[i * query_stride + j * key_stride] * unit;
      }
    }
  }
};

}  // namespace heed::kernel

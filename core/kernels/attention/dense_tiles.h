// The tiles of dense attention: 64 queries and, in runs of 64, all the keys that they see.
#pragma once

#include "heed/core/kernels/attention/attention_tiles.h"

namespace heed::kernel {

/// Tiles of a call in which every query sees all keys, except those past the key length and, if causal, those
/// after it. See attention_tiles.h for the members.
template <class T>
struct DenseTiles {
  using Queries = QueryTile;
  static constexpr bool scattered_rows = false;
  const Call<T>& call;
  bool alone = false;  ///< each query is computed by itself

  int64_t passes() const { return 1; }
  int64_t tile_queries() const { return alone ? 1 : tile; }
  int64_t max_query_tiles() const { return ceil_div(call.Tq, tile_queries()); }
  int64_t query_tiles(int64_t, int64_t) const { return max_query_tiles(); }
  QueryTile query_tile(int64_t b, int64_t h, int64_t, int64_t n) const {
    const int64_t i = n * tile_queries();
    return {b, h, {i, std::min(tile_queries(), call.Tq - i)}, alone};
  }
  int64_t flops_of_head() const { return 2 * call.Tq * call.Tk * (call.d + call.dv); }
  int64_t flops_of_tile() const {
    const int64_t flops =
        2 * std::min(call.Tq, tile_queries()) * std::max<int64_t>(call.Tk * (call.d + call.dv), 1);
    // A query alone reads its keys and values once, so memory limits it: its task is small.
    return alone ? 64 * flops : flops;
  }

  int64_t max_key_runs(int64_t heads) const { return 16 / heads; }

  bool sees(const QueryTile& queries, int64_t key_begin, int64_t key_end) const {
    return key_begin < end_of_keys(queries, key_end);
  }

  template <class F>
  void each_key_tile(const QueryTile& queries, int64_t key_begin, int64_t key_end, StepParams<T>& step,
                     F&& f) const {
    const int64_t end = end_of_keys(queries, key_end);
    for (int64_t j = key_begin; j < end; j += tile) {
      const int64_t num_keys = std::min(tile, end - j);
      prepare(queries, j, num_keys, step);
      f(TileRows{j - key_begin, num_keys});
    }
  }

  template <class F>
  void each_key_list(const QueryTile& queries, int64_t i, int64_t key_begin, int64_t key_end, F&& f) const {
    int32_t index[tile];
    T bias[tile];
    const int64_t end = end_of_keys(queries, key_end);
    for (int64_t j = key_begin; j < end; j += tile) {
      const int64_t count = std::min(tile, end - j);
      for (int32_t n = 0; n < tile; ++n) index[n] = static_cast<int32_t>(j - key_begin) + n;
      for (int64_t n = 0; call.has_bias() && n < count; ++n) {
        T sum = call.bias == nullptr ? T(0) : *call.bias_at(queries.b, queries.h, i, j + n);
        if (call.relative != nullptr) sum += *call.relative_at(queries.h, i, j + n);
        bias[n] = sum * static_cast<T>(log2_e);
      }
      f(KeyList{index, count}, call.has_bias() ? static_cast<const T*>(bias) : nullptr,
        static_cast<const T*>(nullptr));
    }
  }

 private:
  /// One past the last key below key_end that one of the queries sees.
  int64_t end_of_keys(const QueryTile& queries, int64_t key_end) const {
    return std::min(key_end, call.num_keys_before(queries.b, queries.rows.first + queries.rows.count));
  }

  /// Masks, bias and dropout of a tile of queries with keys [j, j + num_keys).
  void prepare(const QueryTile& of, int64_t j, int64_t num_keys, StepParams<T>& step) const {
    const int64_t i = of.rows.first, num_queries = of.rows.count;
    // Number of these keys that the first query sees; each later query sees one more.
    const int64_t seen_by_first = call.causal ? i + call.first_query + 1 - j : num_keys;
    step.tile_mask.count = 0;
    step.modifiers = {};
    step.modifiers.softcap = call.softcap;
    if (call.causal && seen_by_first < num_keys) {
      for (int64_t g = 0; g < num_queries; g += TileMask::group) {
        const int64_t end = std::min(g + TileMask::group, num_queries);
        step.tile_mask.add({g, end, 0, std::clamp<int64_t>(seen_by_first + end - 1, 0, num_keys)});
      }
      for (int64_t lane = 0; lane < simd::padded<T>(num_queries); ++lane)
        step.visible.set(lane, low_bits(seen_by_first + lane));
      step.modifiers.visible = &step.visible;
    } else {
      step.tile_mask.add({0, num_queries, 0, num_keys});
    }
    if (call.bias != nullptr) add_bias(of, j, num_keys, step.bias);
    if (call.relative != nullptr) add_relative(of, j, num_keys, step.bias);
    if (call.has_bias()) step.modifiers.bias = step.bias;
    if (call.has_dropout) {
      call.dropout.fill(call.dropout_index(of.b, of.h, i, j), static_cast<uint64_t>(call.Tk), num_queries,
                        num_keys, seen_by_first, step.keep_mask);
      step.modifiers.keep_mask = &step.keep_mask;
      step.modifiers.keep_scale = call.keep_scale;
    }
  }

  /// bias [key, query] += the relative bias of each pair in log2 units; = where the call has no other bias.
  void add_relative(const QueryTile& of, int64_t j, int64_t keys, T* bias) const {
    const int64_t width = simd::padded<T>(of.rows.count);
    if (call.bias == nullptr) std::fill_n(bias, keys * width, T(0));
    for (int64_t key = 0; key < keys; ++key) {
      const T* from = call.relative_at(of.h, of.rows.first, j + key);
      for (int64_t q = 0; q < of.rows.count; ++q) bias[key * width + q] += from[q] * static_cast<T>(log2_e);
    }
  }

  /// bias [key, query] = the bias of each pair in log2 units.
  void add_bias(const QueryTile& of, int64_t j, int64_t keys, T* bias) const {
    const int64_t* stride = call.bias_stride;
    const int64_t queries = of.rows.count, width = simd::padded<T>(queries);
    const T* from = call.bias_at(of.b, of.h, of.rows.first, j);
    const T unit = static_cast<T>(log2_e);
    if (stride[2] == 0) {
      for (int64_t key = 0; key < keys; ++key)
        std::fill_n(bias + key * width, width, from[key * stride[3]] * unit);
    } else if (stride[3] == 1) {
      simd::scaled_transpose(from, stride[2], queries, keys, unit, bias, width);
    } else {
      for (int64_t key = 0; key < keys; ++key) {
        std::fill_n(bias + key * width, width, T(0));
        for (int64_t q = 0; q < queries; ++q)
          bias[key * width + q] = from[q * stride[2] + key * stride[3]] * unit;
      }
    }
  }
};

}  // namespace heed::kernel

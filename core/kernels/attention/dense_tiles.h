// The tiles of dense attention: 64 queries and, in runs of 64, all the keys that they see.
#pragma once

#include "heed/core/kernels/attention/attention_tiles.h"

namespace heed::kernel {

/// Every query sees all keys, less those past the key length and, if causal, those after the query.
template <class T>
struct DenseTiles {
  using Queries = QueryTile;
  static constexpr bool scattered_rows = false;
  const Call<T>& call;
  bool alone = false;  ///< queries go one at a time

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

  int64_t key_runs(int64_t heads) const { return 16 / heads; }

  bool sees(const QueryTile& queries, int64_t first, int64_t last) const {
    return first < end_of_keys(queries, last);
  }

  template <class F>
  void each_key_tile(const QueryTile& queries, int64_t first, int64_t last, StepParams<T>& step,
                     F&& f) const {
    const int64_t end = end_of_keys(queries, last);
    for (int64_t j = first; j < end; j += tile) {
      const int64_t keys = std::min(tile, end - j);
      prepare(queries, j, keys, step);
      f(TileRows{j - first, keys});
    }
  }

  template <class F>
  void each_pick(const QueryTile& queries, int64_t i, int64_t first, int64_t last, F&& f) const {
    int32_t index[tile];
    T bias[tile];
    for (int64_t j = first, end = end_of_keys(queries, last); j < end; j += tile) {
      const int64_t count = std::min(tile, end - j);
      for (int32_t n = 0; n < tile; ++n) index[n] = static_cast<int32_t>(j - first) + n;
      for (int64_t n = 0; call.added() && n < count; ++n) {
        T more = call.bias == nullptr ? T(0) : *call.bias_at(queries.b, queries.h, i, j + n);
        if (call.relative != nullptr) more += *call.relative_at(queries.h, i, j + n);
        bias[n] = more * static_cast<T>(log2_e);
      }
      f(Picked{index, count}, call.added() ? static_cast<const T*>(bias) : nullptr,
        static_cast<const T*>(nullptr));
    }
  }

 private:
  int64_t end_of_keys(const QueryTile& queries, int64_t last) const {
    return std::min(last, call.keys_before(queries.b, queries.rows.first + queries.rows.count));
  }

  /// The params of a tile of queries against keys [j, j + keys).
  void prepare(const QueryTile& of, int64_t j, int64_t keys, StepParams<T>& step) const {
    const int64_t i = of.rows.first, queries = of.rows.count;
    step.tile_mask.steps = 0;
    step.modifiers = {};
    step.modifiers.cap = call.cap;
    if (call.causal && i + call.first_query + 1 < j + keys) {
      const int64_t first_sees = i + call.first_query + 1 - j;  // keys of this step that the first query sees
      for (int64_t g = 0; g < queries; g += TileMask::group) {
        const int64_t end = std::min(g + TileMask::group, queries);
        step.tile_mask.add({g, end, 0, std::clamp<int64_t>(first_sees + end - 1, 0, keys)});
      }
      for (int64_t lane = 0; lane < simd::padded<T>(queries); ++lane)
        step.visible.set(lane, low_bits(first_sees + lane));
      step.modifiers.visible = &step.visible;
    } else {
      step.tile_mask.add({0, queries, 0, keys});
    }
    if (call.bias != nullptr) add_bias(of, j, keys, step.bias);
    if (call.relative != nullptr) add_relative(of, j, keys, step.bias);
    if (call.added()) step.modifiers.bias = step.bias;
    if (call.dropped) {
      const int64_t first_sees = call.causal ? i + call.first_query + 1 - j : keys;
      call.dropout.fill(call.element(of.b, of.h, i, j), static_cast<uint64_t>(call.Tk), queries, keys,
                        first_sees, step.keep_mask);
      step.modifiers.keep_mask = &step.keep_mask;
      step.modifiers.keep_scale = call.keep_scale;
    }
  }

  /// bias [key, query] += the relative bias of each pair in log2 units.
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

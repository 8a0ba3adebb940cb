// Rows of a head that belong to one tile: reads them in place, gathers them, or adds sums to them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "heed/core/kernels/attention/attention_tile.h"

namespace heed::kernel {

/// Row numbers of a tile, at most `tile` of them.
struct TileRows {
  int64_t first, count;
  int64_t gap = 1;                 ///< distance between row numbers; 0: uneven
  const int32_t* index = nullptr;  ///< the row numbers; may be null where gap is 1

  int64_t operator[](int64_t n) const { return gap == 1 ? first + n : index[n]; }
};

/// Number of elements of a tile of rows, each padded to whole vectors.
template <class T>
int64_t padded_tile_size(int64_t width) {
  return BumpAllocator<T>::rounded(tile * simd::padded<T>(width));
}

/// Number of rows that a gather prefetches ahead: enough to hide the latency of the last-level cache.
inline constexpr int64_t prefetch_distance = 32;

/// gathered [count, padded width] = x[rows], padded with zeros. Needs rows.index.
template <class T>
void gather_rows(Rows<T> x, const TileRows& rows, int64_t width, T* gathered) {
  const int64_t padded_width = simd::padded<T>(width);
  for (int64_t n = 0; n < std::min(prefetch_distance, rows.count); ++n)
    fetch_rows(x.row(rows.index[n]), x.ld, 1, width);
  for (int64_t n = 0; n < rows.count; ++n) {
    if (n + prefetch_distance < rows.count)
      fetch_rows(x.row(rows.index[n + prefetch_distance]), x.ld, 1, width);
    simd::scaled(x.row(rows.index[n]), width, T(1), gathered + n * padded_width);
    std::fill(gathered + n * padded_width + width, gathered + (n + 1) * padded_width, T(0));
  }
}

/// True where rows `gap` apart are better read in place than gathered. Rows further apart would compete for
/// the same sets of the cache.
template <class T>
bool is_used_in_place(int64_t gap, int64_t ld) {
  constexpr int64_t max_bytes_apart = 1024;
  return gap == 1 || (gap > 1 && gap * ld * static_cast<int64_t>(sizeof(T)) <= max_bytes_apart);
}

/// x[rows]: in place where is_used_in_place(), else gathered into `copy` [64, padded width].
template <class T>
Rows<T> rows_of(Rows<T> x, const TileRows& rows, int64_t width, T* copy) {
  if (is_used_in_place<T>(rows.gap, x.ld)) return {x.row(rows.first), rows.gap * x.ld};
  gather_rows(x, rows, width, copy);
  return {copy, simd::padded<T>(width)};
}

/// sums[rows] += tile_sums [count, padded width]; then zeroes tile_sums for the next tile. Needs rows.index.
template <class T>
void scatter_rows(T* tile_sums, const TileRows& rows, int64_t padded_width, SumRows<T> sums) {
  constexpr int lanes = simd::Lanes<T>::count;
  for (int64_t r = 0; r < std::min(prefetch_distance, rows.count); ++r)
    fetch_rows(sums.row(rows.index[r]), padded_width, 1, padded_width);
  for (int64_t r = 0; r < rows.count; ++r) {
    if (r + prefetch_distance < rows.count)
      fetch_rows(sums.row(rows.index[r + prefetch_distance]), padded_width, 1, padded_width);
    T *addend = tile_sums + r * padded_width, *sum = sums.row(rows.index[r]);
    for (int64_t c = 0; c < padded_width; c += lanes) {
      simd::store(sum + c, simd::load(sum + c) + simd::load(addend + c));
      simd::store(addend + c, simd::Vector<T>{});
    }
  }
}

}  // namespace heed::kernel

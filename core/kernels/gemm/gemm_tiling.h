// How matrix products on the CPU are cut into tiles, which depend on the shape alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/gemm/gemm_few_rows.h"
#include "heed/core/kernels/gemm/gemm_layout.h"
#include "heed/core/kernels/gemm/gemm_tiles.h"
#include "heed/core/kernels/simd/scratch.h"
#include "heed/core/kernels/simd/strided_loops.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {

/// Sizes of the pieces of one matrix product of the batch: tiles of rows x columns, and chunks of the inner
/// extent whose results are added in order.
struct TileSizes {
  int64_t rows, columns, inner;
};

/// Number of pieces of a matrix product: one below 60 us of a core, else few and large ones, since each piece
/// packs its operands again.
inline int64_t num_pieces(int64_t flops) {
  if (flops < 12'000'000) return 1;
  if (flops < 50'000'000) return 2;
  if (flops < 400'000'000) return 4;
  if (flops < 1'600'000'000) return 8;
  return std::clamp<int64_t>(flops / 400'000'000, 16, 128);
}

/// Number of pieces of a product of at most few_rows::max_rows rows: each reads some microseconds.
inline int64_t num_reading_pieces(int64_t elements) { return std::clamp<int64_t>(elements >> 15, 1, 64); }

/// The size of each of `parts` parts of an extent, a multiple of `unit`.
inline int64_t part_size(int64_t extent, int64_t parts, int64_t unit) {
  return std::max<int64_t>(1, ceil_div(ceil_div(extent, parts), unit) * unit);
}

/// Sizes of the pieces, found by halving axes until pieces are enough: columns first, because a packed strip
/// of them serves all rows of its tile, until tiles have four times as many rows as columns. The inner extent
/// is cut where tiles would become too small: gradients of weights have few results and long sums.
/// Pieces of the inner extent are multiples of `inner_unit`.
inline TileSizes tile_sizes(int64_t m, int64_t n, int64_t k, int64_t batch, int64_t inner_unit) {
  constexpr int64_t strip = tiles::columns;
  if (m <= few_rows::max_rows) {
    const int64_t parts = ceil_div(num_reading_pieces(n * k * batch), batch);
    if (n >= parts * strip)
      return {part_size(m, 1, 12), part_size(n, parts, strip / 2), part_size(k, 1, inner_unit)};
  }
  // With few rows the time is that of reading b, about that of sixteen rows.
  const int64_t min_pieces = ceil_div(num_pieces(2 * std::max<int64_t>(m, 16) * n * k * batch), batch);
  int64_t row_cuts = 1, column_cuts = 1, chunks = 1;
  while (row_cuts * column_cuts * chunks < min_pieces) {
    const int64_t rows = m / row_cuts, strips = ceil_div(n, strip) / column_cuts, inner = k / chunks;
    const bool may_halve_strips = strips % 2 == 0 || rows < 192;
    if (strips >= 2 && may_halve_strips && (4 * strips * strip >= rows || rows < 128))
      column_cuts *= 2;
    else if (rows >= 96)
      row_cuts *= 2;
    else if (strips >= 2)
      column_cuts *= 2;
    else if (inner >= 1024)
      chunks *= 2;
    else
      break;
  }
  return {part_size(m, row_cuts, 12), part_size(n, column_cuts, strip), part_size(k, chunks, inner_unit)};
}

/// A part of one matrix product of the batch: of rows [row, row + rows) and columns [column, column +
/// columns) of the result, the sum over [inner, inner + depth) of the inner extent.
struct Tile {
  int64_t matrix, row, column, inner, rows, columns, depth;
};

/// The tiles of a batch of matrix products [m, k] [k, n].
struct Tiling {
  int64_t m, n, k, batch;
  TileSizes cut;

  Tiling(int64_t num_rows, int64_t num_columns, int64_t inner, int64_t num_matrices, int64_t inner_unit)
      : m(num_rows),
        n(num_columns),
        k(inner),
        batch(num_matrices),
        cut(tile_sizes(m, n, k, batch, inner_unit)) {}

  int64_t chunks() const { return ceil_div(k, cut.inner); }          ///< pieces of the inner extent
  int64_t tile_rows() const { return ceil_div(m, cut.rows); }        ///< tiles one below the other
  int64_t tile_columns() const { return ceil_div(n, cut.columns); }  ///< tiles side by side
  int64_t tiles() const { return tile_rows() * tile_columns(); }     ///< tiles of a matrix
  /// Tile number i of a chunk of the inner extent, of all batch * tiles().
  Tile at(int64_t i, int64_t chunk = 0) const {
    const int64_t row = i / tile_columns() % tile_rows() * cut.rows,
                  column = i % tile_columns() * cut.columns, inner = chunk * cut.inner;
    return {.matrix = i / tiles(),
            .row = row,
            .column = column,
            .inner = inner,
            .rows = std::min(cut.rows, m - row),
            .columns = std::min(cut.columns, n - column),
            .depth = std::min(cut.inner, k - inner)};
  }

  /// Calls compute(tile, memory) for all tiles, where the inner extent is in one piece. One task is some
  /// tiles and has `bytes` of memory.
  template <class Compute>
  void by_tiles(int64_t bytes, const Compute& compute) const {
    // Small matrices are grouped into tasks of about ten microseconds.
    const int64_t grain = tiles() > 1 ? 1 : (int64_t{1} << 20) / std::max<int64_t>(1, m * n * k);
    std::optional<Scratch> scratch;
    if (bytes > 0) scratch.emplace(bytes);
    parallel_rows(batch * tiles(), grain, [&](int64_t begin, int64_t end) {
      std::optional<Scratch::Part> part;
      if (scratch) part.emplace(*scratch);
      for (int64_t i = begin; i < end; ++i) compute(at(i), part ? part->template data<char>() : nullptr);
    });
  }

  /// Calls compute(tile, sum, ld) for the tiles of all chunks of the inner extent, each of which is written
  /// to `sum` with rows ld apart, then put(matrix, row, sum) with each row of the sum over all chunks. One
  /// task is one tile of one chunk.
  template <class T, class Compute, class Put>
  void by_chunks(const Compute& compute, const Put& put) const {
    const Tensor partial(Shape{chunks(), batch, m, n}, dtype_of<T>);
    T* parts = partial.data<T>();
    parallel_for(batch * chunks() * tiles(), [&](int64_t i) {
      const int64_t matrix = i / (tiles() * chunks()), chunk = i / tiles() % chunks();
      const Tile tile = at(matrix * tiles() + i % tiles(), chunk);
      compute(tile, parts + ((chunk * batch + matrix) * m + tile.row) * n + tile.column, n);
    });
    parallel_rows(batch * m, light_grain / (chunks() * n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* sum = parts + i * n;
        for (int64_t chunk = 1; chunk < chunks(); ++chunk) {
          const T* chunk_row = sum + chunk * batch * m * n;
#pragma GCC ivdep
          for (int64_t j = 0; j < n; ++j) sum[j] += chunk_row[j];
        }
        put(i / m, i % m, sum);
      }
    });
  }
};

/// Adds c = a b, or c += a b where beta is not 0, to the operation count and the ProductLog.
inline void count_product(const Tensor& a, const Tensor& b, const Tensor& c, double beta, bool rounded) {
  const int64_t m = c.extent(-2), n = c.extent(-1), k = a.extent(-1), batch = c.size() / (m * n);
  Count::add(2 * m * n * k * batch);
  ProductLog::note({.batch = batch,
                    .m = m,
                    .n = n,
                    .k = k,
                    .a_transposed = layout(a).transposed,
                    .b_transposed = layout(b).transposed,
                    .accumulates = beta != 0,
                    .rounding = rounded ? Rounding::bf16 : Rounding::none});
}

}  // namespace heed::kernel

// Matrix products on the CPU, cut into tiles that depend on the shape alone. Each tile is computed by one
// thread: in f32 by the loops of gemm_tiles.h where the CPU has 64-byte vectors, else by OpenBLAS with one
// thread.
#include "heed/core/kernels/gemm/gemm.h"

#include <algorithm>
#include <optional>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/kernels/gemm/gemm_bf16.h"
#include "heed/core/kernels/gemm/gemm_layout.h"
#include "heed/core/kernels/gemm/gemm_tiles.h"
#include "heed/core/kernels/simd/scratch.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/kernels/simd/strided_loops.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/blas.h"

namespace heed::kernel {
namespace {

/// The left operand in the terms of the kernels for f32, which not every instruction set has.
[[maybe_unused]] tiles::Left left_operand(const float* a, Layout layout) {
  return {a, layout.transposed ? 1 : layout.step, layout.transposed ? layout.step : 1};
}

/// c [m, n] = alpha a b + beta c for a [m, k] and b [k, n] of layouts a_layout and b_layout, in this thread.
template <class T>
void multiply(Layout a_layout, Layout b_layout, int64_t m, int64_t n, int64_t k, T alpha, const T* a,
              const T* b, T beta, T* c, int64_t ldc) {
  if constexpr (std::is_same_v<T, float>) {
    if constexpr (tiles::worthwhile)
      return tiles::multiply(left_operand(a, a_layout), {b, b_layout.step, b_layout.transposed}, c, ldc, m, n,
                             k, {alpha, beta});
    // BLAS packs b even for a single row, as in decoding: five times the time of reading it.
    const bool are_rows_contiguous = b_layout.transposed && !a_layout.transposed;
    if (tiles::rows_worthwhile && m <= 2 && are_rows_contiguous && k >= 2 * tiles::width) {
      for (int64_t r = 0; r < m; ++r)
        tiles::multiply_dots({a + r * a_layout.step, a_layout.step, 1}, b, b_layout.step, c + r * ldc, ldc, 1,
                             n, k, {alpha, beta});
      return;
    }
  }
  blas::gemm(m, n, k, alpha, {a, a_layout.step, a_layout.transposed}, {b, b_layout.step, b_layout.transposed},
             beta, c, ldc);
}

/// Sizes of the pieces of one matrix product of the batch: tiles of rows x columns, and chunks of the inner
/// extent whose results are added in order.
struct TileSizes {
  int64_t rows, columns, inner;
};

/// Number of pieces of a matrix product: one below 60 us of a core, else few and large ones, since each piece
/// packs its operands again.
int64_t num_pieces(int64_t flops) {
  if (flops < 12'000'000) return 1;
  if (flops < 50'000'000) return 2;
  if (flops < 400'000'000) return 4;
  if (flops < 1'600'000'000) return 8;
  return std::clamp<int64_t>(flops / 400'000'000, 16, 128);
}

/// Up to this number of rows, a matrix product takes the time of reading its right operand. Each piece then
/// reads some microseconds.
constexpr int64_t max_reading_rows = 6;
int64_t num_reading_pieces(int64_t elements) { return std::clamp<int64_t>(elements >> 15, 1, 64); }

/// The size of each of `parts` parts of an extent, a multiple of `unit`.
int64_t part_size(int64_t extent, int64_t parts, int64_t unit) {
  return std::max<int64_t>(1, ceil_div(ceil_div(extent, parts), unit) * unit);
}

/// Sizes of the pieces, found by halving axes until pieces are enough: columns first, because a packed strip
/// of them serves all rows of its tile, until tiles have four times as many rows as columns. The inner extent
/// is cut where tiles would become too small: gradients of weights have few results and long sums.
/// Pieces of the inner extent are multiples of `inner_unit`.
TileSizes tile_sizes(int64_t m, int64_t n, int64_t k, int64_t batch, int64_t inner_unit) {
  constexpr int64_t strip = tiles::columns;
  if (m <= max_reading_rows) {
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

/// The matrices of one product of the batch.
template <class T>
struct Matrices {
  const T* a;
  const T* b;
  T* c;
};

/// Left rows that are rounded and packed at a time.
constexpr int64_t rows_packed_at_once = 64;

/// All matrix products of a batch.
template <class T>
struct Products {
  Layout a_layout, b_layout;
  int64_t ldc, m, n, k;
  T alpha, beta;
  StridedLoop<3> loop;
  Matrices<T> first;
  int64_t batch;
  const uint32_t* packed = nullptr;  ///< each matrix product's packed left operand, then right one; or null
  bool packs_rows_in_tiles = false;  ///< only right operands are packed there: each tile packs its left rows

  /// result = alpha a b + result_factor result for the tile that starts at (row, column), over the chunk of
  /// the inner extent that starts at `inner`.
  /// `memory` is for packs_rows_in_tiles.
  void tile(int64_t matrix, int64_t row, int64_t column, int64_t inner, const TileSizes& cut, T result_factor,
            T* result, int64_t ld, uint32_t* memory = nullptr) const {
    const int64_t rows = std::min(cut.rows, m - row), columns = std::min(cut.columns, n - column),
                  depth = std::min(cut.inner, k - inner);
    if constexpr (std::is_same_v<T, float> && bf16_tiles::built) {
      if (packed != nullptr) {
        const bf16_tiles::Packed shape{m, n, k};
        if (packs_rows_in_tiles)
          return rows_in_turn(matrix, row, rows, column, columns, {alpha, result_factor}, result, ld, memory);
        const uint32_t* left = packed + matrix * (shape.left_words() + shape.right_words());
        const uint32_t* right = left + shape.left_words();
        return bf16_tiles::multiply(shape, left + row * shape.pairs(), right + column * shape.pairs(), rows,
                                    columns, inner, depth, {alpha, result_factor}, result, ld);
      }
    }
    const Matrices<T> matrices = matrices_of(matrix);
    multiply(a_layout, b_layout, rows, columns, depth, alpha, matrices.a + a_layout.at(row, inner),
             matrices.b + b_layout.at(inner, column), result_factor, result, ld);
  }

  /// tile() over the whole inner extent, which packs 64 left rows at a time into `memory`.
  void rows_in_turn(int64_t matrix, int64_t row, int64_t rows, int64_t column, int64_t columns,
                    tiles::Factors factors, float* result, int64_t ld, uint32_t* memory) const {
    const bf16_tiles::Packed shape{m, n, k};
    const uint32_t* right = packed + matrix * shape.right_words() + column * shape.pairs();
    const T* a = matrices_of(matrix).a;
    for (int64_t i = 0; i < rows; i += rows_packed_at_once) {
      const int64_t count = std::min(rows_packed_at_once, rows - i);
      bf16_tiles::pack_left(left_operand(a + a_layout.at(row + i, 0), a_layout), 0, count, k, memory);
      bf16_tiles::multiply(shape, memory, right, count, columns, 0, k, factors, result + i * ld, ld);
    }
  }
  /// Bytes of the memory of rows_in_turn(), with rows that bf16_tiles::multiply() may read past the last.
  int64_t bytes_of_rows() const { return (rows_packed_at_once + 16) * bf16_tiles::pairs_of(k) * 4; }

  /// Rounds and packs the operands of all matrices. One task is some parts: runs of 64 left rows or right
  /// strips.
  Tensor pack() const {
    if constexpr (std::is_same_v<T, float> && bf16_tiles::built) {
      const bf16_tiles::Packed shape{m, n, k};
      const int64_t left_words = packs_rows_in_tiles ? 0 : shape.left_words(),
                    words_per_matrix = left_words + shape.right_words();
      const Tensor words(Shape{batch * words_per_matrix}, DType::i32);
      auto* all_packed = reinterpret_cast<uint32_t*>(words.data<int32_t>());
      constexpr int64_t rows = rows_packed_at_once;
      const int64_t left_parts = packs_rows_in_tiles ? 0 : ceil_div(m, rows),
                    parts = left_parts + shape.strips();
      parallel_rows(batch * parts, std::max<int64_t>(1, light_grain / (rows * k)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        const Matrices<T> matrices = matrices_of(i / parts);
                        uint32_t* left = all_packed + i / parts * words_per_matrix;
                        const int64_t part = i % parts, row = part * rows;
                        if (part < left_parts) {
                          bf16_tiles::pack_left(left_operand(matrices.a, a_layout), row,
                                                std::min(row + rows, m), k, left);
                        } else {
                          bf16_tiles::pack_right({matrices.b, b_layout.step, b_layout.transposed},
                                                 part - left_parts, n, k, left + left_words);
                        }
                      }
                    });
      return words;
    }
    return {};
  }

  /// The matrices of product number `matrix` of the batch.
  Matrices<T> matrices_of(int64_t matrix) const {
    const auto offsets = loop.at(matrix / loop.inner);
    const int64_t j = matrix % loop.inner;
    return {first.a + offsets[0] + j * loop.steps[0], first.b + offsets[1] + j * loop.steps[1],
            first.c + offsets[2] + j * loop.steps[2]};
  }

  /// c = alpha a b + beta c for all matrices. One task is some tiles.
  void by_tiles(const TileSizes& cut) const {
    const int64_t tile_rows = ceil_div(m, cut.rows), tile_columns = ceil_div(n, cut.columns);
    // Small matrices are grouped into tasks of about ten microseconds.
    const int64_t grain =
        tile_rows * tile_columns > 1 ? 1 : (int64_t{1} << 20) / std::max<int64_t>(1, m * n * k);
    std::optional<Scratch> scratch;
    if (packs_rows_in_tiles) scratch.emplace(bytes_of_rows());
    parallel_rows(batch * tile_rows * tile_columns, grain, [&](int64_t begin, int64_t end) {
      std::optional<Scratch::Part> part;
      if (scratch) part.emplace(*scratch);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t matrix = i / (tile_rows * tile_columns);
        const int64_t row = i / tile_columns % tile_rows * cut.rows, column = i % tile_columns * cut.columns;
        tile(matrix, row, column, 0, cut, beta, matrices_of(matrix).c + row * ldc + column, ldc,
             part ? part->template data<uint32_t>() : nullptr);
      }
    });
  }

  /// c = alpha a b + beta c, where the inner extent is cut into chunks: one task is one tile of one chunk,
  /// whose results are then added in order.
  void by_chunks(const TileSizes& cut) const {
    const int64_t tile_rows = ceil_div(m, cut.rows), tile_columns = ceil_div(n, cut.columns),
                  chunks = ceil_div(k, cut.inner);
    const Tensor partial(Shape{chunks, batch, m, n}, dtype_of<T>);
    T* parts = partial.data<T>();
    parallel_for(batch * chunks * tile_rows * tile_columns, [&](int64_t i) {
      const int64_t matrix = i / tile_columns / tile_rows / chunks;
      const int64_t row = i / tile_columns % tile_rows * cut.rows, column = i % tile_columns * cut.columns;
      const int64_t chunk = i / tile_columns / tile_rows % chunks;
      tile(matrix, row, column, chunk * cut.inner, cut, T(0),
           parts + ((chunk * batch + matrix) * m + row) * n + column, n);
    });
    parallel_rows(batch * m, light_grain / (chunks * n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* c_row = matrices_of(i / m).c + i % m * ldc;
        T* sum = parts + i * n;
        for (int64_t chunk = 1; chunk < chunks; ++chunk) {
          const T* chunk_row = sum + chunk * batch * m * n;
#pragma GCC ivdep
          for (int64_t j = 0; j < n; ++j) sum[j] += chunk_row[j];
        }
#pragma GCC ivdep
        for (int64_t j = 0; j < n; ++j) c_row[j] = beta == T(0) ? sum[j] : sum[j] + beta * c_row[j];
      }
    });
  }
};

/// c = alpha a b + beta c for every matrix of the batch, cut into tiles fixed by the shape. One task is some
/// tiles; where the inner extent is cut too, one chunk of one tile, and the chunks are added in order.
template <class T>
void gemm(const Tensor& a, const Tensor& b, const Tensor& c, T alpha, T beta, bool rounded) {
  const int64_t m = c.extent(-2), n = c.extent(-1), k = a.extent(-1);
  if (c.size() == 0) return;
  // BLAS rejects the leading dimension of a matrix without columns.
  if (k == 0)
    return beta == T(0) ? Fill::cpu<target_isa>(c, 0)
                        : Affine::cpu<target_isa>(c, static_cast<double>(beta), 0, c);
  const StridedLoop<3> loop = batch_loop(a, b, c);
  const int64_t batch = loop.inner * loop.outer;
  const TileSizes cut = tile_sizes(m, n, k, batch, rounded ? bf16_tiles::inner_unit : 16);
  Products<T> products{.a_layout = layout(a),
                       .b_layout = layout(b),
                       .ldc = m == 1 ? n : c.strides()[-2],
                       .m = m,
                       .n = n,
                       .k = k,
                       .alpha = alpha,
                       .beta = beta,
                       .loop = loop,
                       .first = {a.data<T>(), b.data<T>(), c.data<T>()},
                       .batch = batch};
  // In bf16 operands are rounded and packed first, but for left rows that one tile alone reads.
  products.packs_rows_in_tiles = rounded && cut.columns >= n && cut.inner >= k;
  const Tensor packed = rounded ? products.pack() : Tensor();
  if (packed) products.packed = reinterpret_cast<const uint32_t*>(packed.data<int32_t>());
  if (cut.inner < k) {
    products.by_chunks(cut);
  } else {
    products.by_tiles(cut);
  }
  Count::add(2 * m * n * k * products.batch);
  ProductLog::note({.batch = products.batch,
                    .m = m,
                    .n = n,
                    .k = k,
                    .a_transposed = products.a_layout.transposed,
                    .b_transposed = products.b_layout.transposed,
                    .accumulates = beta != T(0),
                    .rounding = rounded ? Rounding::bf16 : Rounding::none});
}

/// x rounded to bf16 and converted back, for CPUs without bf16 products.
Tensor rounded_to_bf16(const Tensor& x) {
  const Tensor narrow(x.shape(), DType::bf16), rounded(x.shape());
  Copy::cpu<target_isa>(x, narrow);
  Copy::cpu<target_isa>(narrow, rounded);
  return rounded;
}

}  // namespace

template <>
void Gemm::cpu<target_isa>(const Tensor& a, const Tensor& b, const Tensor& c, double alpha, double beta,
                           Rounding rounding) {
  const bool in_bf16 = rounding == Rounding::bf16 && c.dtype() == DType::f32 && is_worth_rounding(a, c);
  const bool has_instructions = bf16_tiles::built && has_bf16_products();
  if (in_bf16 && !has_instructions)
    return cpu<target_isa>(rounded_to_bf16(a), rounded_to_bf16(b), c, alpha, beta, Rounding::none);
  visit_float("gemm", c.dtype(), [&]<class T>(Type<T>) {
    gemm<T>(a, b, c, static_cast<T>(alpha), static_cast<T>(beta), in_bf16);
  });
}

bool gemm_ready(const Tensor& x) {
  const int64_t rows = x.extent(-2), columns = x.extent(-1);
  const int64_t down = x.strides()[-2], right = x.strides()[-1];
  if (columns == 1) return rows == 1 || down >= 1;
  if (rows == 1) return right >= 1;
  return (right == 1 && down >= columns) || (down == 1 && right >= rows);
}

}  // namespace heed::kernel

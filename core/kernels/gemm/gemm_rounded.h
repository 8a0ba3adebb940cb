// Batches of matrix products in bf16 on the CPU: operands are rounded and packed, sums are f32, results f32
// or bf16.
#pragma once

#include "heed/core/kernels/gemm/gemm_bf16.h"
#include "heed/core/kernels/gemm/gemm_tiling.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/core/tensor.h"

namespace heed::kernel::bf16_tiles {

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__x86_64__)
/// Left rows that are packed, and rows of a result in bf16 that are summed, at a time.
inline constexpr int64_t rows_at_once = 64;
/// Columns of a result in bf16 that are summed at a time.
inline constexpr int64_t columns_at_once = 4 * columns;

/// An operand [batch..., rows, columns] in f32 or bf16.
struct Operand {
  const Tensor& tensor;
  Layout layout;

  explicit Operand(const Tensor& x) : tensor(x), layout(kernel::layout(x)) {}
  /// Calls f(data) with the elements from `offset` on.
  template <class F>
  void visit_from(int64_t offset, F&& f) const {
    tensor.dtype() == DType::bf16 ? f(tensor.data<bf16>() + offset) : f(tensor.data<float>() + offset);
  }
};

/// All matrix products c = alpha a b + beta c of a batch, or, with c in bf16, c = a b + bias.
class RoundedProducts {
 public:
  /// `bias` is f32 [n] or empty, and empty where c is f32.
  RoundedProducts(const Tensor& a, const Tensor& b, const Tensor& c, Factors factors, const Tensor& bias)
      : a_(a),
        b_(b),
        c_(c),
        ldc_(c.extent(-2) == 1 ? c.extent(-1) : c.strides()[-2]),
        factors_(factors),
        bias_(bias ? bias.data<float>() : nullptr),
        loop_(batch_loop(a, b, c)),
        tiling_(c.extent(-2), c.extent(-1), a.extent(-1), loop_.inner * loop_.outer, inner_unit),
        shape_{tiling_.m, tiling_.n, tiling_.k},
        packs_left_in_tiles_(tiling_.tile_columns() == 1 && tiling_.chunks() == 1),
        left_words_(packs_left_in_tiles_ ? 0 : shape_.left_words()),
        packed_(packed()) {}

  void run() const {
    if (tiling_.chunks() == 1)
      return tiling_.by_tiles(bytes_of_tile(),
                              [&](const Tile& tile, char* memory) { whole_tile(tile, memory); });
    tiling_.by_chunks<float>(
        [&](const Tile& tile, float* sum, int64_t ld) {
          sum_of(tile, left_of(tile), tile.rows, tile.column, tile.columns, {factors_.alpha, 0.0F}, sum, ld);
        },
        [&](int64_t matrix, int64_t row, float* sum) { put_row(sum, offset_of_c(matrix) + row * ldc_); });
  }

 private:
  /// Packed words of a matrix product: its left operand, then its right one.
  uint32_t* words(int64_t matrix) const {
    auto* all = reinterpret_cast<uint32_t*>(packed_.data<int32_t>());
    return all + matrix * (left_words_ + shape_.right_words());
  }
  const uint32_t* left_of(const Tile& tile) const { return words(tile.matrix) + tile.row * shape_.pairs(); }
  bool is_narrow() const { return c_.dtype() == DType::bf16; }
  /// Offset of the first element of operand number `which`, of a, b and c, in a matrix product.
  int64_t offset(size_t which, int64_t matrix) const {
    return loop_.at(matrix / loop_.inner)[which] + matrix % loop_.inner * loop_.steps[which];
  }
  int64_t offset_of_c(int64_t matrix) const { return offset(2, matrix); }

  /// Packs the operands of all matrices, but for left rows that one tile alone reads. One task is some parts:
  /// runs of 64 left rows or right strips.
  Tensor packed() const {
    const int64_t m = tiling_.m, n = tiling_.n, k = tiling_.k;
    const Tensor memory(Shape{tiling_.batch * (left_words_ + shape_.right_words())}, DType::i32);
    auto* all = reinterpret_cast<uint32_t*>(memory.data<int32_t>());
    const int64_t left_parts = packs_left_in_tiles_ ? 0 : ceil_div(m, rows_at_once),
                  parts = left_parts + shape_.strips();
    parallel_rows(tiling_.batch * parts, std::max<int64_t>(1, light_grain / (rows_at_once * k)),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      const int64_t matrix = i / parts, part = i % parts, row = part * rows_at_once;
                      uint32_t* left = all + matrix * (left_words_ + shape_.right_words());
                      if (part < left_parts) {
                        a_.visit_from(offset(0, matrix), [&](const auto* data) {
                          pack_left(data, a_.layout, row, std::min(row + rows_at_once, m), k, left);
                        });
                      } else {
                        b_.visit_from(offset(1, matrix), [&](const auto* data) {
                          pack_right(data, b_.layout, part - left_parts, n, k, left + left_words_);
                        });
                      }
                    }
                  });
    return memory;
  }

  /// Bytes of working memory of a tile: left rows, with those that multiply() may read past the last, and
  /// sums of a result in bf16.
  int64_t bytes_of_tile() const {
    return (packs_left_in_tiles_ ? (rows_at_once + 16) * shape_.pairs() * 4 : 0) +
           (is_narrow() ? rows_at_once * columns_at_once * 4 : 0);
  }

  /// sum [rows, num_columns] = alpha a b + beta sum over the inner part of a tile, for the columns from
  /// `column` on and packed rows `left`.
  void sum_of(const Tile& tile, const uint32_t* left, int64_t rows, int64_t column, int64_t num_columns,
              Factors factors, float* sum, int64_t ld) const {
    const uint32_t* right = words(tile.matrix) + left_words_ + column * shape_.pairs();
    multiply(shape_, left, right, rows, num_columns, tile.inner, tile.depth, factors, sum, ld);
  }

  /// Computes the results of a tile over the whole inner extent.
  void whole_tile(const Tile& tile, char* memory) const {
    auto* sums = reinterpret_cast<float*>(memory);
    auto* own_rows = reinterpret_cast<uint32_t*>(memory) + (is_narrow() ? rows_at_once * columns_at_once : 0);
    const int64_t first = offset_of_c(tile.matrix) + tile.row * ldc_ + tile.column;
    if (!is_narrow() && !packs_left_in_tiles_)
      return sum_of(tile, left_of(tile), tile.rows, tile.column, tile.columns, factors_,
                    c_.data<float>() + first, ldc_);
    for (int64_t i = 0; i < tile.rows; i += rows_at_once) {
      const int64_t rows = std::min(rows_at_once, tile.rows - i);
      const uint32_t* left = left_of(tile) + i * shape_.pairs();
      if (packs_left_in_tiles_) {
        left = own_rows;
        a_.visit_from(offset(0, tile.matrix) + a_.layout.at(tile.row + i, 0),
                      [&](const auto* data) { pack_left(data, a_.layout, 0, rows, tiling_.k, own_rows); });
      }
      if (!is_narrow()) {
        sum_of(tile, left, rows, tile.column, tile.columns, factors_, c_.data<float>() + first + i * ldc_,
               ldc_);
        continue;
      }
      for (int64_t j = 0; j < tile.columns; j += columns_at_once) {
        const int64_t count = std::min(columns_at_once, tile.columns - j);
        sum_of(tile, left, rows, tile.column + j, count, {1.0F, 0.0F}, sums, columns_at_once);
        for (int64_t r = 0; r < rows; ++r)
          round_row(sums + r * columns_at_once, tile.column + j, count,
                    c_.data<bf16>() + first + (i + r) * ldc_ + j);
      }
    }
  }

  /// to[j] = sum[j] + bias[column + j], rounded, for `count` columns.
  __attribute__((target("avx512bf16"))) void round_row(const float* sum, int64_t column, int64_t count,
                                                       bf16* to) const {
    for (int64_t j = 0; j < count; j += 16) {
      const __mmask16 valid = first_lanes(count - j);
      __m512 x = lanes_of(sum + j, valid);
      if (bias_ != nullptr) x = _mm512_add_ps(x, lanes_of(bias_ + column + j, valid));
      _mm256_mask_storeu_epi16(to + j, valid, (__m256i)_mm512_cvtneps_pbh(x));
    }
  }

  /// Writes a row of results from sums over all chunks.
  void put_row(const float* sum, int64_t to) const {
    const int64_t n = tiling_.n;
    if (is_narrow()) return round_row(sum, 0, n, c_.data<bf16>() + to);
    float* c = c_.data<float>() + to;
    const float beta = factors_.beta;
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) c[j] = beta == 0.0F ? sum[j] : sum[j] + beta * c[j];
  }

  Operand a_, b_;
  const Tensor& c_;
  int64_t ldc_;
  Factors factors_;
  const float* bias_;
  StridedLoop<3> loop_;
  Tiling tiling_;
  Packed shape_;
  bool packs_left_in_tiles_;
  int64_t left_words_;
  Tensor packed_;
};

/// c = alpha a b + beta c for every matrix of the batch; with c in bf16, c = a b + bias.
inline void rounded_product(const Tensor& a, const Tensor& b, const Tensor& c, Factors factors,
                            const Tensor& bias) {
  RoundedProducts(a, b, c, factors, bias).run();
  count_product(a, b, c, factors.beta, /*rounded=*/true);
}
#else
// Never called: declared so that code for other CPUs compiles.
void rounded_product(const Tensor& a, const Tensor& b, const Tensor& c, Factors factors, const Tensor& bias);
#endif

}  // namespace heed::kernel::bf16_tiles

namespace heed::kernel {

/// True where bf16_tiles::rounded_product() computes c = a b.
inline bool rounds_by_instructions(const Tensor& a, const Tensor& c, Rounding rounding) {
  return bf16_tiles::built && has_bf16_products() && rounds_to_bf16(a, c, rounding);
}

}  // namespace heed::kernel

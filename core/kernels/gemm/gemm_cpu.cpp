// Matrix products on the CPU, cut into tiles that depend on the shape alone. Each tile is computed by one
// thread: in f32 by the loops of gemm_few_rows.h and, where the CPU has 64-byte vectors, of gemm_tiles.h;
// else by OpenBLAS with one thread.
#include "heed/core/kernels/gemm/gemm.h"

#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/kernels/gemm/gemm_few_rows.h"
#include "heed/core/kernels/gemm/gemm_layout.h"
#include "heed/core/kernels/gemm/gemm_rounded.h"
#include "heed/core/kernels/gemm/gemm_tiles.h"
#include "heed/core/kernels/gemm/gemm_tiling.h"
#include "heed/core/kernels/simd/simd.h"
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
    // BLAS packs b even for a single row, as in decoding: five times the time of reading it.
    const bool are_rows_contiguous = b_layout.transposed && !a_layout.transposed;
    if (few_rows::worthwhile && m <= few_rows::max_rows && are_rows_contiguous && k >= few_rows::min_inner)
      return few_rows::multiply(a, a_layout.step, b, b_layout.step, c, ldc, m, n, k, {alpha, beta});
    if constexpr (tiles::worthwhile)
      return tiles::multiply(left_operand(a, a_layout), {b, b_layout.step, b_layout.transposed}, c, ldc, m, n,
                             k, {alpha, beta});
  }
  blas::gemm(m, n, k, alpha, {a, a_layout.step, a_layout.transposed}, {b, b_layout.step, b_layout.transposed},
             beta, c, ldc);
}

/// Matrix products c = alpha a b + beta c of numbers of type T that are not rounded.
template <class T>
struct Products {
  Layout a_layout, b_layout;
  int64_t ldc;
  T alpha, beta;
  StridedLoop<3> loop;
  const T *first_a, *first_b;
  T* first_c;

  /// Offset in operand number `which`, of a, b and c, of matrix product number `matrix`.
  int64_t offset(size_t which, int64_t matrix) const {
    return loop.at(matrix / loop.inner)[which] + matrix % loop.inner * loop.steps[which];
  }
  T* c_of(int64_t matrix) const { return first_c + offset(2, matrix); }

  /// result = alpha a b + result_factor result for a tile.
  void compute(const Tile& tile, T result_factor, T* result, int64_t ld) const {
    multiply(a_layout, b_layout, tile.rows, tile.columns, tile.depth, alpha,
             first_a + offset(0, tile.matrix) + a_layout.at(tile.row, tile.inner),
             first_b + offset(1, tile.matrix) + b_layout.at(tile.inner, tile.column), result_factor, result,
             ld);
  }

  void run(const Tiling& tiling) const {
    if (tiling.chunks() == 1)
      return tiling.by_tiles(0, [&](const Tile& tile, char*) {
        compute(tile, beta, c_of(tile.matrix) + tile.row * ldc + tile.column, ldc);
      });
    tiling.template by_chunks<T>([&](const Tile& tile, T* sum, int64_t ld) { compute(tile, T(0), sum, ld); },
                                 [&](int64_t matrix, int64_t row, const T* sum) {
                                   T* c_row = c_of(matrix) + row * ldc;
#pragma GCC ivdep
                                   for (int64_t j = 0; j < tiling.n; ++j)
                                     c_row[j] = beta == T(0) ? sum[j] : sum[j] + beta * c_row[j];
                                 });
  }
};

/// c = alpha a b + beta c for every matrix of the batch, without rounding.
template <class T>
void exact_product(const Tensor& a, const Tensor& b, const Tensor& c, T alpha, T beta) {
  const StridedLoop<3> loop = batch_loop(a, b, c);
  const Products<T> products{.a_layout = layout(a),
                             .b_layout = layout(b),
                             .ldc = c.extent(-2) == 1 ? c.extent(-1) : c.strides()[-2],
                             .alpha = alpha,
                             .beta = beta,
                             .loop = loop,
                             .first_a = a.data<T>(),
                             .first_b = b.data<T>(),
                             .first_c = c.data<T>()};
  products.run(Tiling(c.extent(-2), c.extent(-1), a.extent(-1), loop.inner * loop.outer, 16));
}

/// x in f32; rounded to bf16 before where `rounded`.
Tensor in_f32(const Tensor& x, bool rounded) {
  if (x.dtype() == DType::f32 && !rounded) return x;
  const Tensor narrow = x.dtype() == DType::bf16 ? x : Tensor(x.shape(), DType::bf16), wide(x.shape());
  if (x.dtype() != DType::bf16) Copy::cpu<target_isa>(x, narrow);
  Copy::cpu<target_isa>(narrow, wide);
  return wide;
}

}  // namespace

/// c = alpha a b + beta c for every matrix of the batch, cut into tiles fixed by the shape. One task is some
/// tiles; where the inner extent is cut too, one chunk of one tile, and the chunks are added in order.
template <>
void Gemm::cpu<target_isa>(const Tensor& a, const Tensor& b, const Tensor& c, double alpha, double beta,
                           Rounding rounding) {
  if (c.size() == 0) return;
  // BLAS rejects the leading dimension of a matrix without columns.
  if (a.extent(-1) == 0)
    return beta == 0 ? Fill::cpu<target_isa>(c, 0) : Affine::cpu<target_isa>(c, beta, 0, c);
  if (rounds_by_instructions(a, c, rounding)) {
    const auto factor = [](double x) { return static_cast<float>(x); };
    return bf16_tiles::rounded_product(a, b, c, {factor(alpha), factor(beta)}, Tensor());
  }
  const bool rounded = rounds_to_bf16(a, c, rounding);
  if (rounded || a.dtype() == DType::bf16 || b.dtype() == DType::bf16)
    return cpu<target_isa>(in_f32(a, rounded), in_f32(b, rounded), c, alpha, beta, Rounding::none);
  if (c.dtype() == DType::bf16) {
    const Tensor wide(c.shape());
    cpu<target_isa>(a, b, wide, alpha, beta, Rounding::none);
    return Copy::cpu<target_isa>(wide, c);
  }
  visit_float("gemm", c.dtype(), [&]<class T>(Type<T>) {
    exact_product<T>(a, b, c, static_cast<T>(alpha), static_cast<T>(beta));
  });
  count_product(a, b, c, beta, /*rounded=*/false);
}

bool gemm_ready(const Tensor& x) {
  const int64_t rows = x.extent(-2), columns = x.extent(-1);
  const int64_t down = x.strides()[-2], right = x.strides()[-1];
  if (columns == 1) return rows == 1 || down >= 1;
  if (rows == 1) return right >= 1;
  return (right == 1 && down >= columns) || (down == 1 && right >= rows);
}

}  // namespace heed::kernel

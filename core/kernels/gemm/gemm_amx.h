// Products of bf16 numbers by the matrix tiles of AMX, with sums in f32. A tile is sixteen rows of 64 bytes:
// sixteen floats, or sixteen pairs of numbers adjacent along the inner extent.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "heed/core/kernels/gemm/gemm_tiles.h"

namespace heed::kernel::amx_tiles {

inline constexpr int64_t rows = 16;   ///< rows of a tile
inline constexpr int64_t pairs = 16;  ///< pairs in a row of a tile: 32 numbers of the inner extent

/// The shapes of the eight tiles: sixteen rows of 64 bytes each.
struct alignas(64) TileShapes {
  uint8_t palette = 1, first_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t num_rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
inline constexpr TileShapes full_tiles;  // static: the compiler does not see that the instruction reads it

/// Shapes the tiles of this thread while it lives; then the processor need not keep them.
class Shaped {
 public:
  __attribute__((target("amx-tile"))) Shaped() { _tile_loadconfig(&full_tiles); }
  __attribute__((target("amx-tile"))) ~Shaped() { _tile_release(); }
  Shaped(const Shaped&) = delete;
  Shaped& operator=(const Shaped&) = delete;
};

/// sums [R 16, V 16] = sum over pairs p of left[r, p] strip[p, j], or added to sums where `add`. `num_pairs`
/// is a multiple of 16. Rows of `left`, `strip` and `sums` are `left_stride`, `strip_stride` words and
/// `ld` floats apart.
template <int R, int V>
__attribute__((target("amx-tile,amx-bf16"))) inline void multiply_block(
    const uint32_t* left, int64_t left_stride, const uint32_t* strip, int64_t strip_stride, int64_t num_pairs,
    bool add, float* sums, int64_t ld) {
  const auto bytes = [](int64_t words) { return static_cast<size_t>(words) * 4; };
  const size_t left_bytes = bytes(left_stride), strip_bytes = bytes(strip_stride), sum_bytes = bytes(ld);
  float *lower = sums + rows * ld, *right = sums + 16, *lower_right = lower + 16;
  if (add) {
    _tile_loadd(0, sums, sum_bytes);
    if constexpr (V == 2) _tile_loadd(1, right, sum_bytes);
    if constexpr (R == 2) _tile_loadd(2, lower, sum_bytes);
    if constexpr (R == 2 && V == 2) _tile_loadd(3, lower_right, sum_bytes);
  } else {
    _tile_zero(0);
    if constexpr (V == 2) _tile_zero(1);
    if constexpr (R == 2) _tile_zero(2);
    if constexpr (R == 2 && V == 2) _tile_zero(3);
  }
  for (int64_t p = 0; p < num_pairs; p += pairs) {
    _tile_loadd(4, left + p, left_bytes);
    _tile_loadd(6, strip + p * strip_stride, strip_bytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (R == 2) {
      _tile_loadd(5, left + rows * left_stride + p, left_bytes);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (V == 2) {
      _tile_loadd(7, strip + p * strip_stride + 16, strip_bytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (R == 2 && V == 2) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, sum_bytes);
  if constexpr (V == 2) _tile_stored(1, right, sum_bytes);
  if constexpr (R == 2) _tile_stored(2, lower, sum_bytes);
  if constexpr (R == 2 && V == 2) _tile_stored(3, lower_right, sum_bytes);
}

/// multiply_block() of 16 or 32 rows and 16 or 32 columns.
inline void multiply_block(bool two_rows, bool two_columns, const uint32_t* left, int64_t left_stride,
                           const uint32_t* strip, int64_t strip_stride, int64_t num_pairs, bool add,
                           float* sums, int64_t ld) {
  const auto run = [&](auto block) {
    block(left, left_stride, strip, strip_stride, num_pairs, add, sums, ld);
  };
  if (two_rows && two_columns) return run(multiply_block<2, 2>);
  if (two_rows) return run(multiply_block<2, 1>);
  if (two_columns) return run(multiply_block<1, 2>);
  run(multiply_block<1, 1>);
}

}  // namespace heed::kernel::amx_tiles

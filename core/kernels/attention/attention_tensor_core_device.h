// Attention on the tensor cores: tiles of rounded inputs in shared memory, and matrix products by warps with
// 16 or 32 rows each. E is the type of the rounded numbers, bf16 or tf32; D their number per row.
#pragma once

#include "heed/core/cuda/device/async.h"
#include "heed/core/cuda/device/mma.h"
#include "heed/core/kernels/attention/attention_device.h"
#include "heed/core/kernels/attention/rounded_heads_device.h"

namespace heed::kernel {

inline constexpr int key_tile = 64;  ///< number of columns of a tile: keys, or queries where keys are rows

/// Starts to copy the rows row_at(0), ..., row_at(block_rows - 1) [D] into a tile; null rows become zeros.
/// `valid_address` is any device address.
template <class E, int D, int block_rows, class RowAt>
__device__ inline void fetch_rounded(E* tile, const E* valid_address, RowAt row_at) {
  constexpr int pieces = D / elements_per_piece<E>;
  for (int e = static_cast<int>(threadIdx.x); e < block_rows * pieces; e += cuda::tile_threads) {
    const int row = e / pieces, c = e % pieces * elements_per_piece<E>;
    const E* source = row_at(row);
    cuda::copy_async<16>(tile + row * rounded_ld<E, D> + c, source != nullptr ? source + c : valid_address,
                         source != nullptr ? 16 : 0);
  }
}

/// Starts to copy `count` consecutive rows [D] into a tile of `block_rows` rows, zeros past them.
template <class E, int D, int block_rows>
__device__ inline void fetch_rounded(E* tile, const E* rows, int64_t count) {
  fetch_rounded<E, D, block_rows>(tile, rows,
                                  [=](int row) { return row < count ? rows + row * D : nullptr; });
}

/// A warp's sums [16 M, 8 N] as M times N accumulator fragments [16, 8]. Each lane holds four numbers
/// x[m][n][e] of every fragment, at the places that WarpThread names.
template <int M, int N>
struct WarpAccumulator {
  float x[M][N][4];
  /// Calls f(float&) for each number of this lane.
  template <class F>
  __device__ void each(F f) {
#pragma unroll
    for (int m = 0; m < M; ++m) {
#pragma unroll
      for (int n = 0; n < N; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) f(x[m][n][e]);
      }
    }
  }
  __device__ void clear() {
    each([](float& sum) { sum = 0.0F; });
  }
};

/// Places of this thread's numbers x[m][n][e] of a WarpAccumulator: row(m, e / 2) of the tile of all warps,
/// and column(n, e). Elements e = 2, 3 (half 1) lie 8 rows below e = 0, 1 (half 0).
struct WarpThread {
  int lane, warp;
  __device__ WarpThread()
      : lane(static_cast<int>(threadIdx.x) % 32), warp(static_cast<int>(threadIdx.x) / 32) {}
  template <int M>
  __device__ int row(int m, int half) const {
    return 16 * (warp * M + m) + lane / 4 + 8 * half;
  }
  __device__ int column(int n, int e) const { return 8 * n + 2 * (lane % 4) + e % 2; }
};

/// sums [16 M, 64] += a b^T with a [16 M rows of this warp, D] and b [64, D] in shared memory, 16 columns c
/// of both at a time. load_matrices() reads four 8 x 8 matrices: lane 8 i + r gives the address of row r of
/// matrix i.
template <int D, int M>
__device__ inline void warp_dots(const WarpThread& thread, const bf16* a, const bf16* b,
                                 WarpAccumulator<M, key_tile / 8>& sums) {
  constexpr int ld = rounded_ld<bf16, D>;
  const int matrix = thread.lane / 8, row = thread.lane % 8;
#pragma unroll
  for (int c = 0; c < D; c += 16) {
    cuda::LeftFactor left[M];
#pragma unroll
    for (int m = 0; m < M; ++m) {
      const int a_row = 16 * (thread.warp * M + m) + matrix % 2 * 8 + row;
      cuda::load_matrices(left[m], a + a_row * ld + c + matrix / 2 * 8);
    }
#pragma unroll
    for (int n = 0; n < key_tile / 8; n += 2) {
      uint32_t right[4];
      cuda::load_matrices(right, b + (8 * n + matrix / 2 * 8 + row) * ld + c + matrix % 2 * 8);
      const cuda::RightFactor first = {right[0], right[1]}, second = {right[2], right[3]};
#pragma unroll
      for (int m = 0; m < M; ++m) {
        cuda::multiply_add(sums.x[m][n], left[m], first);
        cuda::multiply_add(sums.x[m][n + 1], left[m], second);
      }
    }
  }
}

/// sums [16 M, 64] += a b^T with a [16 M rows of this warp, D] and b [64, D] in shared memory, 8 columns c of
/// both at a time. A lane (g, t) = (lane / 4, lane % 4) reads rows g and g + 8 of a, row g of b, and their
/// columns c + t and c + t + 4.
template <int D, int M>
__device__ inline void warp_dots(const WarpThread& thread, const tf32* a, const tf32* b,
                                 WarpAccumulator<M, key_tile / 8>& sums) {
  constexpr int ld = rounded_ld<tf32, D>;
  const int g = thread.lane / 4, t = thread.lane % 4;
#pragma unroll
  for (int c = 0; c < D; c += 8) {
    tf32 left[M][4];
#pragma unroll
    for (int m = 0; m < M; ++m) {
      const tf32* row = a + (16 * (thread.warp * M + m) + g) * ld + c + t;
      left[m][0] = row[0];
      left[m][1] = row[8 * ld];
      left[m][2] = row[4];
      left[m][3] = row[8 * ld + 4];
    }
#pragma unroll
    for (int n = 0; n < key_tile / 8; ++n) {
      const tf32* row = b + (8 * n + g) * ld + c + t;
      const tf32 right[2] = {row[0], row[4]};
#pragma unroll
      for (int m = 0; m < M; ++m) cuda::multiply_add(sums.x[m][n], left[m], right);
    }
  }
}

/// sums [16 M, D] += weights [16 M, 64] b [64, D]; the weights are rounded to bf16 in registers.
template <int D, int M>
__device__ inline void warp_gather(const WarpThread& thread, const WarpAccumulator<M, key_tile / 8>& weights,
                                   const bf16* b, WarpAccumulator<M, D / 8>& sums) {
  constexpr int ld = rounded_ld<bf16, D>;
  const int matrix = thread.lane / 8, row = thread.lane % 8;
#pragma unroll
  for (int k = 0; k < key_tile / 16; ++k) {
    cuda::LeftFactor left[M];
#pragma unroll
    for (int m = 0; m < M; ++m) {
      const auto &low = weights.x[m][2 * k], &high = weights.x[m][2 * k + 1];
      left[m][0] = cuda::rounded_pair(low[0], low[1]);
      left[m][1] = cuda::rounded_pair(low[2], low[3]);
      left[m][2] = cuda::rounded_pair(high[0], high[1]);
      left[m][3] = cuda::rounded_pair(high[2], high[3]);
    }
#pragma unroll
    for (int n = 0; n < D / 8; n += 2) {
      uint32_t right[4];
      cuda::load_matrices_transposed(right,
                                     b + (16 * k + matrix % 2 * 8 + row) * ld + 8 * n + matrix / 2 * 8);
      const cuda::RightFactor first = {right[0], right[1]}, second = {right[2], right[3]};
#pragma unroll
      for (int m = 0; m < M; ++m) {
        cuda::multiply_add(sums.x[m][n], left[m], first);
        cuda::multiply_add(sums.x[m][n + 1], left[m], second);
      }
    }
  }
}

/// sums [16 M, D] += weights [16 M, 64] b [64, D]; the weights are rounded to tf32 in registers. A lane holds
/// columns 2t and 2t + 1 of the weights, but the instruction expects t and t + 4. The sum over columns may
/// run in any order, so column t of the instruction is our 2t and t + 4 our 2t + 1.
template <int D, int M>
__device__ inline void warp_gather(const WarpThread& thread, const WarpAccumulator<M, key_tile / 8>& weights,
                                   const tf32* b, WarpAccumulator<M, D / 8>& sums) {
  constexpr int ld = rounded_ld<tf32, D>;
  const int g = thread.lane / 4, t = thread.lane % 4;
#pragma unroll
  for (int k = 0; k < key_tile / 8; ++k) {
    tf32 left[M][4];
#pragma unroll
    for (int m = 0; m < M; ++m) {
      left[m][0] = cuda::rounded_tf32(weights.x[m][k][0]);
      left[m][1] = cuda::rounded_tf32(weights.x[m][k][2]);
      left[m][2] = cuda::rounded_tf32(weights.x[m][k][1]);
      left[m][3] = cuda::rounded_tf32(weights.x[m][k][3]);
    }
    const tf32* row = b + (8 * k + 2 * t) * ld + g;
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      const tf32 right[2] = {row[8 * n], row[8 * n + ld]};
#pragma unroll
      for (int m = 0; m < M; ++m) cuda::multiply_add(sums.x[m][n], left[m], right);
    }
  }
}

/// Factors of row = new_factor sums + old_factor row; the row is not read where old_factor is zero.
struct RowFactors {
  float new_factor, old_factor = 0.0F;
};

/// Writes each row of the sums to row_at(m, half) [width] with the RowFactors factors_of(m, half); skips null
/// rows.
template <int M, int N, class RowAt, class FactorsOf>
__device__ inline void store_warp_rows(const WarpThread& thread, const WarpAccumulator<M, N>& sums,
                                       int64_t width, RowAt row_at, FactorsOf factors_of) {
#pragma unroll
  for (int m = 0; m < M; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float* row = row_at(m, half);
      if (row == nullptr) continue;
      const RowFactors factors = factors_of(m, half);
      const bool is_aligned = reinterpret_cast<uintptr_t>(row) % 8 == 0;
#pragma unroll
      for (int n = 0; n < N; ++n) {
        const int c = thread.column(n, 0);
        float low = sums.x[m][n][2 * half] * factors.new_factor,
              high = sums.x[m][n][2 * half + 1] * factors.new_factor;
        if (factors.old_factor != 0.0F) {
          if (c < width) low += row[c] * factors.old_factor;
          if (c + 1 < width) high += row[c + 1] * factors.old_factor;
        }
        if (is_aligned && c + 1 < width) {
          *reinterpret_cast<float2*>(row + c) = make_float2(low, high);
        } else {
          if (c < width) row[c] = low;
          if (c + 1 < width) row[c + 1] = high;
        }
      }
    }
  }
}

/// Largest width of heads on the tensor cores: shared memory limits it, and tf32 needs twice that of bf16.
inline int64_t max_tensor_core_width(Rounding rounding) {
  if (rounding == Rounding::none) return 0;
  return (rounding == Rounding::bf16 ? 128 : 64) / (cuda::has_large_shared_memory() ? 1 : 2);
}

/// True where the tensor cores can compute a call: f32 products that may be rounded.
inline bool takes_tensor_cores(const AttentionShape& x, Rounding rounding) {
  return std::max<int64_t>({x.d, x.dv, 1}) <= max_tensor_core_width(rounding);
}

/// Calls f<E, D>() with the type and the width of rounded rows.
template <class F>
void with_rounded(Rounding rounding, int64_t width, F&& f) {
  const int D = rounded_width(width);
  if (rounding == Rounding::tf32)
    return D == 32 ? f.template operator()<tf32, 32>() : f.template operator()<tf32, 64>();
  if (D == 32) return f.template operator()<bf16, 32>();
  D == 64 ? f.template operator()<bf16, 64>() : f.template operator()<bf16, 128>();
}

/// Modifiers of the scores and weights of a call, besides its mask. Each kind has kernels apart, so that a
/// call without bias and dropout keeps the registers for its sums.
enum class Pairs {
  plain,         ///< scale only
  with_dropout,  ///< scale and dropout
  any            ///< softcap and biases too, and dropout where the call has it
};

/// Calls f<pairs>() with the kind of a call.
template <class F>
void with_pairs(const AttentionScores<float>& call, F&& f) {
  if (call.softcap != 0.0F || call.has_bias()) return f.template operator()<Pairs::any>();
  call.has_dropout ? f.template operator()<Pairs::with_dropout>() : f.template operator()<Pairs::plain>();
}

/// Number of keys of the tile [j, j + key_tile) that query i sees, always the first ones; 0 past the last
/// query.
__device__ inline int keys_seen(const AttentionShape& call, int64_t i, int64_t j, int64_t num_keys) {
  const int64_t end = i >= call.Tq ? 0 : call.causal ? min(num_keys, i + call.first_query + 1) : num_keys;
  return static_cast<int>(within(end - j, 0, key_tile));
}

/// Number of queries of the tile [i, i + key_tile) that do not see key j, always the first ones.
__device__ inline int queries_not_seeing(const AttentionShape& call, int64_t j, int64_t i) {
  return static_cast<int>(within(call.first_query_of(j) - i, 0, key_tile));
}

/// Attention and AttentionBack with operands of matrix products rounded to bf16 or tf32; sums are f32.
void attention_rounded(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionParams& params,
                       const Tensor& out, const Tensor& lse);
void attention_rounded_back(const AttentionBackTensors& t, const AttentionParams& params);

}  // namespace heed::kernel

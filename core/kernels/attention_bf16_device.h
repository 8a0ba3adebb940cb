// Attention on the tensor cores: inputs packed as bf16, tiles of them in shared memory, and their products by
// warps that have 16 rows (or twice as many) each.
#pragma once

#include "core/cuda/async.h"
#include "core/cuda/mma.h"
#include "core/kernels/attention_device.h"

namespace heed::kernel {

/// Rows of a packed tensor, [B, H, T, D] without gaps, zeros past a row's numbers.
struct PackedRows {
  const bf16* data = nullptr;
  int64_t H = 0, T = 0;
  template <int D>
  __device__ const bf16* at(int64_t b, int64_t h, int64_t t) const {
    return data + ((b * H + h) * T + t) * D;
  }
};

/// Numbers of a row that the tensor cores' kernels take, for inputs of `width`: 32, 64 or 128.
inline int packed_width(int64_t width) { return width <= 32 ? 32 : width <= 64 ? 64 : 128; }

/// Eight numbers a thread.
template <class T>
__global__ void pack_rows(Heads<const T> from, int64_t rows, int64_t H, int64_t length, int64_t width, int D,
                          bf16* to) {
  const int64_t at = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * 8;
  if (at >= rows * D) return;
  const int64_t row = at / D, first = at % D;
  const T* x = from.at(row / length / H, row / length % H, row % length);
  uint32_t packed[4];
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    const int64_t c = first + 2 * n;
    packed[n] = cuda::rounded_pair(c < width ? x[c] : 0.0F, c + 1 < width ? x[c + 1] : 0.0F);
  }
  *reinterpret_cast<uint4*>(to + at) = make_uint4(packed[0], packed[1], packed[2], packed[3]);
}

/// x [B, H, T, width] as bf16, rounded to nearest even.
inline Tensor packed(const Tensor& x, int D) {
  const int64_t rows = x.extent(0) * x.extent(1) * x.extent(2);
  const Tensor to(Shape{std::max<int64_t>(1, rows), D}, DType::bf16, x.device());
  cuda::run(pack_rows<float>,
            {.blocks = dim3(static_cast<unsigned>(cuda::pieces(rows * D / 8, 256))), .threads = dim3(256)},
            Heads<const float>(x), rows, x.extent(1), x.extent(2), x.extent(3), D, to.data<bf16>());
  return to;
}

/// Distance between the rows of a tile of D numbers: 16 bytes more, so that eight rows lie in all banks.
template <int D>
inline constexpr int packed_ld = D + 8;

inline constexpr int met = 64;  ///< columns of a step: keys, or queries where keys are rows

/// Begins to copy `rows` rows of a packed tensor into a tile of `tall` rows; the rest become zeros.
template <int D, int tall>
__device__ inline void fetch_packed(bf16* tile, const bf16* from, int64_t rows) {
  constexpr int pieces = D / 8;
  for (int e = static_cast<int>(threadIdx.x); e < tall * pieces; e += cuda::tile_threads) {
    const int row = e / pieces, c = e % pieces * 8;
    const bool there = row < rows;
    cuda::copy_async<16>(tile + row * packed_ld<D> + c, there ? from + row * D + c : from, there ? 16 : 0);
  }
}

/// What a warp has of sums [16 M, 8 N].
template <int M, int N>
struct WarpSums {
  float x[M][N][4];
  __device__ void clear() {
#pragma unroll
    for (int m = 0; m < M; ++m) {
#pragma unroll
      for (int n = 0; n < N; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) x[m][n][e] = 0.0F;
      }
    }
  }
};

/// This lane's rows and columns of sums: row(m, e) for element e of block m, column(n, e) of block n.
struct WarpPlace {
  int lane, warp;
  __device__ WarpPlace()
      : lane(static_cast<int>(threadIdx.x) % 32), warp(static_cast<int>(threadIdx.x) / 32) {}
  template <int M>
  __device__ int row(int m, int half) const {
    return 16 * (warp * M + m) + lane / 4 + 8 * half;
  }
  __device__ int column(int n, int e) const { return 8 * n + 2 * (lane % 4) + e % 2; }
};

/// sums [16 M rows of this warp, 64] += rows of `a` . rows of `b`, over D numbers.
template <int D, int M>
__device__ inline void warp_dots(const WarpPlace& me, const bf16* a, const bf16* b,
                                 WarpSums<M, met / 8>& sums) {
  const int matrix = me.lane / 8, row = me.lane % 8;
#pragma unroll
  for (int c = 0; c < D; c += 16) {
    cuda::LeftFactor left[M];
#pragma unroll
    for (int m = 0; m < M; ++m) {
      const int at = 16 * (me.warp * M + m) + matrix % 2 * 8 + row;
      cuda::load_matrices(left[m], a + at * packed_ld<D> + c + matrix / 2 * 8);
    }
#pragma unroll
    for (int n = 0; n < met / 8; n += 2) {
      uint32_t right[4];
      cuda::load_matrices(right, b + (8 * n + matrix / 2 * 8 + row) * packed_ld<D> + c + matrix % 2 * 8);
      const cuda::RightFactor first = {right[0], right[1]}, second = {right[2], right[3]};
#pragma unroll
      for (int m = 0; m < M; ++m) {
        cuda::multiply_add(sums.x[m][n], left[m], first);
        cuda::multiply_add(sums.x[m][n + 1], left[m], second);
      }
    }
  }
}

/// sums [16 M, D] += map [16 M, 64] rows of b [64, D]: the map is rounded where it lies, in registers.
template <int D, int M>
__device__ inline void warp_gather(const WarpPlace& me, const WarpSums<M, met / 8>& map, const bf16* b,
                                   WarpSums<M, D / 8>& sums) {
  const int matrix = me.lane / 8, row = me.lane % 8;
#pragma unroll
  for (int k = 0; k < met / 16; ++k) {
    cuda::LeftFactor left[M];
#pragma unroll
    for (int m = 0; m < M; ++m) {
      const auto &low = map.x[m][2 * k], &high = map.x[m][2 * k + 1];
      left[m][0] = cuda::rounded_pair(low[0], low[1]);
      left[m][1] = cuda::rounded_pair(low[2], low[3]);
      left[m][2] = cuda::rounded_pair(high[0], high[1]);
      left[m][3] = cuda::rounded_pair(high[2], high[3]);
    }
#pragma unroll
    for (int n = 0; n < D / 8; n += 2) {
      uint32_t right[4];
      cuda::load_matrices_turned(right,
                                 b + (16 * k + matrix % 2 * 8 + row) * packed_ld<D> + 8 * n + matrix / 2 * 8);
      const cuda::RightFactor first = {right[0], right[1]}, second = {right[2], right[3]};
#pragma unroll
      for (int m = 0; m < M; ++m) {
        cuda::multiply_add(sums.x[m][n], left[m], first);
        cuda::multiply_add(sums.x[m][n + 1], left[m], second);
      }
    }
  }
}

/// Writes sums times what factor(m, half) gives for each row, to row at(m, half); null: nowhere.
template <int M, int N, class At, class Factor>
__device__ inline void put_warp_rows(const WarpPlace& me, const WarpSums<M, N>& sums, int64_t width, At at,
                                     Factor factor) {
#pragma unroll
  for (int m = 0; m < M; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float* to = at(m, half);
      if (to == nullptr) continue;
      const float by = factor(m, half);
      const bool pairs = reinterpret_cast<uintptr_t>(to) % 8 == 0;
#pragma unroll
      for (int n = 0; n < N; ++n) {
        const int c = me.column(n, 0);
        const float low = sums.x[m][n][2 * half] * by, high = sums.x[m][n][2 * half + 1] * by;
        if (pairs && c + 1 < width) {
          *reinterpret_cast<float2*>(to + c) = make_float2(low, high);
        } else {
          if (c < width) to[c] = low;
          if (c + 1 < width) to[c + 1] = high;
        }
      }
    }
  }
}

/// True where the tensor cores take a call: f32 whose products may be rounded, in heads of up to 128.
inline bool takes_tensor_cores(const AttentionShape& x, Rounding rounding) {
  return rounding == Rounding::bf16 && x.d <= 128 && x.dv <= 128;
}

/// Attention and AttentionBack with factors of products rounded to bf16; sums and weights are f32.
void attention_bf16(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms,
                    const Tensor& out, const Tensor& lse);
void attention_back_bf16(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms,
                         const Tensor& out, const Tensor& lse, const Tensor& dout, const Tensor& dq,
                         const Tensor& dk, const Tensor& dv);

}  // namespace heed::kernel

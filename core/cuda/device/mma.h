// The tensor cores: products of 16 x 16 and 16 x 8 numbers of bf16, or 16 x 8 and 8 x 8 of tf32, held by the
// 32 lanes of a warp, with sums in f32.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "heed/core/cuda/device/grid.h"
#include "heed/core/dtype.h"

namespace heed::cuda {

/// Where the numbers of a product lie, lane l being 4 g + t: register 0 of the left factor holds row g,
/// columns 2t and 2t + 1 (the lower half first); 1: row g + 8; 2 and 3: the same 8 columns on. Register 0 of
/// the right factor holds rows 2t and 2t + 1 of column g; 1: the same 8 rows on. The sums are row g, columns
/// 2t and 2t + 1, then row g + 8.
using LeftFactor = uint32_t[4];
using RightFactor = uint32_t[2];
using Sums = float[4];

/// Two numbers rounded to bf16, the first in the lower half.
__device__ inline uint32_t rounded_pair(float low, float high) {
#ifdef __CUDACC__
  uint32_t both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
#else
  return static_cast<uint32_t>(bf16(low).bits) | static_cast<uint32_t>(bf16(high).bits) << 16;
#endif
}

#ifndef __CUDACC__
/// multiply_add() on the emulated device: `halves` numbers per register, of which number(register, half) is
/// one.
template <int halves, class Register, class Number>
void emulated_multiply_add(Sums& sums, const Register (&left)[4], const Register (&right)[2], Number number) {
  struct Factors {
    Register left[4], right[2];
  } own;
  struct Result {
    float sums[4];
  };
  std::memcpy(own.left, left, sizeof(own.left));
  std::memcpy(own.right, right, sizeof(own.right));
  const int lane = emulated::lane(), g = lane / 4, t = lane % 4;
  const Result result = emulated::exchange("mma", 0xffffffffU, own, [&](auto of) {
    Result to;
    std::memcpy(to.sums, sums, sizeof(to.sums));
    const auto add = [&](int quad, int part) {
      const Factors rows = of(4 * g + quad), first = of(4 * (2 * t) + quad),
                    second = of(4 * (2 * t + 1) + quad);
      for (int half = 0; half < halves; ++half) {
        for (int row = 0; row < 2; ++row) {
          const float a = number(rows.left[row + 2 * part], half);
          to.sums[2 * row] += a * number(first.right[part], half);
          to.sums[2 * row + 1] += a * number(second.right[part], half);
        }
      }
    };
    // The order of additions is quad by quad for bf16, part by part for tf32.
    for (int i = 0; i < 8; ++i) halves == 2 ? add(i / 2, i % 2) : add(i % 4, i / 4);
    return to;
  });
  std::memcpy(sums, result.sums, sizeof(result.sums));
}
#endif

/// sums [16, 8] += left [16, 16] right [16, 8]. All lanes of a warp.
__device__ inline void multiply_add(Sums& sums, const LeftFactor& left, const RightFactor& right) {
#ifdef __CUDACC__
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
#else
  const auto number = [](uint32_t pair, int half) {
    bf16 x;
    x.bits = static_cast<uint16_t>(pair >> (16 * half));
    return static_cast<float>(x);
  };
  emulated_multiply_add<2>(sums, left, right, number);
#endif
}

/// A float of which the tensor cores read the upper 19 bits.
struct tf32 {
  float value;
};

/// Rounded to the nearest, ties away from zero.
__device__ inline tf32 rounded_tf32(float x) {
#ifdef __CUDACC__
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return {__uint_as_float(bits)};
#else
  const auto bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7f800000U) == 0x7f800000U) return {x};
  return {std::bit_cast<float>((bits + 0x1000U) & 0xffffe000U)};
#endif
}

/// sums [16, 8] += left [16, 8] right [8, 8], of tf32. Register 0 of the left factor holds row g, column t;
/// 1: row g + 8; 2 and 3: the same 4 columns on. Those of the right factor hold rows t and t + 4 of column g.
/// All lanes of a warp.
__device__ inline void multiply_add(Sums& sums, const tf32 (&left)[4], const tf32 (&right)[2]) {
#ifdef __CUDACC__
  const auto bits = [](tf32 x) { return __float_as_uint(x.value); };
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(bits(left[0])), "r"(bits(left[1])), "r"(bits(left[2])), "r"(bits(left[3])), "r"(bits(right[0])),
        "r"(bits(right[1])));
#else
  const auto number = [](tf32 x, int) {  // the lower 13 bits are not read
    return std::bit_cast<float>(std::bit_cast<uint32_t>(x.value) & 0xffffe000U);
  };
  emulated_multiply_add<1>(sums, left, right, number);
#endif
}

/// Four matrices of 8 x 8 numbers of 16 bits from shared memory, one a register: lane l says where row l % 8
/// of matrix l / 8 begins (aligned to 16 bytes), and gets columns 2t and 2t + 1 of row g of each. All lanes
/// of a warp.
__device__ inline void load_matrices(uint32_t (&to)[4], const void* row) {
#ifdef __CUDACC__
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(at)
               : "memory");
#else
  const int lane = emulated::lane();
  emulated::exchange("ldmatrix", 0xffffffffU, row, [&](auto of) {
    for (int n = 0; n < 4; ++n)
      std::memcpy(&to[n], static_cast<const char*>(of(8 * n + lane / 4)) + 4 * (lane % 4), sizeof(to[n]));
    return 0;
  });
#endif
}

/// Loads like load_matrices(), but transposes each matrix: the lane gets rows 2t and 2t + 1 of column g.
__device__ inline void load_matrices_transposed(uint32_t (&to)[4], const void* row) {
#ifdef __CUDACC__
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(at)
               : "memory");
#else
  const int lane = emulated::lane();
  emulated::exchange("ldmatrix.trans", 0xffffffffU, row, [&](auto of) {
    for (int n = 0; n < 4; ++n) {
      uint16_t half[2];
      for (int i = 0; i < 2; ++i)
        std::memcpy(&half[i], static_cast<const char*>(of(8 * n + 2 * (lane % 4) + i)) + 2 * (lane / 4), 2);
      to[n] = half[0] | static_cast<uint32_t>(half[1]) << 16;
    }
    return 0;
  });
#endif
}

}  // namespace heed::cuda

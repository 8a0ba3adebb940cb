// Tensor cores: matrix products [16, 16] [16, 8] of bf16 and [16, 8] [8, 8] of tf32 with sums in f32. The 32
// lanes of a warp hold the matrices in their registers.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "heed/core/cuda/device/grid.h"
#include "heed/core/dtype.h"

namespace heed::cuda {

// Registers of lane 4 g + t, where g is 0 to 7 and t is 0 to 3. A register of bf16 holds two numbers, the
// first in its lower half.

/// Left factor [16, 16]: row g, columns 2t and 2t + 1; row g + 8, the same columns; row g, columns 2t + 8 and
/// 2t + 9; row g + 8, the same columns.
using LeftFactor = uint32_t[4];
/// Right factor [16, 8]: rows 2t and 2t + 1 of column g; rows 2t + 8 and 2t + 9 of column g.
using RightFactor = uint32_t[2];
/// Sums [16, 8]: row g, column 2t; row g, column 2t + 1; row g + 8, the same columns.
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
/// multiply_add() on the emulated device. A register holds `halves` numbers; number(register, half) unpacks
/// one.
template <int halves, class Register, class Number>
void emulated_multiply_add(Sums& sums, const Register (&left)[4], const Register (&right)[2], Number number) {
  struct Factors {
    Register left[4], right[2];
  } lane_factors;
  struct Result {
    float sums[4];
  };
  std::memcpy(lane_factors.left, left, sizeof(lane_factors.left));
  std::memcpy(lane_factors.right, right, sizeof(lane_factors.right));
  const int lane = emulated::lane(), g = lane / 4, t = lane % 4;
  const Result result = emulated::exchange("mma", 0xffffffffU, lane_factors, [&](auto factors_of) {
    Result out;
    std::memcpy(out.sums, sums, sizeof(out.sums));
    // Adds the products of the columns of `left` that lane 4 g + source_t holds in half `k_half` of the
    // depth.
    const auto add = [&](int source_t, int k_half) {
      const Factors rows = factors_of(4 * g + source_t), column_0 = factors_of(4 * (2 * t) + source_t),
                    column_1 = factors_of(4 * (2 * t + 1) + source_t);
      for (int half = 0; half < halves; ++half) {
        for (int row = 0; row < 2; ++row) {
          const float a = number(rows.left[row + 2 * k_half], half);
          out.sums[2 * row] += a * number(column_0.right[k_half], half);
          out.sums[2 * row + 1] += a * number(column_1.right[k_half], half);
        }
      }
    };
    // The order of additions is lane by lane for bf16, half by half of the depth for tf32.
    for (int i = 0; i < 8; ++i) halves == 2 ? add(i / 2, i % 2) : add(i % 4, i / 4);
    return out;
  });
  std::memcpy(sums, result.sums, sizeof(result.sums));
}
#endif

/// sums [16, 8] += left [16, 16] right [16, 8], of bf16. All lanes of a warp call it.
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

/// x rounded to the nearest tf32, ties away from zero.
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

/// sums [16, 8] += left [16, 8] right [8, 8], of tf32. All lanes of a warp call it. Lane 4 g + t holds of
/// `left`: row g, column t; row g + 8, column t; row g, column t + 4; row g + 8, column t + 4. It holds of
/// `right`: rows t and t + 4 of column g.
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

/// Loads four matrices [8, 8] of 16-bit numbers from shared memory. All lanes of a warp call it: lane l
/// passes the address of row l % 8 of matrix l / 8, a multiple of 16 bytes. Register m of lane 4 g + t
/// receives columns 2t and 2t + 1 of row g of matrix m.
__device__ inline void load_matrices(uint32_t (&registers)[4], const void* row) {
#ifdef __CUDACC__
  const auto row_address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
               : "r"(row_address)
               : "memory");
#else
  const int lane = emulated::lane();
  emulated::exchange("ldmatrix", 0xffffffffU, row, [&](auto row_of_lane) {
    for (int m = 0; m < 4; ++m) {
      const auto* matrix_row = static_cast<const char*>(row_of_lane(8 * m + lane / 4));
      std::memcpy(&registers[m], matrix_row + 4 * (lane % 4), sizeof(registers[m]));
    }
    return 0;
  });
#endif
}

/// load_matrices() of the transposes: register m receives rows 2t and 2t + 1 of column g of matrix m.
__device__ inline void load_matrices_transposed(uint32_t (&registers)[4], const void* row) {
#ifdef __CUDACC__
  const auto row_address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
               : "r"(row_address)
               : "memory");
#else
  const int lane = emulated::lane();
  emulated::exchange("ldmatrix.trans", 0xffffffffU, row, [&](auto row_of_lane) {
    for (int m = 0; m < 4; ++m) {
      uint16_t half[2];
      for (int i = 0; i < 2; ++i) {
        const auto* matrix_row = static_cast<const char*>(row_of_lane(8 * m + 2 * (lane % 4) + i));
        std::memcpy(&half[i], matrix_row + 2 * (lane / 4), 2);
      }
      registers[m] = half[0] | static_cast<uint32_t>(half[1]) << 16;
    }
    return 0;
  });
#endif
}

}  // namespace heed::cuda

// CUDA's bf16 numbers, acted: conversions and arithmetic that rounds once, to nearest even.
#pragma once

#include "core/cuda/acted/words.h"
#include "core/dtype.h"

struct __nv_bfloat16 {
  uint16_t bits;

  __nv_bfloat16() = default;
  __nv_bfloat16(float value) : bits(heed::bf16(value).bits) {}  // NOLINT: converts like CUDA's
  operator float() const { return __uint_as_float(static_cast<unsigned>(bits) << 16); }  // NOLINT
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

inline __nv_bfloat16 __float2bfloat16(float value) { return {value}; }
inline __nv_bfloat16 __float2bfloat16_rn(float value) { return {value}; }
inline float __bfloat162float(__nv_bfloat16 value) { return value; }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }
inline __nv_bfloat162 __float22bfloat162_rn(float2 value) { return {value.x, value.y}; }
inline float2 __bfloat1622float2(__nv_bfloat162 value) { return {value.x, value.y}; }
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }

// CUDA's keywords and vector types for the host's compiler.
#pragma once

#include <math.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)
#define __constant__ static
// One copy for each thread of the pool, which runs one block at a time.
#define __shared__ static thread_local

struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned first = 1, unsigned second = 1, unsigned third = 1)
      : x(first), y(second), z(third) {}
};

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

template <class T>
inline T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
inline T max(T a, T b) {
  return a < b ? b : a;
}
inline float rsqrt(float x) { return 1.0F / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __float_as_uint(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline float __uint_as_float(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// Atomic operations are on integers only: sums of floats would depend on the order.
inline int atomicAdd(int* at, int value) { return __atomic_fetch_add(at, value, __ATOMIC_RELAXED); }
inline unsigned long long atomicAdd(unsigned long long* at, unsigned long long value) {
  return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}
inline unsigned long long atomicMin(unsigned long long* at, unsigned long long value) {
  unsigned long long seen = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (seen > value &&
         !__atomic_compare_exchange_n(at, &seen, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return seen;
}

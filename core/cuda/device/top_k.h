// The k largest numbers of a row, found by one block without sorting.
#pragma once

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/cuda/device/sort.h"

namespace heed::cuda {

/// What choose_largest() keeps in shared memory.
struct Choice {
  int count[256], scratch[lanes];
  unsigned long long prefix;
  int wanted;
};

/// Number of x[0, n) that are neither -infinity nor NaN. All threads of the block call it.
template <class T>
__device__ int64_t open_numbers(const T* x, int64_t n, Choice& shared) {
  int own = 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) own += x[i] > lowest<T>() ? 1 : 0;
  return block_sum(own, shared.scratch);
}

/// The places of the k largest of x[0, n) in rising order to out[0, room), the first among equal ones;
/// -infinity and NaN are never chosen; what is left over of `out` becomes -1. By a block of `block` threads.
template <class T>
__device__ void choose_largest(const T* x, int64_t n, int64_t k, int32_t* out, int64_t room, Choice& shared) {
  using Key = decltype(ordered(T()));
  constexpr int bits = 8 * static_cast<int>(sizeof(Key));
  const int own = static_cast<int>(threadIdx.x);
  const bool all = open_numbers(x, n, shared) <= k;
  if (own == 0) {
    shared.prefix = 0;
    shared.wanted = static_cast<int>(k);
  }
  __syncthreads();
  // The k-th largest key byte by byte from above: `wanted` counts those equal to it that are chosen.
  for (int shift = bits - 8; shift >= 0 && !all && k > 0; shift -= 8) {
    shared.count[own] = 0;
    __syncthreads();
    const auto prefix = static_cast<Key>(shared.prefix);
    for (int64_t i = own; i < n; i += block) {
      const Key key = ordered(x[i]);
      if (!(x[i] > lowest<T>()) ||
          (shift + 8 < bits && (key >> (shift + 8 < bits ? shift + 8 : 0)) != prefix))
        continue;
      atomicAdd(&shared.count[(key >> shift) & 255], 1);
    }
    __syncthreads();
    if (own == 0) {
      int digit = 255;
      while (shared.count[digit] < shared.wanted) shared.wanted -= shared.count[digit--];
      shared.prefix = (shared.prefix << 8) | static_cast<unsigned>(digit);
    }
    __syncthreads();
  }
  const auto least = static_cast<Key>(shared.prefix);
  const int64_t equals = shared.wanted;
  int64_t placed = 0, met = 0;
  for (int64_t first = 0; first < n && (all || k > 0); first += block) {
    const int64_t i = first + own;
    const bool open = i < n && x[i] > lowest<T>();
    const Key key = open ? ordered(x[i]) : Key{0};
    int total = 0;
    const bool equal = open && !all && key == least;
    const int64_t before = met + block_rank(equal, shared.scratch, total);
    met += total;
    const bool chosen = open && (all || key > least || (equal && before < equals));
    const int64_t to = placed + block_rank(chosen, shared.scratch, total);
    placed += total;
    if (chosen && to < room) out[to] = static_cast<int32_t>(i);
  }
  for (int64_t i = std::min(placed, room) + own; i < room; i += block) out[i] = -1;
}

}  // namespace heed::cuda

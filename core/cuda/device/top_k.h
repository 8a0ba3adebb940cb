// The k largest numbers of a row, found by one block without sorting.
#pragma once

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/cuda/device/sort.h"

namespace heed::cuda {

/// Shared memory of choose_largest().
struct TopKScratch {
  int count[256], scratch[lanes];
  unsigned long long prefix;  ///< upper bytes of the k-th largest key, as far as they are known
  int num_equal;              ///< number of chosen keys that begin with `prefix`
};

/// Number of x[0, n) that are neither -infinity nor NaN (valid). All threads of the block call it.
template <class T>
__device__ int64_t num_valid_numbers(const T* x, int64_t n, TopKScratch& shared) {
  int count = 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) count += x[i] > minus_infinity<T> ? 1 : 0;
  return block_sum(count, shared.scratch);
}

/// out[0, room) = the indices of the k largest of x[0, n), ascending, then -1; of equal numbers the first are
/// chosen, -infinity and NaN never. By a block of `block` threads: radix select of the k-th largest key, then
/// one pass over x.
template <class T>
__device__ void choose_largest(const T* x, int64_t n, int64_t k, int32_t* out, int64_t room,
                               TopKScratch& shared) {
  using Key = decltype(ordered(T()));
  constexpr int bits = 8 * static_cast<int>(sizeof(Key));
  const int thread = static_cast<int>(threadIdx.x);
  const bool takes_all = num_valid_numbers(x, n, shared) <= k;
  if (thread == 0) {
    shared.prefix = 0;
    shared.num_equal = static_cast<int>(k);
  }
  __syncthreads();
  // Finds the k-th largest key byte by byte from above; at the end num_equal is the number of chosen keys
  // that are equal to it.
  for (int shift = bits - 8; shift >= 0 && !takes_all && k > 0; shift -= 8) {
    shared.count[thread] = 0;
    __syncthreads();
    const auto prefix = static_cast<Key>(shared.prefix);
    for (int64_t i = thread; i < n; i += block) {
      const Key key = ordered(x[i]);
      const bool is_first_byte = shift + 8 == bits;  // a shift by all bits would be undefined
      if (!(x[i] > minus_infinity<T>) ||
          (!is_first_byte && (key >> (is_first_byte ? 0 : shift + 8)) != prefix))
        continue;
      atomicAdd(&shared.count[(key >> shift) & 255], 1);
    }
    __syncthreads();
    if (thread == 0) {
      int digit = 255;
      while (shared.count[digit] < shared.num_equal) shared.num_equal -= shared.count[digit--];
      shared.prefix = (shared.prefix << 8) | static_cast<unsigned>(digit);
    }
    __syncthreads();
  }
  const auto threshold = static_cast<Key>(shared.prefix);
  const int64_t max_equal = shared.num_equal;
  int64_t placed = 0, num_equal_before = 0;
  for (int64_t begin = 0; begin < n && (takes_all || k > 0); begin += block) {
    const int64_t i = begin + thread;
    const bool is_valid = i < n && x[i] > minus_infinity<T>;
    const Key key = is_valid ? ordered(x[i]) : Key{0};
    int total = 0;
    const bool is_equal = is_valid && !takes_all && key == threshold;
    const int64_t equal_rank = num_equal_before + block_rank(is_equal, shared.scratch, total);
    num_equal_before += total;
    const bool is_chosen = is_valid && (takes_all || key > threshold || (is_equal && equal_rank < max_equal));
    const int64_t position = placed + block_rank(is_chosen, shared.scratch, total);
    placed += total;
    if (is_chosen && position < room) out[position] = static_cast<int32_t>(i);
  }
  for (int64_t i = std::min(placed, room) + thread; i < room; i += block) out[i] = -1;
}

}  // namespace heed::cuda

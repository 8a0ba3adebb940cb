// Rows of heads on the CPU: prefetching, padding to whole vectors, and scratch memory.
#pragma once

#include <algorithm>

#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/kernels/simd/simd.h"

namespace heed::kernel {

/// Prefetches rows x [rows, width], `ld` elements apart: strides of heads defeat the hardware prefetcher.
template <class T>
void fetch_rows(const T* x, int64_t ld, int64_t rows, int64_t width) {
  constexpr int64_t elements_per_cache_line = 64 / static_cast<int64_t>(sizeof(T));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < width; c += elements_per_cache_line)
      __builtin_prefetch(x + r * ld + c, /*rw=*/0, /*locality=*/2);
  }
}

/// Rows of a matrix, `ld` elements apart.
template <class T>
struct Rows {
  const T* data;
  int64_t ld;

  const T* row(int64_t index) const { return data + index * ld; }
  Rows from(int64_t index) const { return {row(index), ld}; }
};

/// Rows [rows, padded width]: x where the width is a whole number of vectors, else a copy padded with zeros.
template <class T>
Rows<T> whole_rows(const T* x, int64_t ld, int64_t rows, int64_t width, T* copy) {
  const int64_t padded_width = simd::padded<T>(width);
  if (padded_width == width) return {x, ld};
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(x + r * ld, width, copy + r * padded_width);
    std::fill(copy + r * padded_width + width, copy + (r + 1) * padded_width, T(0));
  }
  return {copy, padded_width};
}

template <class T>
void zero_rows(T* x, int64_t ld, int64_t rows, int64_t width) {
  for (int64_t r = 0; r < rows; ++r) std::fill_n(x + r * ld, width, T(0));
}

/// Allocates pieces of scratch memory one after the other, each aligned to 64 bytes.
template <class T>
class BumpAllocator {
 public:
  explicit BumpAllocator(T* begin) : next_(begin) {}
  T* take(int64_t count) {
    T* out = next_;
    next_ += rounded(count);
    return out;
  }
  static int64_t rounded(int64_t count) { return (count + 15) / 16 * 16; }

 private:
  T* next_;
};

/// Floating-point operations of a task that is worth giving to a thread.
inline constexpr int64_t flops_per_task = 4'000'000;

}  // namespace heed::kernel

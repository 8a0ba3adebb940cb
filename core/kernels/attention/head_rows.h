// Rows of heads as the kernels of the CPU take them: fetched early, in whole vectors, in scratch memory.
#pragma once

#include <algorithm>

#include "core/kernels/head_rows.h"
#include "core/kernels/vector.h"

namespace heed::kernel {

/// Asks for rows that will be needed soon: heads lie scattered in memory, which hides their order from the
/// hardware.
template <class T>
void fetch_rows(const T* x, int64_t ld, int64_t rows, int64_t width) {
  constexpr int64_t line = 64 / static_cast<int64_t>(sizeof(T));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < width; c += line) __builtin_prefetch(x + r * ld + c, 0, 2);
  }
}

/// Some rows of a matrix and the distance between them.
template <class T>
struct Rows {
  const T* data;
  int64_t ld;

  Rows from(int64_t row) const { return {data + row * ld, ld}; }
};

/// Rows of whole vectors: x itself, or a copy filled up with zeros where the width is not a whole number of
/// vectors.
template <class T>
Rows<T> whole_rows(const T* x, int64_t ld, int64_t rows, int64_t width, T* copy) {
  const int64_t wide = simd::padded<T>(width);
  if (wide == width) return {x, ld};
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(x + r * ld, width, copy + r * wide);
    std::fill(copy + r * wide + width, copy + (r + 1) * wide, T(0));
  }
  return {copy, wide};
}

template <class T>
void zero_rows(T* x, int64_t ld, int64_t rows, int64_t width) {
  for (int64_t r = 0; r < rows; ++r) std::fill_n(x + r * ld, width, T(0));
}

/// Hands out runs of a part of scratch memory, each aligned to 64 bytes.
template <class T>
class Carve {
 public:
  explicit Carve(T* begin) : next_(begin) {}
  T* take(int64_t count) {
    T* out = next_;
    next_ += rounded(count);
    return out;
  }
  static int64_t rounded(int64_t count) { return (count + 15) / 16 * 16; }

 private:
  T* next_;
};

/// Pieces of `size` that cover `count`.
inline int64_t pieces_of(int64_t count, int64_t size) { return (count + size - 1) / size; }

/// Operations that pay for handing a piece to a thread.
inline constexpr int64_t piece_flops = 4'000'000;

}  // namespace heed::kernel

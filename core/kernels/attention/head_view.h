// Pointers to tensors for kernels on the CPU and on devices: rows of the heads of a tensor [B, H, T, d], and
// tensors that may be empty.
#pragma once

#include <type_traits>

#include "heed/core/launch.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// Pointer to the elements of x; null where x is empty.
template <class T>
T* data_or_null(const Tensor& x) {
  return x ? x.data<std::remove_const_t<T>>() : nullptr;
}

/// Rows of a tensor [B, H, T, d] of last stride 1. T may be const. An empty tensor gives null.
template <class T>
struct HeadView {
  T* data = nullptr;
  int64_t batch = 0, head = 0, ld = 0;  ///< strides in elements: of batch rows, of heads, of rows
  const int32_t* starts = nullptr;  ///< first rows of packed sequences in [1, H, N, d]; null: rows are padded

  HeadView() = default;
  /// `first_rows`: PackedSequences::starts of x, in its memory; null: x is padded.
  explicit HeadView(const Tensor& x, const int32_t* first_rows = nullptr) : starts(first_rows) {
    if (!x) return;
    data = x.data<std::remove_const_t<T>>();
    batch = x.strides()[0];
    head = x.strides()[1];
    ld = x.strides()[2];
  }
  /// Row t of head h of sequence b.
  HEED_BOTH T* at(int64_t b, int64_t h, int64_t t) const {
    return data + (starts == nullptr ? b * batch : starts[b] * ld) + h * head + t * ld;
  }
};

}  // namespace heed::kernel

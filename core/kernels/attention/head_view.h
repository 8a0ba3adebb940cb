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

  HeadView() = default;
  explicit HeadView(const Tensor& x) {
    if (!x) return;
    data = x.data<std::remove_const_t<T>>();
    batch = x.strides()[0];
    head = x.strides()[1];
    ld = x.strides()[2];
  }
  HEED_BOTH T* at(int64_t b, int64_t h, int64_t t) const { return data + b * batch + h * head + t * ld; }
};

}  // namespace heed::kernel

// A tensor [B, H, T, d] as pointers to the rows of its heads, on the CPU and on the device.
#pragma once

#include <type_traits>

#include "heed/core/launch.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// Strides in elements; the last stride is 1. T may be const. An empty tensor gives null.
template <class T>
struct HeadView {
  T* data = nullptr;
  int64_t batch = 0, head = 0, ld = 0;

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

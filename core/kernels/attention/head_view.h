// A view [B, H, T, d] as plain pointers to the rows of its heads.
#pragma once

#include <type_traits>

#include "core/launch.h"
#include "core/tensor.h"

namespace heed::kernel {

/// T may be const. Distances in elements; the last stride is 1. Of an empty tensor: null.
template <class T>
struct Heads {
  T* data = nullptr;
  int64_t batch = 0, head = 0, ld = 0;

  Heads() = default;
  explicit Heads(const Tensor& x) {
    if (!x) return;
    data = x.data<std::remove_const_t<T>>();
    batch = x.strides()[0];
    head = x.strides()[1];
    ld = x.strides()[2];
  }
  HEED_BOTH T* at(int64_t b, int64_t h, int64_t t) const { return data + b * batch + h * head + t * ld; }
};

}  // namespace heed::kernel

// Rows of a view [B, H, T, d] as an argument of a kernel.
#pragma once

#include <type_traits>

#include "core/cuda/grid.h"
#include "core/tensor.h"

namespace heed::cuda {

/// T may be const. Distances in elements; the last stride is 1.
template <class T>
struct HeadRows {
  T* data;
  int64_t batch, head, ld;

  explicit HeadRows(const Tensor& x)
      : data(x.data<std::remove_const_t<T>>()),
        batch(x.strides()[0]),
        head(x.strides()[1]),
        ld(x.strides()[2]) {}
  __device__ T* at(int64_t b, int64_t h, int64_t t) const { return data + b * batch + h * head + t * ld; }
};

/// Pointer to the numbers of x; null where it is empty.
template <class T>
T* pointer(const Tensor& x) {
  return x ? x.data<T>() : nullptr;
}

}  // namespace heed::cuda

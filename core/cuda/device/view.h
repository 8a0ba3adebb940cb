// Strided tensors as arguments of kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heed/core/host_device.h"
#include "heed/core/kernels/simd/strided_loops.h"
#include "heed/core/tensor.h"

namespace heed::cuda {

/// Offsets of element i, counted in row-major order, in each of N operands of one shape. Axes that lie
/// together in all of them are merged, so dense operands cost no division.
template <int N>
struct Places {
  struct Offsets {
    int64_t of[N];
  };

  explicit Places(const kernel::StridedLoop<static_cast<size_t>(N)>& walk)
      : axes(static_cast<int>(walk.axes)), size(walk.inner * walk.outer) {
    for (size_t axis = 0; axis < walk.axes; ++axis) {
      extent[axis] = walk.extent[axis];
      for (size_t k = 0; k < static_cast<size_t>(N); ++k) stride[axis][k] = walk.stride[axis][k];
    }
  }

  HEED_BOTH Offsets at(int64_t i) const {
    return size <= 0x7fffffff ? split<uint32_t>(i) : split<uint64_t>(i);
  }

  /// True when every operand is dense.
  bool dense() const {
    bool all = axes == 1;
    for (int k = 0; k < N; ++k) all = all && (stride[0][k] == 1 || extent[0] == 1);
    return all;
  }

  int axes;  ///< axis 0 is the innermost
  int64_t size;
  int64_t extent[Extents::most] = {}, stride[Extents::most][N] = {};

 private:
  template <class Index>  // divisions of 32 bits are several times as fast
  HEED_BOTH Offsets split(int64_t i) const {
    Offsets offsets{};
    auto rest = static_cast<Index>(i);
    for (int axis = 0; axis < axes; ++axis) {
      const auto length = static_cast<Index>(extent[axis]);
      const Index next = axis + 1 < axes ? rest / length : 0;
      const auto index = static_cast<int64_t>(rest - next * length);
      for (int k = 0; k < N; ++k) offsets.of[k] += index * stride[axis][k];
      rest = next;
    }
    return offsets;
  }
};

/// The places of tensors of one shape: `places(x, y)`.
template <class... Tensors>
Places<static_cast<int>(sizeof...(Tensors))> places(const Tensors&... tensors) {
  const Shape* shape = nullptr;
  ((shape = &tensors.shape()), ...);
  return Places<static_cast<int>(sizeof...(Tensors))>(
      kernel::StridedLoop<sizeof...(Tensors)>(*shape, {&tensors.strides()...}));
}

/// One strided tensor: its numbers, extents and strides as they are, for kernels that index by axis, and
/// elements counted in row-major order.
template <class T>
struct View {
  T* data;
  int rank;
  int64_t extent[Extents::most], stride[Extents::most];

  HEED_BOTH T& at(int64_t i) const {
    int64_t offset = 0;
    for (int axis = rank - 1; axis >= 0; --axis) {
      offset += i % extent[axis] * stride[axis];
      i /= extent[axis];
    }
    return data[offset];
  }
  /// By one index an axis.
  template <class... Index>
  HEED_BOTH T& operator()(Index... index) const {
    const int64_t all[] = {static_cast<int64_t>(index)...};
    int64_t offset = 0;
    for (size_t axis = 0; axis < sizeof...(Index); ++axis) offset += all[axis] * stride[axis];
    return data[offset];
  }
};

/// The tensor for a kernel; checks the dtype. T may be const.
template <class T>
View<T> view(const Tensor& x) {
  View<T> out{x.data<std::remove_const_t<T>>(), static_cast<int>(x.rank()), {}, {}};
  for (int axis = 0; axis < out.rank; ++axis) {
    out.extent[axis] = x.extent(axis);
    out.stride[axis] = x.strides()[axis];
  }
  return out;
}

}  // namespace heed::cuda

// Offsets of the elements of strided tensors, as an argument of kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heed/core/host_device.h"
#include "heed/core/kernels/simd/strided_loops.h"
#include "heed/core/tensor.h"

namespace heed::cuda {

/// Offsets of element i, counted in row-major order, in each of N operands of one shape. Adjacent axes that
/// are contiguous in all operands are merged, so contiguous operands cost no division.
template <int N>
struct StridedOffsets {
  struct Offsets {
    int64_t of_operand[N];
    HEED_BOTH int64_t operator[](int k) const { return of_operand[k]; }
  };

  explicit StridedOffsets(const kernel::StridedLoop<static_cast<size_t>(N)>& loop)
      : axes(static_cast<int>(loop.axes)), size(loop.inner * loop.outer) {
    for (size_t axis = 0; axis < loop.axes; ++axis) {
      extent[axis] = loop.extent[axis];
      for (size_t k = 0; k < static_cast<size_t>(N); ++k) stride[axis][k] = loop.stride[axis][k];
    }
  }

  HEED_BOTH Offsets at(int64_t i) const {
    return size <= 0x7fffffff ? split<uint32_t>(i) : split<uint64_t>(i);
  }

  bool all_contiguous() const {
    bool contiguous = axes == 1;
    for (int k = 0; k < N; ++k) contiguous = contiguous && (stride[0][k] == 1 || extent[0] == 1);
    return contiguous;
  }

  int axes;  ///< axis 0 is the innermost
  int64_t size;
  int64_t extent[Extents::max_rank] = {}, stride[Extents::max_rank][N] = {};

 private:
  template <class Index>  // 32-bit divisions are several times as fast
  HEED_BOTH Offsets split(int64_t i) const {
    Offsets offsets{};
    auto remaining = static_cast<Index>(i);
    for (int axis = 0; axis < axes; ++axis) {
      const auto length = static_cast<Index>(extent[axis]);
      const Index outer = axis + 1 < axes ? remaining / length : 0;
      const auto index = static_cast<int64_t>(remaining - outer * length);
      for (int k = 0; k < N; ++k) offsets.of_operand[k] += index * stride[axis][k];
      remaining = outer;
    }
    return offsets;
  }
};

/// StridedOffsets of tensors of one shape.
template <class... Tensors>
StridedOffsets<static_cast<int>(sizeof...(Tensors))> strided_offsets(const Tensors&... tensors) {
  const Shape* shape = nullptr;
  ((shape = &tensors.shape()), ...);
  return StridedOffsets<static_cast<int>(sizeof...(Tensors))>(
      kernel::StridedLoop<sizeof...(Tensors)>(*shape, {&tensors.strides()...}));
}

}  // namespace heed::cuda

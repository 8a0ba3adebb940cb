// Tables of numbers that the host makes from shapes and settings.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/core/tensor.h"

namespace heed {

/// A read-only table computed on the CPU from shapes and settings, as a tensor on this device. A device
/// caches tables: equal numbers give the same memory, so a step finds its tables there when a CUDA graph
/// captures it and nothing may be copied. The cache holds the last 256 MiB used; tables of a captured step
/// live as long as the step.
Tensor constant_table(const Tensor& made, Device device, DType dtype);

/// The same of a list.
template <class T>
Tensor constant_table(std::span<const T> values, const Shape& shape, Device device,
                      DType dtype = dtype_of<T>) {
  return constant_table(Tensor::of<T>(values, shape, Device::cpu), device, dtype);
}

/// The same of plain data: a list's bytes, [bytes] in u8.
template <class X>
Tensor constant_bytes(const std::vector<X>& list, Device device) {
  const std::span bytes(reinterpret_cast<const uint8_t*>(list.data()), list.size() * sizeof(X));
  return constant_table(bytes, Shape{static_cast<int64_t>(bytes.size())}, device);
}

/// True while a CUDA graph captures a step: then nothing may be read back from the device or waited for.
bool step_is_recorded();

/// Declares that the step being captured reads this older tensor, whose memory then stays for the replays.
void keep_for_replays(const Tensor& x);

}  // namespace heed

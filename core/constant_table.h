// Tables of numbers that the host computes from shapes and settings.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/core/tensor.h"

namespace heed {

/// A read-only table, whose values the CPU has computed, on a device. A device caches tables: equal values
/// give the same memory, so a step finds its tables there while a CUDA graph captures it, when nothing may be
/// copied. The cache holds the last 256 MiB used; tables of a captured step live as long as the step.
Tensor constant_table(const Tensor& values, Device device, DType dtype);

/// constant_table() of a list of values.
template <class T>
Tensor constant_table(std::span<const T> values, const Shape& shape, Device device,
                      DType dtype = dtype_of<T>) {
  return constant_table(Tensor::of<T>(values, shape, Device::cpu), device, dtype);
}

/// constant_table() of the bytes of a list, as u8 [bytes].
template <class X>
Tensor constant_bytes(const std::vector<X>& list, Device device) {
  const std::span bytes(reinterpret_cast<const uint8_t*>(list.data()), list.size() * sizeof(X));
  return constant_table(bytes, Shape{static_cast<int64_t>(bytes.size())}, device);
}

/// True while a CUDA graph captures a step, when nothing may wait for the device or read from it.
bool step_is_recorded();

/// Keeps the memory of x, which the step being captured reads, as long as the captured step.
void keep_for_replays(const Tensor& x);

}  // namespace heed

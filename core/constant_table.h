// Tables of numbers that the host makes from shapes and settings.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor.h"

namespace heed {

/// A table that follows from shapes and settings alone, made on the CPU, as a tensor of this dtype on this
/// device. Nobody writes to it: on a device the same numbers come back as the same memory, so that a step
/// that has run as it is finds its tables there when it is recorded, while nothing may be copied in. Those
/// used last stay, of at most 256 MiB together; those of a recorded step stay for as long as it does.
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

/// Whether a step is being recorded: nothing may be read back from the device or waited for.
bool step_is_recorded();

/// A step that is being recorded reads this tensor, which was made before: its memory stays for the replays.
void keep_for_replays(const Tensor& x);

}  // namespace heed

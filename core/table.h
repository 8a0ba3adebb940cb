// Tables of numbers that the host makes from shapes and settings.
#pragma once

#include <span>

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

/// Whether a step is being recorded: nothing may be read back from the device or waited for.
bool step_is_recorded();

/// A step that is being recorded reads this tensor, which was made before: its memory stays for the replays.
void keep_for_replays(const Tensor& x);

}  // namespace heed

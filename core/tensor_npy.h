// Tensors as NumPy's .npy files.
#pragma once

#include "heed/core/io/npy.h"
#include "heed/core/tensor.h"

namespace heed {

/// The array of a .npy file as a tensor on `device`; fails as read_npy() does.
Tensor read_npy_tensor(const Path& path, Device device = default_device);
/// Writes the numbers of a tensor, of any dtype but bf16, as a .npy file, atomically.
void write_npy(const Path& path, const Tensor& x);

}  // namespace heed

// Reads and writes tensors as .npy files.
#include "heed/core/tensor_npy.h"

#include <cstring>

#include "heed/core/io/files.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"

namespace heed {

Tensor read_npy_tensor(const Path& path, Device device) {
  const Array array = read_npy(path);
  Shape shape;
  if (static_cast<int64_t>(array.shape.size()) > Shape::max_rank)
    fail(Fault::data, path, ": holds ", array.shape.size(), " dimensions; a tensor has at most ",
         Shape::max_rank, ".");
  for (const int64_t extent : array.shape) shape.push_back(extent);
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8}) {
    if (array.dtype != to_string(dtype)) continue;
    const Tensor x(shape, dtype, Device::cpu);
    if (!array.bytes.empty()) std::memcpy(x.raw(), array.bytes.data(), array.bytes.size());
    return x.to(device);
  }
  fail(Fault::data, path, ": holds ", array.dtype, ", which no tensor has.");
}

void write_npy(const Path& path, const Tensor& x) {
  if (x.dtype() == DType::bf16)
    fail("write_npy: bf16 is no type of this format. Convert with cast(x, DType::f32).");
  Tensor dense = x.detach();
  if (!x.contiguous()) {
    dense = empty_like(x);
    launch<kernel::Copy>(x.device(), x.detach(), dense);
  }
  dense = dense.to(Device::cpu);
  io::write(path,
            encode_npy(to_string(x.dtype()), std::vector<int64_t>(x.shape().begin(), x.shape().end()),
                       {static_cast<const std::byte*>(dense.raw()), static_cast<size_t>(dense.bytes())}));
}

}  // namespace heed

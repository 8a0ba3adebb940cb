// Copies between padded rows and packed sequences on the GPU.
#include "heed/core/kernels/elementwise/pack.h"

#include "heed/core/cuda/device/grid.h"

namespace heed::kernel {
namespace {

/// padded[b, t, c] = packed[starts[b] + t, c], or 0 behind the rows of sequence b, by threads in steps of the
/// grid.
template <class T>
__global__ void pad(int64_t size, int64_t length, int64_t width, const int32_t* starts, const T* packed,
                    T* padded) {
  for (int64_t i = cuda::global_thread(); i < size; i += cuda::grid_size()) {
    const int64_t row = i / width, b = row / length, packed_row = starts[b] + row % length;
    padded[i] = packed_row < starts[b + 1] ? packed[packed_row * width + i % width] : T{};
  }
}

/// packed[starts[b] + t, c] = padded[b, t, c], by threads in steps of the grid over the padded numbers. Rows
/// from starts[batch] on become 0.
template <class T>
__global__ void pack(int64_t size, int64_t packed_size, int64_t length, int64_t width, int64_t batch,
                     const int32_t* starts, const T* padded, T* packed) {
  for (int64_t i = cuda::global_thread(); i < size; i += cuda::grid_size()) {
    const int64_t row = i / width, b = row / length, packed_row = starts[b] + row % length;
    if (packed_row < starts[b + 1]) packed[packed_row * width + i % width] = padded[i];
  }
  for (int64_t i = starts[batch] * width + cuda::global_thread(); i < packed_size; i += cuda::grid_size())
    packed[i] = T{};
}

}  // namespace

/// One thread per padded number, up to the largest grid.
void PadPacked::cuda(const Tensor& packed, const PackedSequences& sequences, const Tensor& padded) {
  visit(packed.dtype(), [&]<class T>(Type<T>) {
    cuda::run(pad<T>, cuda::grid_over(padded.size()), padded.size(), padded.extent(1), padded.extent(2),
              sequences.starts.data<int32_t>(), packed.data<T>(), padded.data<T>());
  });
}

/// One thread per padded number, up to the largest grid.
void PackPadded::cuda(const Tensor& padded, const PackedSequences& sequences, const Tensor& packed) {
  visit(packed.dtype(), [&]<class T>(Type<T>) {
    cuda::run(pack<T>, cuda::grid_over(std::max(padded.size(), packed.size())), padded.size(), packed.size(),
              padded.extent(1), padded.extent(2), padded.extent(0), sequences.starts.data<int32_t>(),
              padded.data<T>(), packed.data<T>());
  });
}

}  // namespace heed::kernel

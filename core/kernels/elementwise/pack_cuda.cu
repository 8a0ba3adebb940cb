// Copies between padded rows and packed sequences, and sums of packed sequences, on the GPU.
#include "heed/core/kernels/elementwise/pack.h"

#include "heed/core/cuda/device/grid.h"
#include "heed/core/operation_count.h"

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

constexpr int columns = 32, row_lanes = 8;  // threads of a block of sum_sequences()

/// sums[b, c] = sum of x[row, c] over the rows of sequence b, by one block per sequence and 32 columns. Each
/// of eight threads of a column sums every eighth row; their sums are added in order.
template <class T>
__global__ void sum_sequences(int64_t width, const int32_t* starts, const T* x, T* sums) {
  T* partial = cuda::shared<T>();  // [row_lanes, columns]
  const int64_t b = blockIdx.x, c = int64_t{blockIdx.y} * columns + threadIdx.x;
  T sum = T(0);
  for (int64_t row = starts[b] + threadIdx.y; c < width && row < starts[b + 1]; row += row_lanes)
    sum += x[row * width + c];
  partial[threadIdx.y * columns + threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || c >= width) return;
  for (int lane = 1; lane < row_lanes; ++lane) sum += partial[lane * columns + threadIdx.x];
  sums[b * width + c] = sum;
}

/// y[row, c] = x[b, c] for the rows of sequence b, and 0 from starts[batch] on, by one block per sequence and
/// part of its rows; the block of number `batch` writes the zeros.
template <class T>
__global__ void repeat(int64_t batch, int64_t rows, int64_t width, const int32_t* starts, const T* x, T* y) {
  const int64_t b = blockIdx.x, first = int64_t{starts[b]} * width,
                end = (b < batch ? int64_t{starts[b + 1]} : rows) * width;
  for (int64_t i = first + int64_t{blockIdx.y} * blockDim.x + threadIdx.x; i < end;
       i += int64_t{gridDim.y} * blockDim.x)
    y[i] = b < batch ? x[b * width + i % width] : T(0);
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

/// One block of 256 threads per sequence and 32 columns.
void SumSequences::cuda(const Tensor& x, const PackedSequences& sequences, const Tensor& sums) {
  const int64_t width = sums.extent(1);
  visit_float("sum_sequences", x.dtype(), [&]<class T>(Type<T>) {
    cuda::run(sum_sequences<T>,
              {.blocks = dim3(static_cast<unsigned>(sums.extent(0)),
                              static_cast<unsigned>(ceil_div(width, columns))),
               .threads = dim3(columns, row_lanes),
               .shared_bytes = columns * row_lanes * static_cast<int>(sizeof(T))},
              width, sequences.starts.data<int32_t>(), x.data<T>(), sums.data<T>());
  });
  Count::add(x.size());
}

/// Eight blocks per sequence, and eight for the rows behind them.
void RepeatOverSequences::cuda(const Tensor& x, const PackedSequences& sequences, const Tensor& y) {
  constexpr unsigned parts = 8;
  const int64_t batch = x.extent(0);
  visit_float("sum_sequences", x.dtype(), [&]<class T>(Type<T>) {
    cuda::run(repeat<T>, {.blocks = dim3(static_cast<unsigned>(batch) + 1, parts), .threads = dim3(256)},
              batch, y.extent(1), x.extent(1), sequences.starts.data<int32_t>(), x.data<T>(), y.data<T>());
  });
}

}  // namespace heed::kernel

// Copies between padded rows and packed sequences, by one warp per row, sums of packed sequences, and
// positions added to them, on the GPU.
#include "heed/core/kernels/elementwise/pack.h"

#include <algorithm>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/pack.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/kernels/elementwise/activation_types.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// The rows of both tensors: `width` packs each. Sequence b has rows starts[b] to starts[b + 1] - 1.
template <class Row>
struct PackedCopy {
  Row *packed, *padded;
  const int32_t* starts;
  int batch, length, width;  ///< B, T and the packs of a row
};

/// Number of this warp's row in the sequences that its block copies, and the number of such rows at a time.
__device__ int warp_row() { return static_cast<int>(cuda::grid_warp()); }
__device__ int warp_rows() { return static_cast<int>(cuda::grid_warps()); }

/// padded[b, t, :] = packed[starts[b] + t, :], or 0 behind the rows of sequence b. Blocks (x, y): warps of x
/// are rows t, y are sequences.
template <class Row>
__global__ void pad(PackedCopy<Row> x) {
  for (int b = static_cast<int>(blockIdx.y); b < x.batch; b += static_cast<int>(gridDim.y)) {
    const int rows = x.starts[b + 1] - x.starts[b];
    for (int t = warp_row(); t < x.length; t += warp_rows()) {
      const Row* from = x.packed + (int64_t{x.starts[b]} + t) * x.width;
      Row* to = x.padded + (int64_t{b} * x.length + t) * x.width;
      for (int c = cuda::lane(); c < x.width; c += cuda::lanes) to[c] = t < rows ? from[c] : Row{};
    }
  }
}

/// packed[starts[b] + t, :] = padded[b, t, :] for the rows of sequence b, by blocks as of pad(). Rows from
/// starts[batch] on become 0.
template <class Row>
__global__ void pack(PackedCopy<Row> x, int num_packed) {
  for (int b = static_cast<int>(blockIdx.y); b < x.batch; b += static_cast<int>(gridDim.y)) {
    const int rows = x.starts[b + 1] - x.starts[b];
    for (int t = warp_row(); t < rows; t += warp_rows()) {
      const Row* from = x.padded + (int64_t{b} * x.length + t) * x.width;
      Row* to = x.packed + (int64_t{x.starts[b]} + t) * x.width;
      for (int c = cuda::lane(); c < x.width; c += cuda::lanes) to[c] = from[c];
    }
  }
  if (blockIdx.y > 0) return;
  for (int row = x.starts[x.batch] + warp_row(); row < num_packed; row += warp_rows()) {
    Row* to = x.packed + int64_t{row} * x.width;
    for (int c = cuda::lane(); c < x.width; c += cuda::lanes) to[c] = Row{};
  }
}

/// Calls f(PackedCopy) with rows of packs of 16 bytes where the width and the memory allow it, else of
/// numbers.
template <class F>
void with_rows(const Tensor& packed, const PackedSequences& sequences, const Tensor& padded, F&& f) {
  visit(packed.dtype(), [&]<class T>(Type<T>) {
    const auto call = [&]<int P>() {
      using Row = cuda::Pack<T, P>;
      f(PackedCopy<Row>{.packed = reinterpret_cast<Row*>(packed.data<T>()),
                        .padded = reinterpret_cast<Row*>(padded.data<T>()),
                        .starts = sequences.starts.data<int32_t>(),
                        .batch = static_cast<int>(padded.extent(0)),
                        .length = static_cast<int>(padded.extent(1)),
                        .width = static_cast<int>(padded.extent(2) / P)});
    };
    constexpr int P = 16 / sizeof(T);
    const bool has_packs =
        padded.extent(2) % P == 0 && cuda::packs<P>(packed.data<T>()) && cuda::packs<P>(padded.data<T>());
    has_packs ? call.template operator()<P>() : call.template operator()<1>();
  });
}

/// One warp for each of the longest of the rows t, and one row of blocks for each sequence.
cuda::Grid rows_grid(int64_t rows, int64_t batch) {
  constexpr int64_t max_blocks_y = 65535;
  cuda::Grid grid = cuda::warp_per_row(rows);
  grid.blocks.y = static_cast<unsigned>(std::min(batch, max_blocks_y));
  return grid;
}

constexpr int columns = 32, row_lanes = 8;  // threads of a block of sum_sequences()

/// sums[n, c] = sum of x[row, c] over the rows of sequence n step, by one block per sum and 32 columns. Each
/// of eight threads of a column sums every eighth row; their sums are added in order.
template <class T>
__global__ void sum_sequences(int64_t width, const int32_t* starts, int64_t step, const T* x, T* sums) {
  T* partial = cuda::shared<T>();  // [row_lanes, columns]
  const int64_t n = blockIdx.x, c = int64_t{blockIdx.y} * columns + threadIdx.x, end = starts[n * step + 1];
  T sum = T(0);
  for (int64_t row = starts[n * step] + threadIdx.y; c < width && row < end; row += row_lanes)
    sum += x[row * width + c];
  partial[threadIdx.y * columns + threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || c >= width) return;
  for (int lane = 1; lane < row_lanes; ++lane) sum += partial[lane * columns + threadIdx.x];
  sums[n * width + c] = sum;
}

/// y[row, c] = x[n, c] for the rows of sequence n step, and 0 in other rows, by one block per row of x and
/// part of the rows up to the next such sequence; the block of number `batch` writes the zeros behind all of
/// them.
template <class T>
__global__ void repeat(int64_t batch, int64_t rows, int64_t width, const int32_t* starts, int64_t step,
                       const T* x, T* y) {
  const int64_t n = blockIdx.x;
  const bool is_sequence = n < batch;
  const int64_t first = int64_t{starts[n * step]} * width,
                end_of_copies = is_sequence ? int64_t{starts[n * step + 1]} * width : first,
                end = (is_sequence ? int64_t{starts[(n + 1) * step]} : rows) * width;
  for (int64_t i = first + int64_t{blockIdx.y} * blockDim.x + threadIdx.x; i < end;
       i += int64_t{gridDim.y} * blockDim.x)
    y[i] = i < end_of_copies ? x[n * width + i % width] : T(0);
}

/// y[row, :] = x[row, :] + table[t, :] for the rows t of sequence b, by blocks as of pad().
template <class S>
__global__ void add_positions(const S* x, const Computed<S>* table, const int32_t* starts, int batch,
                              int width, S* y) {
  for (int b = static_cast<int>(blockIdx.y); b < batch; b += static_cast<int>(gridDim.y)) {
    const int rows = starts[b + 1] - starts[b];
    for (int t = warp_row(); t < rows; t += warp_rows()) {
      const int64_t first = (int64_t{starts[b]} + t) * width;
      const Computed<S>* position = table + int64_t{t} * width;
      for (int c = cuda::lane(); c < width; c += cuda::lanes)
        y[first + c] = Computed<S>(x[first + c]) + position[c];
    }
  }
}

/// dtable[t, c] = sum of dy[starts[b] + t, c] over the sequences with a row t, in order, by one thread per
/// number.
template <class S>
__global__ void sum_positions(const S* dy, const int32_t* starts, int batch, int64_t size, int width,
                              Computed<S>* dtable) {
  for (int64_t i = cuda::global_thread(); i < size; i += cuda::grid_size()) {
    const int64_t t = i / width;
    Computed<S> sum = 0;
    for (int b = 0; b < batch; ++b)
      if (t < starts[b + 1] - starts[b]) sum += Computed<S>(dy[int64_t{starts[b]} * width + i]);
    dtable[i] = sum;
  }
}

}  // namespace

/// One warp per padded row.
void PadPacked::cuda(const Tensor& packed, const PackedSequences& sequences, const Tensor& padded) {
  if (padded.size() == 0) return;
  with_rows(packed, sequences, padded, [&]<class Row>(const PackedCopy<Row>& call) {
    cuda::run(pad<Row>, rows_grid(padded.extent(1), padded.extent(0)), call);
  });
}

/// One warp per padded row; those of the first sequence clear the rows of none.
void PackPadded::cuda(const Tensor& padded, const PackedSequences& sequences, const Tensor& packed) {
  if (packed.size() == 0) return;
  with_rows(packed, sequences, padded, [&]<class Row>(const PackedCopy<Row>& call) {
    cuda::run(pack<Row>,
              rows_grid(std::max<int64_t>(1, padded.extent(1)), std::max<int64_t>(1, padded.extent(0))), call,
              static_cast<int>(packed.extent(1)));
  });
}

/// One block of 256 threads per sum and 32 columns.
void SumSequences::cuda(const Tensor& x, const PackedSequences& sequences, int64_t step, const Tensor& sums) {
  const int64_t width = sums.extent(1);
  visit_float("sum_sequences", x.dtype(), [&]<class T>(Type<T>) {
    cuda::run(sum_sequences<T>,
              {.blocks = dim3(static_cast<unsigned>(sums.extent(0)),
                              static_cast<unsigned>(ceil_div(width, columns))),
               .threads = dim3(columns, row_lanes),
               .shared_bytes = columns * row_lanes * static_cast<int>(sizeof(T))},
              width, sequences.starts.data<int32_t>(), step, x.data<T>(), sums.data<T>());
  });
  Count::add(x.size());
}

/// Eight blocks per row of x, and eight for the rows behind all sequences.
void RepeatOverSequences::cuda(const Tensor& x, const PackedSequences& sequences, int64_t step,
                               const Tensor& y) {
  constexpr unsigned parts = 8;
  const int64_t batch = x.extent(0);
  visit_float("sum_sequences", x.dtype(), [&]<class T>(Type<T>) {
    cuda::run(repeat<T>, {.blocks = dim3(static_cast<unsigned>(batch) + 1, parts), .threads = dim3(256)},
              batch, y.extent(1), x.extent(1), sequences.starts.data<int32_t>(), step, x.data<T>(),
              y.data<T>());
  });
}

/// One warp per row, as if rows were padded.
void AddPositions::cuda(const Tensor& x, const Tensor& table, const PackedSequences& sequences,
                        const Tensor& y) {
  if (x.size() == 0) return;
  visit_activation("add_positions", x.dtype(), [&]<class S>(Type<S>) {
    cuda::run(add_positions<S>, rows_grid(sequences.longest, sequences.count()), x.data<S>(),
              table.data<Computed<S>>(), sequences.starts.data<int32_t>(),
              static_cast<int>(sequences.count()), static_cast<int>(x.extent(2)), y.data<S>());
  });
  Count::add(x.size());
}

/// One thread per number of dtable.
void AddPositionsBack::cuda(const Tensor& dy, const PackedSequences& sequences, const Tensor& dtable) {
  if (dtable.size() == 0) return;
  visit_activation("add_positions", dy.dtype(), [&]<class S>(Type<S>) {
    cuda::run(sum_positions<S>, cuda::grid_over(dtable.size()), dy.data<S>(),
              sequences.starts.data<int32_t>(), static_cast<int>(sequences.count()), dtable.size(),
              static_cast<int>(dtable.extent(1)), dtable.data<Computed<S>>());
  });
  Count::add(dy.size());
}

}  // namespace heed::kernel

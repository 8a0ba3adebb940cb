// Filling and copying on the GPU.
#include "heed/core/kernels/elementwise/copy.h"

#include <algorithm>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/grid.h"
#include "heed/core/cuda/device/pack.h"
#include "heed/core/cuda/device/strided_offsets.h"
#include "heed/core/kernels/elementwise/convert.h"

namespace heed::kernel {
namespace {

using cuda::StridedOffsets;

/// to[i] = value for every element, by threads in steps of the grid.
template <class T>
__global__ void fill(StridedOffsets<1> elements, T* to, T value) {
  for (int64_t i = cuda::global_thread(); i < elements.size; i += cuda::grid_size())
    to[elements.at(i)[0]] = value;
}

/// to[i] = from[i], converted, for every element, by threads in steps of the grid.
template <class From, class To>
__global__ void copy(StridedOffsets<2> elements, const From* from, To* to) {
  for (int64_t i = cuda::global_thread(); i < elements.size; i += cuda::grid_size()) {
    const auto offsets = elements.at(i);
    to[offsets[1]] = converted<To>(from[offsets[0]]);
  }
}

constexpr int pack_size = 4;  ///< consecutive elements that a thread copies at once: 16 bytes of f32

/// to[i] = from[i], converted, for contiguous tensors: `packs` packs of four, then the other elements one by
/// one.
template <class From, class To>
__global__ void copy_dense(int64_t packs, int64_t size, const From* from, To* to) {
  const auto* const from_packs = reinterpret_cast<const cuda::Pack<From, pack_size>*>(from);
  for (int64_t i = cuda::global_thread(); i < packs; i += cuda::grid_size()) {
    const cuda::Pack<From, pack_size> in = from_packs[i];
    cuda::Pack<To, pack_size> out;
    for (int k = 0; k < pack_size; ++k) out.x[k] = converted<To>(in.x[k]);
    reinterpret_cast<cuda::Pack<To, pack_size>*>(to)[i] = out;
  }
  for (int64_t i = packs * pack_size + cuda::global_thread(); i < size; i += cuda::grid_size())
    to[i] = converted<To>(from[i]);
}

constexpr int tile = 32, rows_at_once = 8;  ///< a block of copy_transposed() has tile x rows_at_once threads

/// Transposes matrices [rows, columns] of `from` into [columns, rows] of `to`, one for each index of
/// `other_axes`. A block takes tiles of 32 x 32 through shared memory: lanes read along rows of `from` and
/// write along rows of `to`.
template <class From, class To>
__global__ void copy_transposed(StridedOffsets<2> other_axes, int64_t rows, int64_t row_stride,
                                int64_t columns, int64_t column_stride, const From* from, To* to) {
  __shared__ To tile_elements[tile][tile + 1];  // padded, so that a column lies in all banks
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  for (int64_t matrix = blockIdx.z; matrix < other_axes.size; matrix += gridDim.z) {
    const auto offsets = other_axes.at(matrix);
    for (int64_t row = static_cast<int64_t>(blockIdx.y) * tile; row < rows;
         row += static_cast<int64_t>(gridDim.y) * tile) {
      const int64_t column = static_cast<int64_t>(blockIdx.x) * tile;
      for (int i = y; i < tile; i += rows_at_once) {
        if (row + i < rows && column + x < columns)
          tile_elements[i][x] = converted<To>(from[offsets[0] + (row + i) * row_stride + column + x]);
      }
      __syncthreads();
      for (int i = y; i < tile; i += rows_at_once) {
        if (column + i < columns && row + x < rows)
          to[offsets[1] + (column + i) * column_stride + row + x] = tile_elements[x][i];
      }
      __syncthreads();
    }
  }
}

/// Launches the copy that suits the strides: in tiles of 32 x 32 where the two are contiguous along different
/// axes, in packs of four where both are contiguous, else element by element.
template <class From, class To>
void launch_copy(const Tensor& from, const Tensor& to, const From* source, To* target) {
  const StridedLoop<2> loop(to.shape(), {&from.strides(), &to.strides()});
  const StridedOffsets<2> elements(loop);
  constexpr int64_t min_transposed_extent = 8;  // shorter axes gain nothing from tiles
  if (const size_t axis = loop.transposed_axis(min_transposed_extent); axis > 0) {
    // The axis along which `from` is contiguous runs along the rows of a tile.
    StridedLoop<2> other_axes = loop;
    other_axes.extent[axis] = other_axes.extent[0] = 1;
    other_axes.inner = 1;
    other_axes.outer = loop.outer / loop.extent[axis];
    const auto clamped = [](int64_t n) {
      constexpr int64_t max_grid_yz = 65535;  // CUDA's limit of gridDim.y and gridDim.z
      return static_cast<unsigned>(std::min(n, max_grid_yz));
    };
    const dim3 blocks(static_cast<unsigned>(ceil_div(loop.extent[axis], tile)),
                      clamped(ceil_div(loop.inner, tile)), clamped(other_axes.outer));
    return cuda::run(copy_transposed<From, To>, {blocks, dim3(tile, rows_at_once)},
                     StridedOffsets<2>(other_axes), loop.inner, loop.steps[0], loop.extent[axis],
                     loop.stride[axis][1], source, target);
  }
  if (elements.all_contiguous()) {
    const bool is_aligned = cuda::packs<pack_size>(source) && cuda::packs<pack_size>(target);
    const int64_t packs = is_aligned ? elements.size / pack_size : 0;
    return cuda::run(copy_dense<From, To>,
                     cuda::grid_over(std::max(packs, elements.size - packs * pack_size)), packs,
                     elements.size, source, target);
  }
  cuda::run(copy<From, To>, cuda::grid_over(elements.size), elements, source, target);
}

}  // namespace

void Fill::cuda(const Tensor& x, double value) {
  visit(x.dtype(), [&]<class T>(Type<T>) {
    const StridedOffsets<1> elements = cuda::strided_offsets(x);
    cuda::run(fill<T>, cuda::grid_over(elements.size), elements, x.data<T>(), converted<T>(value));
  });
}

void Copy::cuda(const Tensor& from, const Tensor& to) {
  visit(from.dtype(), [&]<class From>(Type<From>) {
    visit(to.dtype(),
          [&]<class To>(Type<To>) { launch_copy<From, To>(from, to, from.data<From>(), to.data<To>()); });
  });
}

}  // namespace heed::kernel

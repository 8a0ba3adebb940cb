// Filling and copying on the GPU.
#include "heed/core/kernels/elementwise/copy.h"

#include <algorithm>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/grid.h"
#include "heed/core/cuda/device/pack.h"
#include "heed/core/cuda/device/view.h"
#include "heed/core/kernels/elementwise/convert.h"

namespace heed::kernel {
namespace {

using cuda::Places;

template <class T>
__global__ void fill(Places<1> places, T* to, T value) {
  for (int64_t i = cuda::global_thread(); i < places.size; i += cuda::grid_size())
    to[places.at(i).of[0]] = value;
}

template <class T>
__global__ void fill_dense(int64_t size, T* to, T value) {
  for (int64_t i = cuda::global_thread(); i < size; i += cuda::grid_size()) to[i] = value;
}

template <class From, class To>
__global__ void copy(Places<2> places, const From* from, To* to) {
  for (int64_t i = cuda::global_thread(); i < places.size; i += cuda::grid_size()) {
    const auto at = places.at(i);
    to[at.of[1]] = converted<To>(from[at.of[0]]);
  }
}

constexpr int together = 4;  // neighbours that a thread takes at once: one load of 16 bytes for f32

/// `packs` of neighbours, then what is left of `size` one by one.
template <class From, class To>
__global__ void copy_dense(int64_t packs, int64_t size, const From* from, To* to) {
  const auto* const some = reinterpret_cast<const cuda::Pack<From, together>*>(from);
  for (int64_t i = cuda::global_thread(); i < packs; i += cuda::grid_size()) {
    const cuda::Pack<From, together> in = some[i];
    cuda::Pack<To, together> out;
    for (int k = 0; k < together; ++k) out.x[k] = converted<To>(in.x[k]);
    reinterpret_cast<cuda::Pack<To, together>*>(to)[i] = out;
  }
  for (int64_t i = packs * together + cuda::global_thread(); i < size; i += cuda::grid_size())
    to[i] = converted<To>(from[i]);
}

constexpr int tile = 32, rows_at_once = 8;

/// One square of a transposition in each block: lanes read along rows of `from` and write along rows of `to`.
/// The axes crossed are taken out of `others`.
template <class From, class To>
__global__ void copy_crossed(Places<2> others, int64_t rows, int64_t row_stride, int64_t columns,
                             int64_t column_stride, const From* from, To* to) {
  __shared__ To square[tile][tile + 1];  // one more, so that a column lies in all banks
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  for (int64_t other = blockIdx.z; other < others.size; other += gridDim.z) {
    const auto at = others.at(other);
    for (int64_t row = static_cast<int64_t>(blockIdx.y) * tile; row < rows;
         row += static_cast<int64_t>(gridDim.y) * tile) {
      const int64_t column = static_cast<int64_t>(blockIdx.x) * tile;
      for (int i = y; i < tile; i += rows_at_once) {
        if (row + i < rows && column + x < columns)
          square[i][x] = converted<To>(from[at.of[0] + (row + i) * row_stride + column + x]);
      }
      __syncthreads();
      for (int i = y; i < tile; i += rows_at_once) {
        if (column + i < columns && row + x < rows)
          to[at.of[1] + (column + i) * column_stride + row + x] = square[x][i];
      }
      __syncthreads();
    }
  }
}

/// The axis along which `from` is dense while the innermost one is not; 0 when there is none.
size_t crossed_axis(const StridedLoop<2>& walk) {
  if (walk.steps[0] == 1 || walk.steps[1] != 1 || walk.inner < 8) return 0;
  for (size_t axis = 1; axis < walk.axes; ++axis) {
    if (walk.stride[axis][0] == 1 && walk.extent[axis] >= 8) return axis;
  }
  return 0;
}

/// Starts the copy that suits the strides: in squares of 32 x 32 where the two are dense along different
/// axes, in packs of four where both are dense throughout, else element by element.
template <class From, class To>
void start_copy(const Tensor& from, const Tensor& to, const From* source, To* target) {
  const StridedLoop<2> walk(to.shape(), {&from.strides(), &to.strides()});
  const Places<2> places(walk);
  if (const size_t axis = crossed_axis(walk); axis > 0) {
    // Rows are those of `from`: its dense axis runs along them.
    StridedLoop<2> others = walk;
    others.extent[axis] = others.extent[0] = 1;
    others.inner = 1;
    others.outer = walk.outer / walk.extent[axis];
    const auto most = [](int64_t n, int64_t limit) { return static_cast<unsigned>(std::min(n, limit)); };
    const dim3 blocks(static_cast<unsigned>(ceil_div(walk.extent[axis], tile)),
                      most(ceil_div(walk.inner, tile), 65535), most(others.outer, 65535));
    return cuda::run(copy_crossed<From, To>, {blocks, dim3(tile, rows_at_once)}, Places<2>(others),
                     walk.inner, walk.steps[0], walk.extent[axis], walk.stride[axis][1], source, target);
  }
  if (places.dense()) {
    const bool packed = cuda::packs<together>(source) && cuda::packs<together>(target);
    const int64_t packs = packed ? places.size / together : 0;
    return cuda::run(copy_dense<From, To>, cuda::line(std::max(packs, places.size - packs * together)), packs,
                     places.size, source, target);
  }
  cuda::run(copy<From, To>, cuda::line(places.size), places, source, target);
}

}  // namespace

void Fill::cuda(const Tensor& x, double value) {
  visit(x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const Places<1> places = cuda::places(x);
    const T number = converted<T>(value);
    if (places.dense())
      return cuda::run(fill_dense<T>, cuda::line(places.size), places.size, x.data<T>(), number);
    cuda::run(fill<T>, cuda::line(places.size), places, x.data<T>(), number);
  });
}

void Copy::cuda(const Tensor& from, const Tensor& to) {
  visit(from.dtype(), [&](auto from_type) {
    using From = typename decltype(from_type)::type;
    visit(to.dtype(), [&](auto to_type) {
      using To = typename decltype(to_type)::type;
      start_copy<From, To>(from, to, from.data<From>(), to.data<To>());
    });
  });
}

}  // namespace heed::kernel

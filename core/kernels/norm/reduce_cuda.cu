// Reductions on the GPU. Sums are carried in double, over pieces that depend on the shape alone.
#include "heed/core/kernels/norm/reduce.h"

#include <algorithm>

#include "heed/core/bits.h"
#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/block.h"
#include "heed/core/cuda/device/strided_offsets.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/kernels/norm/reduce_axes.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

using cuda::lanes;
using cuda::StridedOffsets;

constexpr int block_warps = 8;  ///< warps of a block that sums

/// ReductionAxes as an argument of kernels.
struct Reduction {
  explicit Reduction(const ReductionAxes& axes) : kept(axes.kept), reduced(axes.reduced) {}
  StridedOffsets<2> kept;     // kept axes of x and y
  StridedOffsets<1> reduced;  // reduced axes of x
};

/// Number of pieces that each sum of `reduced` numbers is cut into: enough to fill a device with
/// blocks_per_piece blocks each, and none shorter than min_length.
int64_t num_pieces(int64_t reduced, int64_t blocks_per_piece, int64_t min_length) {
  return std::clamp<int64_t>(1024 / std::max<int64_t>(1, blocks_per_piece), 1, ceil_div(reduced, min_length));
}

/// sums [kept, pieces] where adjacent elements in memory belong to one sum: one warp per piece of a sum, or
/// one block with `whole_block`. With `into_y` there is one piece, and the sums are elements of y.
template <class T, class Out>
__global__ void sum_adjacent(Reduction reduction, int64_t pieces, bool whole_block, const T* x, Out* sums,
                             bool into_y) {
  const int team = whole_block ? block_warps * lanes : lanes;
  const int64_t teams = static_cast<int64_t>(gridDim.x) * (whole_block ? 1 : block_warps);
  const int thread = static_cast<int>(threadIdx.x) % team;
  __shared__ double scratch[lanes];
  const int64_t piece_length = ceil_div(reduction.reduced.size, pieces);
  const int64_t num_sums = reduction.kept.size * pieces;
  // All warps of a block loop equally often, since block_sum() synchronizes them.
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * (whole_block ? 1 : block_warps); first < num_sums;
       first += teams) {
    const int64_t i = first + static_cast<int>(threadIdx.x) / team;
    double total = 0;
    if (i < num_sums) {
      const T* first_element = x + reduction.kept.at(i / pieces)[0];
      const int64_t begin = i % pieces * piece_length,
                    end = min(begin + piece_length, reduction.reduced.size);
      for (int64_t j = begin + thread; j < end; j += team)
        total += static_cast<double>(first_element[reduction.reduced.at(j)[0]]);
    }
    total = whole_block ? cuda::block_sum(total, scratch) : cuda::warp_sum(total);
    if (i < num_sums && thread == 0) sums[into_y ? reduction.kept.at(i)[1] : i] = static_cast<Out>(total);
  }
}

/// sums [pieces, kept] where adjacent elements in memory belong to adjacent sums: the lanes of a block handle
/// 32 columns (sums), its warps every eighth row of a piece. With `into_y` there is one piece, and the sums
/// are elements of y.
template <class T, class Out>
__global__ void sum_columns(Reduction reduction, int64_t pieces, const T* x, Out* sums, bool into_y) {
  __shared__ double warp_sums[block_warps][lanes];
  const int lane = static_cast<int>(threadIdx.x), warp = static_cast<int>(threadIdx.y);
  const int64_t column = static_cast<int64_t>(blockIdx.x) * lanes + lane;
  const int64_t piece_length = ceil_div(reduction.reduced.size, pieces);
  for (int64_t piece = blockIdx.y; piece < pieces; piece += gridDim.y) {
    double total = 0;
    if (column < reduction.kept.size) {
      const T* first_element = x + reduction.kept.at(column)[0];
      const int64_t end = min((piece + 1) * piece_length, reduction.reduced.size);
      for (int64_t row = piece * piece_length + warp; row < end; row += block_warps)
        total += static_cast<double>(first_element[reduction.reduced.at(row)[0]]);
    }
    warp_sums[warp][lane] = total;
    __syncthreads();
    if (warp == 0 && column < reduction.kept.size) {
      for (int other = 1; other < block_warps; ++other) total += warp_sums[other][lane];
      sums[into_y ? reduction.kept.at(column)[1] : piece * reduction.kept.size + column] =
          static_cast<Out>(total);
    }
    __syncthreads();
  }
}

constexpr int max_adders = 1024;  ///< threads of a block that adds pieces

/// y[i] = sum over p of sums[i sum_stride + p piece_stride]. A block handles `sums_of_block` adjacent sums;
/// the threads of one sum, a power of two, first add their pieces and are then added in a tree.
template <class T>
__global__ void __launch_bounds__(max_adders)
    add_pieces(StridedOffsets<2> kept, int sums_of_block, int64_t pieces, int64_t piece_stride,
               int64_t sum_stride, const double* sums, T* y) {
  __shared__ double partial[max_adders];
  const int thread = static_cast<int>(threadIdx.x), adders = static_cast<int>(blockDim.x) / sums_of_block;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * sums_of_block + thread % sums_of_block;
  double total = 0;
  if (i < kept.size) {
    for (int64_t piece = thread / sums_of_block; piece < pieces; piece += adders)
      total += sums[i * sum_stride + piece * piece_stride];
  }
  partial[thread] = total;
  for (int half = adders / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half * sums_of_block) partial[thread] += partial[thread + half * sums_of_block];
  }
  if (thread < sums_of_block && i < kept.size) y[kept.at(i)[1]] = static_cast<T>(partial[thread]);
}

/// y = sum of x over axes.reduced: each sum is cut into pieces, which sum_adjacent() or sum_columns()
/// compute; where there are several, add_pieces() adds them in order.
template <class T, class Out>
void sum(const ReductionAxes& axes, const T* x, Out* y) {
  const Reduction reduction(axes);
  const int64_t kept = reduction.kept.size, reduced = reduction.reduced.size;
  const bool adjacent = axes.reduces_adjacent();
  const int64_t column_blocks = ceil_div(kept, lanes);
  const int64_t pieces =
      adjacent ? num_pieces(reduced, kept, 8192) : num_pieces(reduced, column_blocks, 16 * block_warps);
  const auto start = [&]<class To>(To* sums) {
    const bool into_y = pieces == 1;
    if (!adjacent) {
      const cuda::Grid grid = {dim3(static_cast<unsigned>(column_blocks), static_cast<unsigned>(pieces)),
                               dim3(lanes, block_warps)};
      return cuda::run(sum_columns<T, To>, grid, reduction, pieces, x, sums, into_y);
    }
    const bool whole_block = reduced / pieces >= 1024;
    const dim3 blocks = cuda::grid_over(kept * pieces, whole_block ? 1 : block_warps, 65536).blocks;
    cuda::run(sum_adjacent<T, To>, {blocks, dim3(block_warps * lanes)}, reduction, pieces, whole_block, x,
              sums, into_y);
  };
  if (pieces == 1) return start(y);
  const Tensor sums(Shape{kept * pieces}, DType::f64, Device::cuda);
  start(sums.data<double>());
  constexpr int64_t pieces_per_thread = 4;
  const int sums_of_block = adjacent ? 1 : lanes;
  const auto wanted =
      static_cast<int>(power_of_two(static_cast<uint64_t>(ceil_div(pieces, pieces_per_thread))));
  const int adders = std::min(wanted, max_adders / sums_of_block);
  const cuda::Grid grid = {dim3(static_cast<unsigned>(ceil_div(kept, sums_of_block))),
                           dim3(static_cast<unsigned>(sums_of_block * adders))};
  cuda::run(add_pieces<Out>, grid, reduction.kept, sums_of_block, pieces, adjacent ? 1 : kept,
            adjacent ? pieces : 1, sums.data<double>(), y);
}

template <class T>
struct MaxAndIndex {
  T value;
  int64_t index;  ///< -1: of no element
};

/// The larger of two candidates, of equal ones that with the smaller index; a NaN counts as larger than every
/// number.
template <class T>
HEED_BOTH MaxAndIndex<T> larger(const MaxAndIndex<T>& a, const MaxAndIndex<T>& b) {
  if (a.index < 0 || b.index < 0) return a.index < 0 ? b : a;
  const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
  if (a_is_nan != b_is_nan) return a_is_nan ? a : b;
  if (a_is_nan || a.value == b.value) return a.index < b.index ? a : b;
  return a.value > b.value ? a : b;
}

/// The candidate of the lane whose number differs in the bit `distance`.
template <class T>
__device__ MaxAndIndex<T> shuffled(const MaxAndIndex<T>& best, int distance) {
  return {__shfl_xor_sync(cuda::all_lanes, best.value, distance),
          __shfl_xor_sync(cuda::all_lanes, best.index, distance)};
}

/// y = largest x of each result and `index` = its index among the reduced elements: one warp per result with
/// `by_warp`, else one thread.
template <class T>
__global__ void largest(Reduction reduction, StridedOffsets<2> index_offsets, bool by_warp, const T* x, T* y,
                        int64_t* index) {
  const int team = by_warp ? lanes : 1;
  const int thread = static_cast<int>(threadIdx.x) % team;
  for (int64_t i = cuda::global_thread() / team; i < reduction.kept.size; i += cuda::grid_size() / team) {
    const auto offsets = reduction.kept.at(i);
    const int64_t x_offset = offsets[0], y_offset = offsets[1];
    MaxAndIndex<T> best{.value = T(0), .index = -1};
    for (int64_t j = thread; j < reduction.reduced.size; j += team)
      best = larger<T>(best, {.value = x[x_offset + reduction.reduced.at(j)[0]], .index = j});
    for (int distance = team / 2; distance > 0; distance /= 2)
      best = larger<T>(best, shuffled(best, distance));
    if (thread == 0) {
      y[y_offset] = best.value;
      index[index_offsets.at(i)[1]] = best.index;
    }
  }
}

/// dx = dy at the reduced element `index` of each result, by one thread per result.
template <class T>
__global__ void scatter_to_max(Reduction reduction, StridedOffsets<2> index_offsets, const int64_t* index,
                               const T* dy, T* dx) {
  for (int64_t i = cuda::global_thread(); i < reduction.kept.size; i += cuda::grid_size()) {
    const auto offsets = reduction.kept.at(i);
    const int64_t x_offset = offsets[0], y_offset = offsets[1];
    const int64_t max_index = index[index_offsets.at(i)[1]];
    dx[x_offset + reduction.reduced.at(max_index)[0]] = dy[y_offset];
  }
}

/// The axis of a cumulative sum.
struct SumAxis {
  int64_t length, x_stride, y_stride;
  bool reverse;
  HEED_BOTH int64_t index(int64_t i) const { return reverse ? length - 1 - i : i; }
};

/// y_t = x_0 + ... + x_t along each row, by one thread per row: for rows that are adjacent in memory.
template <class T>
__global__ void cumulative_sum_by_thread(StridedOffsets<2> rows, SumAxis axis, const T* x, T* y) {
  for (int64_t row = cuda::global_thread(); row < rows.size; row += cuda::grid_size()) {
    const auto offsets = rows.at(row);
    const int64_t x_offset = offsets[0], y_offset = offsets[1];
    double running_sum = 0;
    for (int64_t i = 0; i < axis.length; ++i) {
      const int64_t t = axis.index(i);
      running_sum += static_cast<double>(x[x_offset + t * axis.x_stride]);
      y[y_offset + t * axis.y_stride] = static_cast<T>(running_sum);
    }
  }
}

/// y_t = x_0 + ... + x_t along each row, by one warp per row: prefix sums of 32 elements at a time.
template <class T>
__global__ void cumulative_sum_by_warp(StridedOffsets<2> rows, SumAxis axis, const T* x, T* y) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  for (int64_t row = cuda::global_thread() / lanes; row < rows.size; row += cuda::grid_size() / lanes) {
    const auto offsets = rows.at(row);
    const int64_t x_offset = offsets[0], y_offset = offsets[1];
    double running_sum = 0;
    for (int64_t first = 0; first < axis.length; first += lanes) {
      const int64_t i = first + lane, t = axis.index(i);
      double sum = i < axis.length ? static_cast<double>(x[x_offset + t * axis.x_stride]) : 0.0;
      for (int distance = 1; distance < lanes; distance *= 2) {
        const double before = __shfl_up_sync(cuda::all_lanes, sum, static_cast<unsigned>(distance));
        if (lane >= distance) sum += before;
      }
      sum += running_sum;
      if (i < axis.length) y[y_offset + t * axis.y_stride] = static_cast<T>(sum);
      running_sum = __shfl_sync(cuda::all_lanes, sum, lanes - 1);
    }
  }
}

/// sums[block] = sum of squares of elements_per_block elements, by one block.
template <class T>
__global__ void square_sum(int64_t size, int64_t elements_per_block, const T* x, double* sums) {
  __shared__ double scratch[lanes];
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * elements_per_block,
                end = min(begin + elements_per_block, size);
  double total = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x)
    total += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  total = cuda::block_sum(total, scratch);
  if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

/// total = sum of `count` sums, or NaN where one of the numbers `checked` is not finite; by one block.
template <class T>
__global__ void add_block_sums(int64_t count, const double* sums, int64_t num_checked, const T* checked,
                               double* total) {
  __shared__ double scratch[lanes];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += sums[i];
  for (int64_t i = threadIdx.x; i < num_checked; i += blockDim.x) sum += 0 * static_cast<double>(checked[i]);
  sum = cuda::block_sum(sum, scratch);
  if (threadIdx.x == 0) *total = sum;
}

}  // namespace

/// y = sum of x over the axes where y has extent 1.
void Sum::cuda(const Tensor& x, const Tensor& y) {
  if (x.size() == 0) return Fill::cuda(y, 0);
  const ReductionAxes axes = split_axes(x, y);
  if (x.dtype() == DType::bf16) {
    sum(axes, x.data<bf16>(), y.data<float>());
  } else {
    visit_float("sum", x.dtype(), [&]<class T>(Type<T>) { sum(axes, x.data<T>(), y.data<T>()); });
  }
  Count::add(x.size());
}

/// y = largest x over the reduced axes and `index` = the first index of it among them: one warp per result of
/// more than four elements that are adjacent in memory, else one thread.
void Max::cuda(const Tensor& x, const Tensor& y, const Tensor& index) {
  if (x.size() == 0 && y.size() > 0)
    fail("max: ", x.shape(), " has an axis without elements, so there is no largest one.");
  if (x.size() == 0) return;
  const ReductionAxes axes = split_axes(x, y);
  const StridedOffsets<2> index_offsets(split_axes(x, index).kept);
  visit_float("max", x.dtype(), [&]<class T>(Type<T>) {
    const bool by_warp = axes.reduces_adjacent() && axes.reduced_size() > 4;
    cuda::run(largest<T>, cuda::grid_over(axes.kept_size() * (by_warp ? lanes : 1)), Reduction(axes),
              index_offsets, by_warp, x.data<T>(), y.data<T>(), index.data<int64_t>());
  });
  Count::add(x.size());
}

/// dx = dy at the reduced element `index` of each result, 0 elsewhere.
void MaxBack::cuda(const Tensor& index, const Tensor& dy, const Tensor& dx) {
  Fill::cuda(dx, 0);
  if (dx.size() == 0) return;
  const ReductionAxes axes = split_axes(dx, dy);
  const StridedOffsets<2> index_offsets(split_axes(dx, index).kept);
  visit_float("max", dx.dtype(), [&]<class T>(Type<T>) {
    cuda::run(scatter_to_max<T>, cuda::grid_over(axes.kept_size()), Reduction(axes), index_offsets,
              index.data<int64_t>(), dy.data<T>(), dx.data<T>());
  });
  Count::add(dx.size());
}

/// y_t = x_0 + ... + x_t along `axis`, or from the end with `reverse`: one thread per row where rows are
/// adjacent in memory or many, else one warp per row.
void CumulativeSum::cuda(const Tensor& x, int64_t axis, bool reverse, const Tensor& y) {
  if (x.size() == 0) return;
  axis = x.shape().checked(axis);
  Shape others = x.shape();
  others[axis] = 1;
  const StridedLoop<2> loop(others, {&x.strides(), &y.strides()});
  const StridedOffsets<2> rows(loop);
  const SumAxis sum_axis{.length = x.extent(axis),
                         .x_stride = x.strides()[axis],
                         .y_stride = y.strides()[axis],
                         .reverse = reverse};
  visit_float("cumulative_sum", x.dtype(), [&]<class T>(Type<T>) {
    const bool by_thread = sum_axis.x_stride != 1 && (loop.steps[0] == 1 || rows.size >= 4096);
    if (by_thread)
      return cuda::run(cumulative_sum_by_thread<T>, cuda::grid_over(rows.size, 128), rows, sum_axis,
                       x.data<T>(), y.data<T>());
    cuda::run(cumulative_sum_by_warp<T>, cuda::grid_over(rows.size * lanes), rows, sum_axis, x.data<T>(),
              y.data<T>());
  });
  Count::add(x.size());
}

/// total = sum of x^2: one block per run of at least 8192 elements, then one block adds their sums.
void SquareSum::cuda(const Tensor& x, const Tensor& checked, const Tensor& total) {
  visit_float("square_sum", x.dtype(), [&]<class T>(Type<T>) {
    const int64_t size = x.size(), blocks = std::clamp<int64_t>(ceil_div(size, 8192), 1, 1024);
    const Tensor sums(Shape{blocks}, DType::f64, Device::cuda);
    cuda::run(square_sum<T>, {dim3(static_cast<unsigned>(blocks)), dim3(256)}, size, ceil_div(size, blocks),
              x.data<T>(), sums.data<double>());
    cuda::run(add_block_sums<T>, {dim3(1), dim3(256)}, blocks, sums.data<double>(),
              checked ? checked.size() : 0, checked ? checked.data<T>() : nullptr, total.data<double>());
  });
  Count::add(x.size());
}

}  // namespace heed::kernel

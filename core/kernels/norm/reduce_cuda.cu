// Reductions on the GPU. Sums are carried in double, over pieces that depend on the shape alone.
#include "heed/core/kernels/norm/reduce.h"

#include <algorithm>

#include "heed/core/bits.h"
#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/block.h"
#include "heed/core/cuda/device/view.h"
#include "heed/core/cuda/device/visit.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/kernels/norm/reduce_parts.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

using cuda::lanes;
using cuda::Places;

constexpr int warps = 8;  // of a block

/// What is reduced, for the kernels.
struct Reduction {
  explicit Reduction(const ReductionAxes& parts) : kept(parts.kept), reduced(parts.reduced) {}
  Places<2> kept;     // of x and y
  Places<1> reduced;  // of x
};

/// How many pieces each sum is cut into: enough to fill a device with `blocks` a piece, none of them short.
int64_t num_pieces(int64_t reduced, int64_t blocks, int64_t shortest) {
  return std::clamp<int64_t>(1024 / std::max<int64_t>(1, blocks), 1, ceil_div(reduced, shortest));
}

/// sums [kept, pieces] where neighbours in memory belong to one sum: one warp per piece of a sum, or one
/// block with `whole_block`. With `placed` there is one piece, which goes to its place in y.
template <class T, class Out>
__global__ void sum_along(Reduction over, int64_t pieces, bool whole_block, const T* x, Out* sums,
                          bool placed) {
  const int team = whole_block ? warps * lanes : lanes;
  const int64_t teams = static_cast<int64_t>(gridDim.x) * (whole_block ? 1 : warps);
  const int member = static_cast<int>(threadIdx.x) % team;
  __shared__ double scratch[lanes];
  const int64_t each = ceil_div(over.reduced.size, pieces);
  const int64_t all = over.kept.size * pieces;
  // All warps of a block go round equally often: they meet in block_sum.
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * (whole_block ? 1 : warps); first < all;
       first += teams) {
    const int64_t i = first + static_cast<int>(threadIdx.x) / team;
    double total = 0;
    if (i < all) {
      const T* from = x + over.kept.at(i / pieces).of[0];
      const int64_t begin = i % pieces * each, end = min(begin + each, over.reduced.size);
      for (int64_t j = begin + member; j < end; j += team)
        total += static_cast<double>(from[over.reduced.at(j).of[0]]);
    }
    total = whole_block ? cuda::block_sum(total, scratch) : cuda::warp_sum(total);
    if (i < all && member == 0) sums[placed ? over.kept.at(i).of[1] : i] = static_cast<Out>(total);
  }
}

/// Neighbours in memory belong to neighbouring sums: lanes along them, warps down the rows. sums [pieces,
/// kept].
template <class T, class Out>
__global__ void sum_across(Reduction over, int64_t pieces, const T* x, Out* sums, bool placed) {
  __shared__ double part[warps][lanes];
  const int lane = static_cast<int>(threadIdx.x), warp = static_cast<int>(threadIdx.y);
  const int64_t column = static_cast<int64_t>(blockIdx.x) * lanes + lane;
  const int64_t each = ceil_div(over.reduced.size, pieces);
  for (int64_t piece = blockIdx.y; piece < pieces; piece += gridDim.y) {
    double total = 0;
    if (column < over.kept.size) {
      const T* from = x + over.kept.at(column).of[0];
      const int64_t end = min((piece + 1) * each, over.reduced.size);
      for (int64_t row = piece * each + warp; row < end; row += warps)
        total += static_cast<double>(from[over.reduced.at(row).of[0]]);
    }
    part[warp][lane] = total;
    __syncthreads();
    if (warp == 0 && column < over.kept.size) {
      for (int other = 1; other < warps; ++other) total += part[other][lane];
      sums[placed ? over.kept.at(column).of[1] : piece * over.kept.size + column] = static_cast<Out>(total);
    }
    __syncthreads();
  }
}

constexpr int max_adders = 1024;  // threads of a block that adds pieces

/// The pieces of each sum: `sums_of_block` sums beside each other, each by as many threads, a power of two.
/// `step` between pieces, `next` between sums.
template <class T>
__global__ void __launch_bounds__(max_adders)
    add_pieces(Places<2> kept, int sums_of_block, int64_t pieces, int64_t step, int64_t next,
               const double* sums, T* y) {
  __shared__ double part[max_adders];
  const int me = static_cast<int>(threadIdx.x), adders = static_cast<int>(blockDim.x) / sums_of_block;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * sums_of_block + me % sums_of_block;
  double total = 0;
  if (i < kept.size) {
    for (int64_t piece = me / sums_of_block; piece < pieces; piece += adders)
      total += sums[i * next + piece * step];
  }
  part[me] = total;
  for (int half = adders / 2; half > 0; half /= 2) {
    __syncthreads();
    if (me < half * sums_of_block) part[me] += part[me + half * sums_of_block];
  }
  if (me < sums_of_block && i < kept.size) y[kept.at(i).of[1]] = static_cast<T>(part[me]);
}

/// y = sum of x over parts.reduced: each sum is cut into pieces, which sum_along() or sum_across() compute;
/// where there are several, add_pieces() adds them in order.
template <class T, class Out>
void sum(const ReductionAxes& parts, const T* x, Out* y) {
  const Reduction over(parts);
  const int64_t kept = over.kept.size, reduced = over.reduced.size;
  // A thread adds a few pieces. The neighbours of a warp are pieces of one sum, or sums.
  const auto finish = [&](int64_t pieces, int64_t step, int64_t next, const Tensor& sums) {
    constexpr int64_t few = 4;
    const int sums_of_block = step == 1 ? 1 : lanes;
    const auto wanted = static_cast<int>(power_of_two(static_cast<uint64_t>(ceil_div(pieces, few))));
    const int adders = std::min(wanted, max_adders / sums_of_block);
    const cuda::Grid grid = {dim3(static_cast<unsigned>(ceil_div(kept, sums_of_block))),
                             dim3(static_cast<unsigned>(sums_of_block * adders))};
    cuda::run(add_pieces<Out>, grid, over.kept, sums_of_block, pieces, step, next, sums.data<double>(), y);
  };
  if (parts.along()) {
    const int64_t pieces = num_pieces(reduced, kept, 8192);
    const bool whole_block = reduced / pieces >= 1024;
    const cuda::Grid grid = cuda::line(kept * pieces, whole_block ? 1 : warps, 65536);
    const cuda::Grid shape = {grid.blocks, dim3(warps * lanes)};
    if (pieces == 1) return cuda::run(sum_along<T, Out>, shape, over, pieces, whole_block, x, y, true);
    const Tensor sums(Shape{kept, pieces}, DType::f64, Device::cuda);
    cuda::run(sum_along<T, double>, shape, over, pieces, whole_block, x, sums.data<double>(), false);
    return finish(pieces, 1, pieces, sums);
  }
  const int64_t blocks = ceil_div(kept, lanes);
  const int64_t pieces = num_pieces(reduced, blocks, 16 * warps);
  const cuda::Grid shape = {dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(pieces)),
                            dim3(lanes, warps)};
  if (pieces == 1) return cuda::run(sum_across<T, Out>, shape, over, pieces, x, y, true);
  const Tensor sums(Shape{pieces, kept}, DType::f64, Device::cuda);
  cuda::run(sum_across<T, double>, shape, over, pieces, x, sums.data<double>(), false);
  finish(pieces, kept, 1, sums);
}

template <class T>
struct Best {
  T value;
  int64_t index;  // -1: nothing seen yet
};

/// The first largest; a NaN counts as larger than all.
template <class T>
struct Better {
  HEED_BOTH Best<T> operator()(const Best<T>& a, const Best<T>& b) const {
    if (a.index < 0 || b.index < 0) return a.index < 0 ? b : a;
    const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
    if (a_is_nan || b_is_nan) {
      if (a_is_nan && b_is_nan) return a.index < b.index ? a : b;
      return a_is_nan ? a : b;
    }
    if (a.value == b.value) return a.index < b.index ? a : b;
    return a.value > b.value ? a : b;
  }
};

template <class T>
__device__ Best<T> shuffled(const Best<T>& best, int distance) {
  return {__shfl_xor_sync(cuda::all_lanes, best.value, distance),
          __shfl_xor_sync(cuda::all_lanes, best.index, distance)};
}

/// y = largest x of each result and `index` = its place: one warp per result, or one thread where neighbours
/// belong to neighbouring results.
template <class T>
__global__ void largest(Reduction over, Places<2> places, bool by_warp, const T* x, T* y, int64_t* index) {
  const Better<T> better;
  const int team = by_warp ? lanes : 1;
  const int member = static_cast<int>(threadIdx.x) % team;
  for (int64_t i = cuda::global_thread() / team; i < over.kept.size; i += cuda::grid_size() / team) {
    const auto at = over.kept.at(i);
    Best<T> best{T(0), -1};
    for (int64_t j = member; j < over.reduced.size; j += team)
      best = better(best, {x[at.of[0] + over.reduced.at(j).of[0]], j});
    for (int distance = team / 2; distance > 0; distance /= 2) best = better(best, shuffled(best, distance));
    if (member == 0) {
      y[at.of[1]] = best.value;
      index[places.at(i).of[1]] = best.index;
    }
  }
}

template <class T>
__global__ void put_largest(Reduction over, Places<2> places, const int64_t* index, const T* dy, T* dx) {
  for (int64_t i = cuda::global_thread(); i < over.kept.size; i += cuda::grid_size()) {
    const auto at = over.kept.at(i);
    dx[at.of[0] + over.reduced.at(index[places.at(i).of[1]]).of[0]] = dy[at.of[1]];
  }
}

/// How x and y lie along the axis that is summed up.
struct Along {
  int64_t length, from, to;
  bool reverse;
  HEED_BOTH int64_t place(int64_t i) const { return reverse ? length - 1 - i : i; }
};

/// y_t = sum of x up to t along each row, by one thread per row, for rows that lie beside each other.
template <class T>
__global__ void sum_up(Places<2> rows, Along along, const T* x, T* y) {
  for (int64_t row = cuda::global_thread(); row < rows.size; row += cuda::grid_size()) {
    const auto at = rows.at(row);
    double running_sum = 0;
    for (int64_t i = 0; i < along.length; ++i) {
      const int64_t t = along.place(i);
      running_sum += static_cast<double>(x[at.of[0] + t * along.from]);
      y[at.of[1] + t * along.to] = static_cast<T>(running_sum);
    }
  }
}

/// y_t = sum of x up to t along each row, by one warp per row, 32 elements at a time.
template <class T>
__global__ void sum_up_by_warps(Places<2> rows, Along along, const T* x, T* y) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  for (int64_t row = cuda::global_thread() / lanes; row < rows.size; row += cuda::grid_size() / lanes) {
    const auto at = rows.at(row);
    double running_sum = 0;
    for (int64_t first = 0; first < along.length; first += lanes) {
      const int64_t i = first + lane, t = along.place(i);
      double sum = i < along.length ? static_cast<double>(x[at.of[0] + t * along.from]) : 0.0;
      for (int distance = 1; distance < lanes; distance *= 2) {
        const double before = __shfl_up_sync(cuda::all_lanes, sum, static_cast<unsigned>(distance));
        if (lane >= distance) sum += before;
      }
      sum += running_sum;
      if (i < along.length) y[at.of[1] + t * along.to] = static_cast<T>(sum);
      running_sum = __shfl_sync(cuda::all_lanes, sum, lanes - 1);
    }
  }
}

template <class T>
__global__ void square_sum(int64_t size, int64_t each, const T* x, double* sums) {
  __shared__ double scratch[lanes];
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * each, end = min(begin + each, size);
  double total = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x)
    total += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  total = cuda::block_sum(total, scratch);
  if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

__global__ void add_up(int64_t count, const double* sums, double* total) {
  __shared__ double scratch[lanes];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += sums[i];
  sum = cuda::block_sum(sum, scratch);
  if (threadIdx.x == 0) *total = sum;
}

}  // namespace

void Sum::cuda(const Tensor& x, const Tensor& y) {
  if (x.size() == 0) return Fill::cuda(y, 0);
  const ReductionAxes parts = split(x, y);
  cuda::visit_stored("sum", x.dtype(), [&]<class T>(Type<T>) {
    sum(parts, x.data<T>(), y.data<typename cuda::Computed<T>::type>());
  });
  Count::add(x.size());
}

/// y = largest x over the reduced axes and `index` = its first place among them: one warp per result where
/// its more than four elements are neighbours, else one thread.
void Max::cuda(const Tensor& x, const Tensor& y, const Tensor& index) {
  if (x.size() == 0 && y.size() > 0)
    fail("max: ", x.shape(), " has an axis without elements, so there is no largest one.");
  if (x.size() == 0) return;
  const ReductionAxes parts = split(x, y);
  const Places<2> places(split(x, index).kept);
  cuda::visit_real("max", x.dtype(), [&]<class T>(Type<T>) {
    const bool by_warp = parts.along() && parts.reduced_size() > 4;
    cuda::run(largest<T>, cuda::line(parts.kept_size() * (by_warp ? lanes : 1)), Reduction(parts), places,
              by_warp, x.data<T>(), y.data<T>(), index.data<int64_t>());
  });
  Count::add(x.size());
}

void MaxBack::cuda(const Tensor& index, const Tensor& dy, const Tensor& dx) {
  Fill::cuda(dx, 0);
  if (dx.size() == 0) return;
  const ReductionAxes parts = split(dx, dy);
  const Places<2> places(split(dx, index).kept);
  cuda::visit_real("max", dx.dtype(), [&]<class T>(Type<T>) {
    cuda::run(put_largest<T>, cuda::line(parts.kept_size()), Reduction(parts), places, index.data<int64_t>(),
              dy.data<T>(), dx.data<T>());
  });
  Count::add(dx.size());
}

/// y_t = x_0 + ... + x_t along `axis`, or from the end with `reverse`: one thread per row where rows lie
/// beside each other or are many, else one warp per row.
void CumulativeSum::cuda(const Tensor& x, int64_t axis, bool reverse, const Tensor& y) {
  if (x.size() == 0) return;
  axis = x.shape().checked(axis);
  Shape others = x.shape();
  others[axis] = 1;
  const StridedLoop<2> walk(others, {&x.strides(), &y.strides()});
  const Places<2> rows(walk);
  const Along along{x.extent(axis), x.strides()[axis], y.strides()[axis], reverse};
  cuda::visit_real("cumulative_sum", x.dtype(), [&]<class T>(Type<T>) {
    const bool beside = along.from != 1 && (walk.steps[0] == 1 || rows.size >= 4096);
    if (beside)
      return cuda::run(sum_up<T>, cuda::line(rows.size, 128), rows, along, x.data<T>(), y.data<T>());
    cuda::run(sum_up_by_warps<T>, cuda::line(rows.size * lanes), rows, along, x.data<T>(), y.data<T>());
  });
  Count::add(x.size());
}

void SquareSum::cuda(const Tensor& x, const Tensor& total) {
  cuda::visit_real("square_sum", x.dtype(), [&]<class T>(Type<T>) {
    const int64_t size = x.size(), blocks = std::clamp<int64_t>(ceil_div(size, 8192), 1, 1024);
    const Tensor sums(Shape{blocks}, DType::f64, Device::cuda);
    cuda::run(square_sum<T>, {dim3(static_cast<unsigned>(blocks)), dim3(256)}, size, ceil_div(size, blocks),
              x.data<T>(), sums.data<double>());
    cuda::run(add_up, {dim3(1), dim3(256)}, blocks, sums.data<double>(), total.data<double>());
  });
  Count::add(x.size());
}

}  // namespace heed::kernel

// Reductions on the CPU.
#include "heed/core/kernels/norm/reduce.h"
#include "heed/core/kernels/norm/reduce_axes.h"

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/kernels/simd/strided_loops.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// Sum of `count` numbers that are `step` apart, in double.
template <class T>
double strided_sum(const T* x, int64_t step, int64_t count) {
  if (step == 1) return lanes::long_sum(x, count);
  double total = 0;
  for (int64_t i = 0; i < count; ++i) total += static_cast<double>(x[i * step]);
  return total;
}

/// y = sums of x where adjacent elements in memory belong to one result. Long sums are cut into chunks, whose
/// sums are added in order.
template <class T>
void sum_adjacent(const ReductionAxes& axes, const T* x, T* y) {
  const StridedLoop<1>& loop = axes.reduced;
  const int64_t run = std::min(loop.inner, light_grain);
  const int64_t cuts = ceil_div(loop.inner, run);
  const int64_t runs = loop.outer * cuts;
  const int64_t runs_per_chunk = std::max<int64_t>(1, light_grain / run);
  const int64_t chunks = ceil_div(runs, runs_per_chunk);
  // The sum of one chunk of the result whose first element is *first_element.
  const auto chunk_sum = [&](const T* first_element, int64_t chunk) {
    double total = 0;
    const int64_t end = std::min(runs, (chunk + 1) * runs_per_chunk);
    for (int64_t i = chunk * runs_per_chunk; i < end; ++i) {
      const int64_t begin = i % cuts * run;
      const T* terms = first_element + loop.at(i / cuts)[0] + begin * loop.steps[0];
      total += strided_sum(terms, loop.steps[0], std::min(run, loop.inner - begin));
    }
    return total;
  };
  const int64_t sums = axes.kept_size();
  // Short sums: one task is some of them.
  if (chunks == 1) {
    parallel_rows(sums, light_grain / (run * runs), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto [x_offset, y_offset] = axes.kept_at(i);
        y[y_offset] = static_cast<T>(chunk_sum(x + x_offset, 0));
      }
    });
    return;
  }
  // Long sums: one task is one chunk of one of them.
  const Tensor partial(Shape{sums, chunks}, DType::f64);
  double* totals = partial.data<double>();
  parallel_for(sums * chunks,
               [&](int64_t i) { totals[i] = chunk_sum(x + axes.kept_at(i / chunks)[0], i % chunks); });
  for (int64_t i = 0; i < sums; ++i) {
    double total = 0;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) total += totals[i * chunks + chunk];
    y[axes.kept_at(i)[1]] = static_cast<T>(total);
  }
}

/// sums[j] = sum over rows [begin, end) of x[row, j], in T, four rows at a time where columns are adjacent.
/// Vector lanes are columns.
template <class T, class In>
void add_rows(const ReductionAxes& axes, const In* x, int64_t begin, int64_t end, int64_t columns, T* sums) {
  std::fill_n(sums, columns, T(0));
  const int64_t step = axes.kept.steps[0];
  int64_t row = begin;
  if (step == 1) {
    for (; row + 4 <= end; row += 4) {
      const In* a = x + axes.reduced_at(row);
      const In* b = x + axes.reduced_at(row + 1);
      const In* c = x + axes.reduced_at(row + 2);
      const In* d = x + axes.reduced_at(row + 3);
#pragma GCC ivdep
      for (int64_t j = 0; j < columns; ++j) sums[j] += (a[j] + b[j]) + (c[j] + d[j]);
    }
  }
  for (; row < end; ++row) {
    const In* a = x + axes.reduced_at(row);
#pragma GCC ivdep
    for (int64_t j = 0; j < columns; ++j) sums[j] += a[j * step];
  }
}

/// y = sums of x where adjacent elements in memory belong to adjacent results: x is read as rows, whose
/// columns are the results. Bands of up to 512 rows are added as vectors, then the sums of the bands in
/// order. One task is some tiles of a band and up to 1024 columns.
template <class T, class In>
void sum_columns(const ReductionAxes& axes, const In* x, T* y) {
  constexpr int64_t max_columns = 1024, max_rows = 512;
  const int64_t width = axes.kept.inner, rows = axes.reduced_size();
  const int64_t columns = std::min(width, max_columns);
  const int64_t tiles = ceil_div(width, columns);
  const int64_t bands = ceil_div(rows, max_rows);
  const int64_t groups = axes.kept.outer;
  const int64_t tiles_per_task = std::max<int64_t>(1, light_grain / (columns * std::min(rows, max_rows)));
  const Tensor partial(Shape{groups, bands, width}, dtype_of<T>);
  T* sums = partial.data<T>();
  parallel_rows(groups * bands * tiles, tiles_per_task, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t tile = i % tiles, band = i / tiles % bands, group = i / tiles / bands;
      const int64_t first = tile * columns;
      const In* from = x + axes.kept.at(group)[0] + first * axes.kept.steps[0];
      add_rows(axes, from, band * max_rows, std::min(rows, (band + 1) * max_rows),
               std::min(columns, width - first), sums + (group * bands + band) * width + first);
    }
  });
  const int64_t step = axes.kept.steps[1];
  for (int64_t group = 0; group < groups; ++group) {
    T* to = y + axes.kept.at(group)[1];
    const T* from = sums + group * bands * width;
    for (int64_t j = 0; j < width; ++j) {
      double total = 0;
      for (int64_t band = 0; band < bands; ++band) total += static_cast<double>(from[band * width + j]);
      to[j * step] = static_cast<T>(total);
    }
  }
}

template <class T>
struct MaxAndIndex {
  T value;
  int64_t index;  ///< among the reduced elements of a result
};

/// The first maximum of `best` and a run of `count` numbers, whose indices begin at `first`. A NaN counts as
/// larger than every number.
template <class T>
MaxAndIndex<T> strided_max(const T* x, int64_t step, int64_t count, MaxAndIndex<T> best, int64_t first) {
  for (int64_t i = 0; i < count; ++i) {
    const T value = x[i * step];
    if (!(value <= best.value) && best.value == best.value) best = {value, first + i};
  }
  return best;
}

/// The first maximum of contiguous numbers.
template <class T>
MaxAndIndex<T> contiguous_max(const T* x, int64_t count) {
  const T max = lanes::largest(x, count);
  int has_nan = 0;
  for (int64_t i = 0; i < count; ++i) has_nan |= x[i] != x[i] ? 1 : 0;
  if (has_nan != 0) return strided_max<T>(x, 1, count, {x[0], 0}, 0);
  return {max, std::find(x, x + count, max) - x};
}

}  // namespace

/// y = sum of x over the axes where y has extent 1, by the loop that reads x in memory order.
template <>
void Sum::cpu<target_isa>(const Tensor& x, const Tensor& y) {
  if (x.size() == 0) return Fill::cpu<target_isa>(y, 0);
  const ReductionAxes axes = split_axes(x, y);
  if (x.dtype() == DType::bf16) {
    if (!axes.reduces_adjacent()) {
      sum_columns(axes, x.data<bf16>(), y.data<float>());
      return Count::add(x.size());
    }
    const Tensor wide(x.shape());
    Copy::cpu<target_isa>(x, wide);
    return cpu<target_isa>(wide, y);
  }
  visit_float("sum", x.dtype(), [&]<class T>(Type<T>) {
    if (axes.reduces_adjacent()) {
      sum_adjacent(axes, x.data<T>(), y.data<T>());
    } else {
      sum_columns(axes, x.data<T>(), y.data<T>());
    }
  });
  Count::add(x.size());
}

/// y = largest x over the reduced axes, and `index` = the first index of it among them. One task is some
/// results.
template <>
void Max::cpu<target_isa>(const Tensor& x, const Tensor& y, const Tensor& index) {
  if (x.size() == 0 && y.size() > 0)
    fail("max: ", x.shape(), " has an axis without elements, so there is no largest one.");
  if (x.size() == 0) return;
  const ReductionAxes axes = split_axes(x, y);
  const ReductionAxes index_axes = split_axes(x, index);
  visit_float("max", x.dtype(), [&]<class T>(Type<T>) {
    const T* xs = x.data<T>();
    T* ys = y.data<T>();
    auto* indices = index.data<int64_t>();
    const StridedLoop<1>& loop = axes.reduced;
    parallel_rows(axes.kept_size(), light_grain / axes.reduced_size(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto [x_offset, y_offset] = axes.kept_at(i);
        const T* first_element = xs + x_offset;
        MaxAndIndex<T> best{.value = *first_element, .index = 0};
        if (loop.outer == 1 && loop.steps[0] == 1) {
          best = contiguous_max(first_element, loop.inner);
        } else {
          for (int64_t run = 0; run < loop.outer; ++run) {
            best = strided_max(first_element + loop.at(run)[0], loop.steps[0], loop.inner, best,
                               run * loop.inner);
          }
        }
        ys[y_offset] = best.value;
        indices[index_axes.kept_at(i)[1]] = best.index;
      }
    });
  });
  Count::add(x.size());
}

/// dx = dy at the reduced element `index` of each result, 0 elsewhere. One task is some results.
template <>
void MaxBack::cpu<target_isa>(const Tensor& index, const Tensor& dy, const Tensor& dx) {
  Fill::cpu<target_isa>(dx, 0);
  if (dx.size() == 0) return;
  const ReductionAxes axes = split_axes(dx, dy);
  const ReductionAxes index_axes = split_axes(dx, index);
  visit_float("max", dx.dtype(), [&]<class T>(Type<T>) {
    const T* dys = dy.data<T>();
    T* dxs = dx.data<T>();
    const auto* indices = index.data<int64_t>();
    parallel_rows(axes.kept_size(), light_grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto [x_offset, y_offset] = axes.kept_at(i);
        const int64_t max_index = indices[index_axes.kept_at(i)[1]];
        dxs[x_offset + axes.reduced_at(max_index)] = dys[y_offset];
      }
    });
  });
  Count::add(dx.size());
}

/// y_t = x_0 + ... + x_t along `axis`, or from the end with `reverse`, summed in double. In parallel over the
/// other axes; vector lanes are up to 256 adjacent sums.
template <>
void CumulativeSum::cpu<target_isa>(const Tensor& x, int64_t axis, bool reverse, const Tensor& y) {
  if (x.size() == 0) return;
  axis = x.shape().checked(axis);
  Shape others = x.shape();
  others[axis] = 1;
  const StridedLoop<2> loop(others, {&x.strides(), &y.strides()});
  const int64_t length = x.extent(axis);
  visit_float("cumulative_sum", x.dtype(), [&]<class T>(Type<T>) {
    const T* xs = x.data<T>();
    T* ys = y.data<T>();
    const int64_t x_stride = x.strides()[axis], y_stride = y.strides()[axis];
    const auto [x_step, y_step] = loop.steps;  // from one sum to the next
    // Computes `count` sums that begin at `offsets` in x and y.
    const auto scan = [&, x_step = x_step, y_step = y_step](const auto& offsets, int64_t count) {
      constexpr int64_t max_columns = 256;
      double running_sum[max_columns];
      for (int64_t first = 0; first < count; first += max_columns) {
        const int64_t columns = std::min(max_columns, count - first);
        std::fill_n(running_sum, columns, 0.0);
        for (int64_t i = 0; i < length; ++i) {
          const int64_t t = reverse ? length - 1 - i : i;
          const T* in = xs + offsets[0] + first * x_step + t * x_stride;
          T* out = ys + offsets[1] + first * y_step + t * y_stride;
          if (x_step == 1 && y_step == 1) {
#pragma GCC ivdep
            for (int64_t j = 0; j < columns; ++j)
              out[j] = static_cast<T>(running_sum[j] += static_cast<double>(in[j]));
          } else {
            for (int64_t j = 0; j < columns; ++j)
              out[j * y_step] = static_cast<T>(running_sum[j] += static_cast<double>(in[j * x_step]));
          }
        }
      }
    };
    for_runs(loop, scan, std::max<int64_t>(16, light_grain / length));
  });
  Count::add(x.size());
}

/// total = sum of x^2, in double. One task is a run of elements; its sums are added in order.
template <>
void SquareSum::cpu<target_isa>(const Tensor& x, const Tensor& checked, const Tensor& total) {
  visit_float("square_sum", x.dtype(), [&]<class T>(Type<T>) {
    const T* xs = x.data<T>();
    constexpr int64_t grain = 4 * light_grain;
    const int64_t tasks = ceil_div(x.size(), grain);
    const Tensor partial(Shape{tasks}, DType::f64);
    auto* sums = partial.data<double>();
    parallel_rows(x.size(), grain, [&](int64_t begin, int64_t end) {
      constexpr int64_t width = 32;
      double squares[width] = {};
      int64_t i = begin;
      for (; i + width <= end; i += width) {
        for (int64_t j = 0; j < width; ++j)
          squares[j] += static_cast<double>(xs[i + j]) * static_cast<double>(xs[i + j]);
      }
      double sum = lanes::sum(squares, width);
      for (; i < end; ++i) sum += static_cast<double>(xs[i]) * static_cast<double>(xs[i]);
      sums[begin / grain] = sum;
    });
    double sum = lanes::long_sum(sums, tasks);
    for (int64_t i = 0; checked && i < checked.size(); ++i)
      sum += 0 * static_cast<double>(checked.data<T>()[i]);  // 0, or NaN
    *total.data<double>() = sum;
  });
  Count::add(x.size());
}

}  // namespace heed::kernel

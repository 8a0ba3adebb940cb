// Gather and scatter-add of rows on a GPU. A scatter-add into a small table looks through all ids for each of
// its rows; others sort the ids first, so that rows added to one target row are neighbours.
#include "heed/core/kernels/content/gather.h"

#include <algorithm>

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/cuda/device/scatter_add.h"
#include "heed/core/cuda/device/sort.h"
#include "heed/core/cuda/runtime/index_error_record.h"
#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// Valid ids of a flat list: 0 to num_rows - 1.
cuda::IndexErrorRecord valid_in_table(int64_t num_rows) {
  return {.first = 0, .rows = num_rows, .ignored = 0, .heads = 1, .count = 1};
}
/// Valid ids of heads: 0 to num_rows - 1, or -1.
cuda::IndexErrorRecord valid_in_head(const HeadIds& ids, int64_t num_rows) {
  return {.first = 0, .rows = num_rows, .ignored = -1, .heads = ids.heads, .count = ids.count};
}

/// out[i, :] = table[ids[i], :]. An id outside the table is recorded as an error and gives a row of NaN. One
/// warp per row i; lanes are columns.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    gather_table(const T* table, int64_t row_stride, int64_t column_stride, const int32_t* ids, int64_t count,
                 int64_t width, cuda::IndexErrorRecord* record, cuda::IndexErrorRecord valid, T* out) {
  const int64_t i = cuda::grid_warp();
  if (i >= count) return;
  const int32_t id = ids[i];
  const bool is_valid = id >= 0 && id < valid.rows;
  if (!is_valid && cuda::lane() == 0) cuda::record_index_error(record, i, id, valid);
  for (int64_t j = cuda::lane(); j < width; j += cuda::lanes)
    out[i * width + j] = is_valid ? table[id * row_stride + j * column_stride] : static_cast<T>(nan(""));
}

/// Returns a valid id itself, else -1. An id that is neither a row nor allowed as -1 is recorded as an error.
__device__ int32_t checked_id(int32_t id, int64_t position, cuda::IndexErrorRecord* record,
                              const cuda::IndexErrorRecord& valid) {
  if (id >= 0 && id < valid.rows) return id;
  if (id != -1 || valid.ignored != -1) cuda::record_index_error(record, position, id, valid);
  return -1;
}

/// out[row, :] = x[b, h, id, :] for row = (b, h, i), zeros for an id of -1. One warp per row; lanes are
/// columns.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    gather_rows(HeadView<const T> x, HeadIds ids, int64_t num_rows, int64_t width,
                cuda::IndexErrorRecord* record, cuda::IndexErrorRecord valid, T* out) {
  const int64_t row = cuda::grid_warp();
  if (row >= num_rows) return;
  const int64_t head = row / ids.count;
  const int32_t id = checked_id(ids.at(head, row % ids.count), row, record, valid);
  const T* x_row = x.at(head / ids.heads, head % ids.heads, id < 0 ? 0 : id);
  for (int64_t j = cuda::lane(); j < width; j += cuda::lanes) out[row * width + j] = id < 0 ? T(0) : x_row[j];
}

/// sort_keys[n] = id n of all heads [heads, count]; ids of no row become the number of rows, which sorts them
/// last. One thread per id.
__global__ void __launch_bounds__(cuda::block)
    make_sort_keys(HeadIds ids, int64_t num_ids, cuda::IndexErrorRecord* record, cuda::IndexErrorRecord valid,
                   uint32_t* sort_keys) {
  for (int64_t n = cuda::global_thread(); n < num_ids; n += cuda::grid_size()) {
    const int32_t id = checked_id(ids.at(n / ids.count, n % ids.count), n, record, valid);
    sort_keys[n] = static_cast<uint32_t>(id < 0 ? valid.rows : id);
  }
}

/// The rows [B, H, n, width] to add and the target [B H, num_rows, width], for cuda::add_sorted_rows().
template <class T>
struct ScatterSource {
  HeadIds ids;
  HeadView<const T> rows;
  T* target;
  int64_t num_rows, width;

  __device__ int32_t id(int64_t head, int32_t i) const {
    const int32_t id = ids.at(head, i);
    return id < num_rows ? id : -1;
  }
  __device__ T at(int64_t head, int32_t i, int64_t column) const {
    return rows.at(head / ids.heads, head % ids.heads, i)[column];
  }
  __device__ T* to(int64_t head, int32_t id) const { return target + (head * num_rows + id) * width; }
};

/// target[b, h, ids[b, h, i], :] += rows[b, h, i, :], in the order of i: a stable sort of each head by ids
/// makes the rows of one target row neighbours, and cuda::add_sorted_rows() sums each such run. rows [B, H,
/// n, width], target [B H, valid.rows, width].
template <class T>
void scatter_add(const HeadIds& ids, const Tensor& rows, const Tensor& target, cuda::IndexOp op,
                 const cuda::IndexErrorRecord& valid) {
  const int64_t num_heads = rows.extent(0) * rows.extent(1), n = ids.count, width = rows.extent(3);
  const Tensor order(Shape{num_heads, n}, DType::i32, Device::cuda), key_memory = empty_like(order);
  auto* const sort_keys = reinterpret_cast<uint32_t*>(key_memory.data<int32_t>());
  cuda::run(make_sort_keys, cuda::grid_over(num_heads * n), ids, num_heads * n, cuda::index_error_record(op),
            valid, sort_keys);
  cuda::sort_rows(sort_keys, num_heads, n, cuda::bits_of(valid.rows), order.data<int32_t>());
  const ScatterSource<T> source{ids, HeadView<const T>(rows), target.data<T>(), valid.rows, width};
  cuda::add_sorted_rows<T>(
      source, {.order = order.data<int32_t>(), .lists = num_heads, .sharing = 1, .n = n, .width = width});
}

constexpr int64_t small_table = 512;  ///< up to so many rows each looks through all ids
constexpr int64_t ids_per_part = 1024;
constexpr int64_t max_parts = 64;

/// The ids that a warp of sum_parts() looks through, and the row of the table that it sums for.
struct IdPart {
  const int32_t* ids;
  int64_t count, per_part, table_rows, width;
};

/// sums[part, id, :] = sum of rows[i, :] over the i of the part with ids[i] = id, in order. Blocks (x, y, z):
/// warps of x are ids, y are parts, z are runs of 32 columns. A lane compares one id at a time, and all lanes
/// add the rows that the vote finds. An id outside the table is recorded as an error.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    sum_parts(IdPart x, const T* rows, cuda::IndexErrorRecord* record, cuda::IndexErrorRecord valid,
              T* sums) {
  const int64_t id = cuda::grid_warp(), begin = blockIdx.y * x.per_part,
                end = std::min(begin + x.per_part, x.count), column = blockIdx.z * cuda::lanes + cuda::lane();
  if (id >= x.table_rows) return;
  const bool checks = id == 0 && blockIdx.z == 0;
  T sum = T(0);
  for (int64_t first = begin; first < end; first += cuda::lanes) {
    const int64_t i = first + cuda::lane();
    const int32_t found = i < end ? x.ids[i] : -1;
    if (checks && i < end && (found < 0 || found >= x.table_rows))
      cuda::record_index_error(record, i, found, valid);
    unsigned matches = __ballot_sync(cuda::all_lanes, i < end && found == id ? 1 : 0);
    for (; matches != 0; matches &= matches - 1) {
      const int64_t row = first + __ffs(static_cast<int>(matches)) - 1;
      if (column < x.width) sum += rows[row * x.width + column];
    }
  }
  if (column < x.width) sums[(blockIdx.y * x.table_rows + id) * x.width + column] = sum;
}

/// table[i] += sums[0, i] + sums[1, i] + ..., for `size` numbers of the table and `parts` sums.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    add_parts(const T* sums, int64_t parts, int64_t size, T* table) {
  for (int64_t i = cuda::global_thread(); i < size; i += cuda::grid_size()) {
    T sum = T(0);
    for (int64_t part = 0; part < parts; ++part) sum += sums[part * size + i];
    table[i] += sum;
  }
}

/// table[ids[i], :] += rows[i, :] for a small table, in two kernels.
template <class T>
void scatter_add_small(const Tensor& ids, const Tensor& rows, const Tensor& table) {
  const int64_t count = ids.size(), width = table.extent(-1), table_rows = table.extent(0);
  if (count == 0 || table.size() == 0) return;
  const int64_t per_part = std::max(ids_per_part, ceil_div(count, max_parts)),
                parts = ceil_div(count, per_part);
  const Tensor sums = empty_like(table, Shape{parts, table_rows, width});
  cuda::Grid grid = cuda::warp_per_row(table_rows);
  grid.blocks.y = static_cast<unsigned>(parts);
  grid.blocks.z = static_cast<unsigned>(ceil_div(width, cuda::lanes));
  const IdPart part{.ids = ids.data<int32_t>(),
                    .count = count,
                    .per_part = per_part,
                    .table_rows = table_rows,
                    .width = width};
  cuda::run(sum_parts<T>, grid, part, rows.data<T>(), cuda::index_error_record(cuda::IndexOp::scatter_add),
            valid_in_table(table_rows), sums.data<T>());
  cuda::run(add_parts<T>, cuda::grid_over(table.size()), sums.data<T>(), parts, table.size(),
            table.data<T>());
}

}  // namespace

/// Computes out with one warp per id.
void Gather::cuda(const Tensor& table, const Tensor& ids, const Tensor& out) {
  visit_float("embedding", table.dtype(), [&]<class T>(Type<T>) {
    cuda::run(gather_table<T>, cuda::warp_per_row(ids.size()), table.data<T>(), table.strides()[0],
              table.strides()[1], ids.data<int32_t>(), ids.size(), table.extent(-1),
              cuda::index_error_record(cuda::IndexOp::gather), valid_in_table(table.extent(0)),
              out.data<T>());
  });
  Count::add(out.size());
}

/// table[ids[i], :] += rows[i, :]: in a large table the flat lists are those of a single head.
void ScatterAdd::cuda(const Tensor& ids, const Tensor& rows, const Tensor& table) {
  const Tensor head_rows = view::reshape(rows, Shape{1, 1, ids.size(), table.extent(-1)});
  visit_float("scatter_add", table.dtype(), [&]<class T>(Type<T>) {
    if (table.extent(0) <= small_table) return scatter_add_small<T>(ids, rows, table);
    scatter_add<T>(HeadIds::of_list(ids), head_rows, table, cuda::IndexOp::scatter_add,
                   valid_in_table(table.extent(0)));
  });
  Count::add(rows.size());
}

/// Computes out with one warp per id of a head.
void GatherRows::cuda(const Tensor& x, const Tensor& ids, const Tensor& out) {
  const HeadIds head_ids = HeadIds::of_heads(ids);
  const int64_t num_rows = out.extent(0) * out.extent(1) * out.extent(2);
  visit_float("gather_rows", x.dtype(), [&]<class T>(Type<T>) {
    cuda::run(gather_rows<T>, cuda::warp_per_row(num_rows), HeadView<const T>(x), head_ids, num_rows,
              out.extent(3), cuda::index_error_record(cuda::IndexOp::gather_rows),
              valid_in_head(head_ids, x.extent(2)), out.data<T>());
  });
  Count::add(out.size());
}

/// y[b, h, ids[b, h, i], :] += rows[b, h, i, :], by sorted ids.
void ScatterAddRows::cuda(const Tensor& ids, const Tensor& rows, const Tensor& y) {
  const HeadIds head_ids = HeadIds::of_heads(ids);
  visit_float("scatter_add_rows", y.dtype(), [&]<class T>(Type<T>) {
    scatter_add<T>(head_ids, rows, y, cuda::IndexOp::scatter_add_rows, valid_in_head(head_ids, y.extent(2)));
  });
  Count::add(rows.size());
}

}  // namespace heed::kernel

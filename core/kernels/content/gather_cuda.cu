// Rows selected by index, on a GPU. A gradient sorts the ids first, so that rows added to one place lie
// together.
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

/// The rule of a flat list of ids: 0 to num_rows - 1.
cuda::IndexErrorRecord table_rule(int64_t num_rows) {
  return {.first = 0, .rows = num_rows, .ignored = 0, .heads = 1, .count = 1};
}
/// The rule of the ids of heads: 0 to num_rows - 1, or -1.
cuda::IndexErrorRecord head_rule(const HeadIds& ids, int64_t num_rows) {
  return {.first = 0, .rows = num_rows, .ignored = -1, .heads = ids.heads, .count = ids.count};
}

/// out[i, :] = table[ids[i], :], one warp per row i. An id outside the table is noted as an error and gives
/// NaN.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    gather_table(const T* table, int64_t row_stride, int64_t column_stride, const int32_t* ids, int64_t count,
                 int64_t width, cuda::IndexErrorRecord* note, cuda::IndexErrorRecord rule, T* out) {
  const int64_t i = cuda::grid_warp();
  if (i >= count) return;
  const int32_t id = ids[i];
  const bool is_valid = id >= 0 && id < rule.rows;
  if (!is_valid && cuda::lane() == 0) cuda::record_index_error(note, i, id, rule);
  for (int64_t j = cuda::lane(); j < width; j += cuda::lanes)
    out[i * width + j] = is_valid ? table[id * row_stride + j * column_stride] : static_cast<T>(nan(""));
}

/// The id itself; or -1 where it is no row, after noting an error unless the rule allows that id.
__device__ int32_t checked_id(int32_t id, int64_t place, cuda::IndexErrorRecord* note,
                              const cuda::IndexErrorRecord& rule) {
  if (id >= 0 && id < rule.rows) return id;
  if (id != -1 || rule.ignored != -1) cuda::record_index_error(note, place, id, rule);
  return -1;
}

/// out[row, :] = x[b, h, id, :] for row = (b, h, i), zeros for an id of -1. One warp per row; lanes are
/// columns.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    gather_rows(HeadView<const T> x, HeadIds ids, int64_t num_rows, int64_t width,
                cuda::IndexErrorRecord* note, cuda::IndexErrorRecord rule, T* out) {
  const int64_t row = cuda::grid_warp();
  if (row >= num_rows) return;
  const int64_t head = row / ids.count;
  const int32_t id = checked_id(ids.at(head, row % ids.count), row, note, rule);
  const T* from = x.at(head / ids.heads, head % ids.heads, id < 0 ? 0 : id);
  for (int64_t j = cuda::lane(); j < width; j += cuda::lanes) out[row * width + j] = id < 0 ? T(0) : from[j];
}

/// sort_keys[n] = id n of all heads, or the number of rows where it is none, so that those come last.
__global__ void __launch_bounds__(cuda::block)
    make_sort_keys(HeadIds ids, int64_t num_ids, cuda::IndexErrorRecord* note, cuda::IndexErrorRecord rule,
                   uint32_t* sort_keys) {
  for (int64_t n = cuda::global_thread(); n < num_ids; n += cuda::grid_size()) {
    const int32_t id = checked_id(ids.at(n / ids.count, n % ids.count), n, note, rule);
    sort_keys[n] = static_cast<uint32_t>(id < 0 ? rule.rows : id);
  }
}

/// The rows [B, H, n, width] to add and the target [B H, length, width], as cuda::add_sorted_rows() needs
/// them.
template <class T>
struct ScatterSource {
  HeadIds ids;
  HeadView<const T> rows;
  T* target;
  int64_t length, width;

  __device__ int32_t id(int64_t head, int32_t i) const {
    const int32_t id = ids.at(head, i);
    return id < length ? id : -1;
  }
  __device__ T at(int64_t head, int32_t i, int64_t column) const {
    return rows.at(head / ids.heads, head % ids.heads, i)[column];
  }
  __device__ T* to(int64_t head, int32_t id) const { return target + (head * length + id) * width; }
};

/// target[head, ids[head, i], :] += rows[head, i, :], in the order of i: a stable sort of each head by ids
/// puts rows of one place beside each other, and each such run is added by itself.
template <class T>
void scatter_add(const ScatterSource<T>& source, int64_t num_heads, cuda::IndexOp op,
                 const cuda::IndexErrorRecord& rule) {
  const int64_t n = source.ids.count;
  const Tensor keys(Shape{num_heads, n}, DType::i32, Device::cuda), order = empty_like(keys);
  auto* const sort_keys = reinterpret_cast<uint32_t*>(keys.data<int32_t>());
  cuda::run(make_sort_keys, cuda::grid_over(num_heads * n), source.ids, num_heads * n,
            cuda::index_error_record(op), rule, sort_keys);
  cuda::sort_rows(sort_keys, num_heads, n, cuda::bits_of(source.length), order.data<int32_t>());
  cuda::add_sorted_rows<T>(
      source,
      {.order = order.data<int32_t>(), .lists = num_heads, .sharing = 1, .n = n, .width = source.width});
}

}  // namespace

void Gather::cuda(const Tensor& table, const Tensor& ids, const Tensor& out) {
  visit_float("gather", table.dtype(), [&]<class T>(Type<T>) {
    cuda::run(gather_table<T>, cuda::warp_per_row(ids.size()), table.data<T>(), table.strides()[0],
              table.strides()[1], ids.data<int32_t>(), ids.size(), table.extent(-1),
              cuda::index_error_record(cuda::IndexOp::gather), table_rule(table.extent(0)), out.data<T>());
  });
  Count::add(out.size());
}

void ScatterAdd::cuda(const Tensor& ids, const Tensor& rows, const Tensor& table) {
  const int64_t length = table.extent(0), width = table.extent(-1);
  visit_float("scatter_add", table.dtype(), [&]<class T>(Type<T>) {
    HeadView<const T> view;
    view.data = rows.data<T>();
    view.ld = width;
    scatter_add(ScatterSource<T>{HeadIds::of_list(ids), view, table.data<T>(), length, width}, 1,
                cuda::IndexOp::scatter_add, table_rule(length));
  });
  Count::add(rows.size());
}

void GatherRows::cuda(const Tensor& x, const Tensor& ids, const Tensor& out) {
  const HeadIds head_ids = HeadIds::of_heads(ids);
  const int64_t num_rows = out.extent(0) * out.extent(1) * out.extent(2);
  visit_float("gather_rows", x.dtype(), [&]<class T>(Type<T>) {
    cuda::run(gather_rows<T>, cuda::warp_per_row(num_rows), HeadView<const T>(x), head_ids, num_rows,
              out.extent(3), cuda::index_error_record(cuda::IndexOp::gather_rows),
              head_rule(head_ids, x.extent(2)), out.data<T>());
  });
  Count::add(out.size());
}

void ScatterAddRows::cuda(const Tensor& ids, const Tensor& rows, const Tensor& y) {
  const HeadIds head_ids = HeadIds::of_heads(ids);
  const int64_t length = y.extent(2);
  visit_float("scatter_add_rows", y.dtype(), [&]<class T>(Type<T>) {
    scatter_add(ScatterSource<T>{head_ids, HeadView<const T>(rows), y.data<T>(), length, y.extent(3)},
                y.extent(0) * y.extent(1), cuda::IndexOp::scatter_add_rows, head_rule(head_ids, length));
  });
  Count::add(rows.size());
}

}  // namespace heed::kernel

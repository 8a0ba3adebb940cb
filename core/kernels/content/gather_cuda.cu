// Rows of a table on a GPU; their gradient sorts the ids first, so that rows of one place lie together.
#include "heed/core/kernels/content/gather.h"

#include <algorithm>

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/cuda/device/scatter_add.h"
#include "heed/core/cuda/device/sort.h"
#include "heed/core/cuda/runtime/device_error.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

cuda::DeviceError legal(int64_t rows) {
  return {.first = 0, .rows = rows, .spared = 0, .heads = 1, .count = 1};
}

/// out[i, :] = table[ids[i], :], one warp per row i. An id outside the table is noted as an error and gives
/// NaN.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    take(const T* table, int64_t stride, int64_t step, const int32_t* ids, int64_t count, int64_t width,
         cuda::DeviceError* note, cuda::DeviceError rule, T* out) {
  const int64_t i = cuda::grid_warp();
  if (i >= count) return;
  const int32_t id = ids[i];
  const bool known = id >= 0 && id < rule.rows;
  if (!known && cuda::lane() == 0) cuda::refuse(note, i, id, rule);
  for (int64_t j = cuda::lane(); j < width; j += cuda::lanes)
    out[i * width + j] = known ? table[id * stride + j * step] : static_cast<T>(nan(""));
}

__global__ void __launch_bounds__(cuda::block)
    keys_of(const int32_t* ids, int64_t count, cuda::DeviceError* note, cuda::DeviceError rule,
            uint32_t* keys) {
  for (int64_t i = cuda::global_thread(); i < count; i += cuda::grid_size()) {
    const int32_t id = ids[i];
    const bool known = id >= 0 && id < rule.rows;
    if (!known) cuda::refuse(note, i, id, rule);
    keys[i] = static_cast<uint32_t>(known ? id : rule.rows);
  }
}

template <class T>
struct Into {
  const int32_t* ids;
  const T* rows;
  T* table;
  int64_t width, length;

  __device__ int32_t id(int64_t, int32_t which) const {
    const int32_t id = ids[which];
    return id < length ? id : -1;
  }
  __device__ T at(int64_t, int32_t which, int64_t column) const { return rows[which * width + column]; }
  __device__ T* to(int64_t, int32_t id) const { return table + id * width; }
};

}  // namespace

void Gather::cuda(const Tensor& table, const Tensor& ids, const Tensor& out) {
  const int64_t width = table.extent(-1);
  cuda::DeviceError* const note = cuda::refusal(cuda::Refuser::gather);
  visit_float("gather", table.dtype(), [&]<class T>(Type<T>) {
    cuda::run(take<T>, cuda::warps(ids.size()), table.data<T>(), table.strides()[0], table.strides()[1],
              ids.data<int32_t>(), ids.size(), width, note, legal(table.extent(0)), out.data<T>());
  });
  Count::add(out.size());
}

/// table[ids[i], :] += rows[i, :], in the order of i: a stable sort by ids puts rows of one place beside each
/// other, and each such run is added by itself. Ids outside the table are noted as errors and add nothing.
void ScatterAdd::cuda(const Tensor& ids, const Tensor& rows, const Tensor& table) {
  const int64_t width = table.extent(-1), count = ids.size(), length = table.extent(0);
  const Tensor keys(Shape{count}, DType::i32, Device::cuda), order(Shape{count}, DType::i32, Device::cuda);
  auto* const key = reinterpret_cast<uint32_t*>(keys.data<int32_t>());
  cuda::run(keys_of, cuda::line(count), ids.data<int32_t>(), count, cuda::refusal(cuda::Refuser::scatter_add),
            legal(length), key);
  cuda::sort_rows(key, 1, count, cuda::bits_of(length), order.data<int32_t>());
  visit_float("scatter_add", table.dtype(), [&]<class T>(Type<T>) {
    const Into<T> into{ids.data<int32_t>(), rows.data<T>(), table.data<T>(), width, length};
    cuda::add_runs<T>(into, {order.data<int32_t>(), 1, 1, count, width});
  });
  Count::add(rows.size());
}

}  // namespace heed::kernel

// Rows of every head by index, on a GPU.
#include "heed/core/kernels/content/gather_heads.h"

#include <algorithm>

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/cuda/device/scatter_add.h"
#include "heed/core/cuda/device/sort.h"
#include "heed/core/cuda/runtime/device_error.h"
#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// Ids of all heads.
struct Ids {
  const int32_t* data;
  int64_t batch, head, step, heads, count;

  explicit Ids(const Tensor& ids)
      : data(ids.data<int32_t>()),
        batch(ids.strides()[0]),
        head(ids.strides()[1]),
        step(ids.strides()[2]),
        heads(ids.extent(1)),
        count(ids.extent(2)) {}
  __device__ int32_t at(int64_t row, int64_t i) const {
    return data[row / heads * batch + row % heads * head + i * step];
  }
  cuda::DeviceError legal(int64_t rows) const {
    return {.first = 0, .rows = rows, .spared = -1, .heads = heads, .count = count};
  }
};

/// The id itself; or -1, after an error is noted, where it is neither -1 nor a row.
__device__ int32_t checked(int32_t id, int64_t place, cuda::DeviceError* note,
                           const cuda::DeviceError& rule) {
  if (id >= -1 && id < rule.rows) return id;
  cuda::refuse(note, place, id, rule);
  return -1;
}

template <class T>
__global__ void __launch_bounds__(cuda::block) take(HeadView<const T> x, Ids ids, int64_t rows, int64_t width,
                                                    cuda::DeviceError* note, cuda::DeviceError rule, T* out) {
  const int64_t row = cuda::grid_warp();
  if (row >= rows) return;
  const int64_t head = row / ids.count;
  const int32_t id = checked(ids.at(head, row % ids.count), row, note, rule);
  const T* from = x.at(head / ids.heads, head % ids.heads, id < 0 ? 0 : id);
  for (int64_t j = cuda::lane(); j < width; j += cuda::lanes) out[row * width + j] = id < 0 ? T(0) : from[j];
}

__global__ void __launch_bounds__(cuda::block)
    keys_of(Ids ids, int64_t all, cuda::DeviceError* note, cuda::DeviceError rule, uint32_t* keys) {
  for (int64_t i = cuda::global_thread(); i < all; i += cuda::grid_size()) {
    const int32_t id = checked(ids.at(i / ids.count, i % ids.count), i, note, rule);
    keys[i] = static_cast<uint32_t>(id < 0 ? rule.rows : id);
  }
}

template <class T>
struct Into {
  Ids ids;
  HeadView<const T> rows;
  T* y;
  int64_t length, width;

  __device__ int32_t id(int64_t list, int32_t which) const {
    const int32_t id = ids.at(list, which);
    return id < length ? id : -1;
  }
  __device__ T at(int64_t list, int32_t which, int64_t column) const {
    return rows.at(list / ids.heads, list % ids.heads, which)[column];
  }
  __device__ T* to(int64_t list, int32_t id) const { return y + (list * length + id) * width; }
};

}  // namespace

void GatherRows::cuda(const Tensor& x, const Tensor& ids, const Tensor& out) {
  const Ids of(ids);
  const int64_t width = out.extent(3), rows = out.extent(0) * out.extent(1) * out.extent(2);
  cuda::DeviceError* const note = cuda::refusal(cuda::Refuser::gather_rows);
  visit_float("take_rows", x.dtype(), [&]<class T>(Type<T>) {
    cuda::run(take<T>, cuda::warps(rows), HeadView<const T>(x), of, rows, width, note, of.legal(x.extent(2)),
              out.data<T>());
  });
  Count::add(out.size());
}

/// y[b, h, ids[b, h, i], :] += rows[b, h, i, :], in the order of i: a stable sort of each head by ids puts
/// rows of one place beside each other, and each such run is added by itself.
void ScatterAddRows::cuda(const Tensor& ids, const Tensor& rows, const Tensor& y) {
  const Ids of(ids);
  const int64_t heads = y.extent(0) * y.extent(1), length = y.extent(2), width = y.extent(3), n = of.count;
  const Tensor keys(Shape{heads, n}, DType::i32, Device::cuda),
      order(Shape{heads, n}, DType::i32, Device::cuda);
  auto* const key = reinterpret_cast<uint32_t*>(keys.data<int32_t>());
  cuda::run(keys_of, cuda::line(heads * n), of, heads * n, cuda::refusal(cuda::Refuser::scatter_add_rows),
            of.legal(length), key);
  cuda::sort_rows(key, heads, n, cuda::bits_of(length), order.data<int32_t>());
  visit_float("put_rows", y.dtype(), [&]<class T>(Type<T>) {
    const Into<T> into{of, HeadView<const T>(rows), y.data<T>(), length, width};
    cuda::add_runs<T>(into, {order.data<int32_t>(), heads, 1, n, width});
  });
  Count::add(rows.size());
}

}  // namespace heed::kernel

// Masks on the GPU.
#include "heed/core/kernels/elementwise/mask.h"

#include "heed/core/cuda/device/grid.h"
#include "heed/core/kernels/elementwise/activation_types.h"
#include "heed/core/minus_infinity.h"

namespace heed::kernel {
namespace {

/// y[row, j] = 0 where key j is visible from row (b, i), else -inf, by one block per row.
template <class T>
__global__ void dense_mask(int64_t rows, int64_t queries, int64_t keys, const int32_t* length, bool causal,
                           int64_t first_query, T* out) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    int64_t num_visible = keys;
    if (length != nullptr) num_visible = min(num_visible, int64_t{length[row / queries]});
    if (causal) num_visible = min(num_visible, row % queries + first_query + 1);
    for (int64_t j = threadIdx.x; j < keys; j += blockDim.x)
      out[row * keys + j] = j < num_visible ? T(0) : -std::numeric_limits<T>::infinity();
  }
}

/// y[b, t] = 1 where first + t < lengths[b], else 0, by threads in steps of the grid.
template <class T>
__global__ void kept_rows(int64_t size, int64_t rows, const int32_t* length, int64_t first, T* out) {
  for (int64_t i = cuda::global_thread(); i < size; i += cuda::grid_size())
    out[i] = first + i % rows < length[i / rows] ? T(1) : T(0);
}

/// y = x, but in padding NaN and numbers beyond +-limit become 0, by threads in steps of the grid. A sequence
/// has `sequence_size` numbers.
template <class T>
__global__ void finite_padding(int64_t size, int64_t width, int64_t positions, int64_t sequence_size,
                               const int32_t* length, int64_t first, Computed<T> limit, const T* x, T* y) {
  for (int64_t i = cuda::global_thread(); i < size; i += cuda::grid_size()) {
    const bool is_valid = first + i / width % positions < length[i / sequence_size];
    y[i] = is_valid || fabs(Computed<T>(x[i])) <= limit ? x[i] : T(0);
  }
}

}  // namespace

/// Computes y with one block per row, with fewer threads where rows are short.
void DenseMask::cuda(const Tensor& lengths, bool causal, int64_t first_query, const Tensor& y) {
  const int64_t rows = y.extent(0) * y.extent(2), keys = y.extent(3);
  const int32_t* length = lengths ? lengths.data<int32_t>() : nullptr;
  visit_float("mask", y.dtype(), [&]<class T>(Type<T>) {
    if (y.size() == 0) return;
    const cuda::Grid grid = {cuda::grid_over(rows, 1, 65536).blocks, dim3(keys > 128 ? 256 : 64)};
    cuda::run(dense_mask<T>, grid, rows, y.extent(2), keys, length, causal, first_query, y.data<T>());
  });
}

/// Computes y with one thread per row.
void KeptRows::cuda(const Tensor& lengths, int64_t first, const Tensor& y) {
  visit_float("mask", y.dtype(), [&]<class T>(Type<T>) {
    cuda::run(kept_rows<T>, cuda::grid_over(y.size()), y.size(), y.extent(2), lengths.data<int32_t>(), first,
              y.data<T>());
  });
}

/// Computes y with one thread per number.
void FinitePadding::cuda(const Tensor& x, const Tensor& lengths, int64_t first, const Tensor& y) {
  if (x.size() == 0) return;
  visit_activation("mask", y.dtype(), [&]<class T>(Type<T>) {
    cuda::run(finite_padding<T>, cuda::grid_over(x.size()), x.size(), x.extent(-1), x.extent(-2),
              x.size() / x.extent(0), lengths.data<int32_t>(), first, static_cast<Computed<T>>(max_magnitude),
              x.data<T>(), y.data<T>());
  });
}

}  // namespace heed::kernel

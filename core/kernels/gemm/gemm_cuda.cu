// Matrix products on the GPU by cuBLAS, which expects column-major matrices.
#include "heed/core/kernels/gemm/gemm_device.h"

#include "heed/core/cuda/device/grid.h"
#include "heed/core/cuda/device/strided_offsets.h"
#include "heed/core/kernels/elementwise/apply.h"

namespace heed::kernel {
namespace {

using cuda::StridedOffsets;

/// The first matrices of a batch.
struct FirstMatrices {
  const char *a, *b, *c;
  int64_t factor_bytes, result_bytes;  // size of an element in bytes
};

/// a[i], b[i], c[i] = addresses of matrices i of a batch, for cuBLAS; each thread takes every grid_size()-th
/// i.
__global__ void list_matrices(StridedOffsets<3> batch, FirstMatrices first, const void** a, const void** b,
                              const void** c) {
  for (int64_t i = cuda::global_thread(); i < batch.size; i += cuda::grid_size()) {
    const auto offsets = batch.at(i);
    a[i] = first.a + offsets[0] * first.factor_bytes;
    b[i] = first.b + offsets[1] * first.factor_bytes;
    c[i] = first.c + offsets[2] * first.result_bytes;
  }
}

/// x rounded to bf16. Where x spans at most twice its size, the result has its strides: the elements between
/// those of x are rounded, too. Else the result is contiguous.
Tensor to_bf16_with_strides(const Tensor& x) {
  int64_t span = 1;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    if (x.extent(axis) == 0) return Tensor(x.shape(), DType::bf16, x.device());
    span += (x.extent(axis) - 1) * x.strides()[axis];
  }
  if (span <= 2 * x.size()) {
    const Tensor narrow(Shape{span}, DType::bf16, x.device());
    Copy::cuda(x.seen_as(Shape{span}, Strides{1}, x.offset()), narrow);
    return narrow.seen_as(x.shape(), x.strides(), 0);
  }
  const Tensor narrow(x.shape(), DType::bf16, x.device());
  Copy::cuda(x, narrow);
  return narrow;
}

}  // namespace

/// x as a factor of the type `dtype`, f32 or bf16; x itself where it has that.
Tensor factor_as(DType dtype, const Tensor& x) {
  if (x.dtype() == dtype) return x;
  if (dtype == DType::bf16) return to_bf16_with_strides(x);
  const Tensor wide(x.shape(), dtype, x.device());
  Copy::cuda(x, wide);
  return wide;
}

namespace {

/// True where all matrices of a batch are aligned to 16 bytes.
bool is_aligned(const Tensor& x) {
  bool aligned = reinterpret_cast<uintptr_t>(x.raw()) % 16 == 0;
  for (int64_t axis = 0; axis < x.rank() - 2; ++axis)
    aligned = aligned && (x.extent(axis) == 1 || x.strides()[axis] * bytes_of(x.dtype()) % 16 == 0);
  return aligned;
}

/// Uninitialised matrices with the shape and the order (transposed or not) of x, each aligned to 16 bytes.
Tensor aligned_like(const Tensor& x) {
  const int64_t alignment = 16 / bytes_of(x.dtype()), rows = x.extent(-2), columns = x.extent(-1);
  const bool transposed = layout(x).transposed;
  Strides strides = x.strides();
  strides[-1] = transposed ? rows : 1;
  strides[-2] = transposed ? 1 : columns;
  int64_t size = ceil_div(rows * columns, alignment) * alignment;
  for (int64_t axis = x.rank() - 3; axis >= 0; --axis) {
    strides[axis] = size;
    size *= x.extent(axis);
  }
  return Tensor(Shape{size}, x.dtype(), x.device()).seen_as(x.shape(), strides, 0);
}

/// x where all its matrices are aligned, else an aligned copy.
Tensor aligned(const Tensor& x) {
  if (is_aligned(x)) return x;
  const Tensor out = aligned_like(x);
  Copy::cuda(x, out);
  return out;
}

}  // namespace

/// c = alpha a b + beta c for every matrix of the batch, by one call of cuBLAS: with one stride between the
/// matrices where that describes all of them, else with lists of their addresses.
void Gemm::cuda(const Tensor& a, const Tensor& b, const Tensor& c, double alpha, double beta,
                Rounding rounding) {
  const bool is_bf16 = rounds_to_bf16(a, c, rounding);
  const DType factors = c.dtype() == DType::f64 ? DType::f64 : is_bf16 ? DType::bf16 : DType::f32;
  if (a.dtype() != factors || b.dtype() != factors)
    return cuda(factor_as(factors, a), factor_as(factors, b), c, alpha, beta, rounding);
  if (c.dtype() == DType::bf16 && !is_bf16) {
    const Tensor wide(c.shape(), DType::f32, c.device());
    cuda(a, b, wide, alpha, beta, rounding);
    return Copy::cuda(wide, c);
  }
  if (c.size() == 0) return;
  // BLAS rejects the leading dimension of a matrix without columns.
  if (a.extent(-1) == 0) return beta == 0 ? Fill::cuda(c, 0) : Affine::cuda(c, beta, 0, c);
  const StridedLoop<3> loop = batch_loop(a, b, c);
  cuda::BlasProduct product = by_columns(a, b, c, alpha, beta, rounding);
  product.batch = loop.inner * loop.outer;
  // cuBLAS is column-major, so a and b are swapped.
  product.a.batch_stride = loop.steps[1];
  product.b.batch_stride = loop.steps[0];
  product.c_batch_stride = loop.steps[2];
  if (loop.axes == 1) {
    cuda::multiply(product);
  } else if ((is_bf16 || rounding == Rounding::tf32) && !(is_aligned(a) && is_aligned(b) && is_aligned(c))) {
    // cuBLAS chooses kernels for a list without reading its addresses, and assumes alignment where it rounds.
    const Tensor aligned_c = is_aligned(c) ? c : aligned_like(c);
    if (aligned_c.storage() != c.storage() && beta != 0) Copy::cuda(c, aligned_c);
    cuda(aligned(a), aligned(b), aligned_c, alpha, beta, rounding);
    if (aligned_c.storage() != c.storage()) Copy::cuda(aligned_c, c);
    return;
  } else {
    // Addresses of all matrices [3, batch], written by a kernel.
    const Tensor lists(Shape{3, product.batch}, DType::i64, c.device());
    const auto list = [&](int64_t which) {
      return reinterpret_cast<const void**>(lists.data<int64_t>()) + which * product.batch;
    };
    const FirstMatrices first{static_cast<const char*>(a.raw()), static_cast<const char*>(b.raw()),
                              static_cast<const char*>(c.raw()), bytes_of(a.dtype()), bytes_of(c.dtype())};
    cuda::run(list_matrices, cuda::grid_over(product.batch), StridedOffsets<3>(loop), first, list(0), list(1),
              list(2));
    product.a.data = list(1);
    product.b.data = list(0);
    product.c = list(2);
    cuda::multiply_listed(product);
  }
  count_product(product);
}

}  // namespace heed::kernel

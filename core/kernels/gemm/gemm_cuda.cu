// Matrix products on the GPU by cuBLAS, which expects column-major matrices.
#include "heed/core/kernels/gemm/gemm_device.h"

#include "heed/core/cuda/device/grid.h"
#include "heed/core/cuda/device/view.h"
#include "heed/core/cuda/device/visit.h"
#include "heed/core/kernels/elementwise/apply.h"

namespace heed::kernel {
namespace {

using cuda::Places;

/// Addresses of the matrices of a batch, in device memory, as cuBLAS takes them.
struct Begins {
  const char *a, *b, *c;
  int64_t of_factor, of_result;  // bytes of an element
};

__global__ void list_matrices(Places<3> batch, Begins begins, const void** a, const void** b,
                              const void** c) {
  for (int64_t i = cuda::global_thread(); i < batch.size; i += cuda::grid_size()) {
    const auto at = batch.at(i);
    a[i] = begins.a + at.of[0] * begins.of_factor;
    b[i] = begins.b + at.of[1] * begins.of_factor;
    c[i] = begins.c + at.of[2] * begins.of_result;
  }
}

}  // namespace

/// x rounded to bf16, with the strides of x where it spans at most twice its own size; else without gaps.
Tensor rounded_as_it_lies(const Tensor& x) {
  // Elements between those of the view are rounded too, where they are few.
  int64_t reach = 1;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    if (x.extent(axis) == 0) return Tensor(x.shape(), DType::bf16, x.device());
    reach += (x.extent(axis) - 1) * x.strides()[axis];
  }
  if (reach <= 2 * x.size()) {
    const Tensor line = x.seen_as(Shape{reach}, Strides{1}, x.offset());
    const Tensor narrow(Shape{reach}, DType::bf16, x.device());
    Copy::cuda(line, narrow);
    return narrow.seen_as(x.shape(), x.strides(), 0);
  }
  const Tensor narrow(x.shape(), DType::bf16, x.device());
  Copy::cuda(x, narrow);
  return narrow;
}

namespace {

/// Whether all matrices of a batch are aligned to 16 bytes.
bool at_whole_pieces(const Tensor& x) {
  bool whole = reinterpret_cast<uintptr_t>(x.raw()) % 16 == 0;
  for (int64_t axis = 0; axis < x.rank() - 2; ++axis)
    whole = whole && (x.extent(axis) == 1 || x.strides()[axis] * bytes_of(x.dtype()) % 16 == 0);
  return whole;
}

/// Memory for matrices of the shape and order of x, each aligned to 16 bytes.
Tensor spaced_like(const Tensor& x) {
  const int64_t each = 16 / bytes_of(x.dtype()), rows = x.extent(-2), columns = x.extent(-1);
  const bool turned = layout(x).transposed;
  Strides strides = x.strides();
  strides[-1] = turned ? rows : 1;
  strides[-2] = turned ? 1 : columns;
  int64_t size = (rows * columns + each - 1) / each * each;
  for (int64_t axis = x.rank() - 3; axis >= 0; --axis) {
    strides[axis] = size;
    size *= x.extent(axis);
  }
  return Tensor(Shape{size}, x.dtype(), x.device()).seen_as(x.shape(), strides, 0);
}

/// x, or an aligned copy of it that a list of addresses may point into.
Tensor spaced(const Tensor& x) {
  if (at_whole_pieces(x)) return x;
  const Tensor out = spaced_like(x);
  Copy::cuda(x, out);
  return out;
}

}  // namespace

/// c = alpha a b + beta c for every matrix of the batch, by one call of cuBLAS: with one stride between the
/// matrices where that reaches all of them, else with lists of their addresses.
void Gemm::cuda(const Tensor& a, const Tensor& b, const Tensor& c, double alpha, double beta,
                Rounding rounding) {
  const bool narrow = in_bf16(a, c, rounding);
  if (narrow && a.dtype() == DType::f32)
    return cuda(rounded_as_it_lies(a), rounded_as_it_lies(b), c, alpha, beta, rounding);
  if (!narrow) visit_float("gemm", c.dtype(), [](auto) {});  // refuses other types
  if (c.size() == 0) return;
  // BLAS refuses the leading dimension of a matrix without columns.
  if (a.extent(-1) == 0) return beta == 0 ? Fill::cuda(c, 0) : Affine::cuda(c, beta, 0, c);
  // Strides of a, b and c along the batch axes. cuBLAS is column-major, so a and b are swapped.
  Shape batch;
  Strides of_a, of_b, of_c;
  for (int64_t axis = 0; axis < c.rank() - 2; ++axis) {
    batch.push_back(c.extent(axis));
    of_a.push_back(a.strides()[axis]);
    of_b.push_back(b.strides()[axis]);
    of_c.push_back(c.strides()[axis]);
  }
  const StridedLoop<3> walk(batch, {&of_a, &of_b, &of_c});
  cuda::BlasProduct product = by_columns(a, b, c, alpha, beta, rounding);
  product.batch = batch.size();
  product.a.between = walk.steps[1];
  product.b.between = walk.steps[0];
  product.c_between = walk.steps[2];
  if (walk.axes == 1) {
    cuda::multiply(product);
  } else if ((narrow || rounding == Rounding::tf32) &&
             !(at_whole_pieces(a) && at_whole_pieces(b) && at_whole_pieces(c))) {
    // cuBLAS chooses kernels for a list without reading its addresses, and assumes alignment where it rounds.
    const Tensor place = at_whole_pieces(c) ? c : spaced_like(c);
    if (place.storage() != c.storage() && beta != 0) Copy::cuda(c, place);
    cuda(spaced(a), spaced(b), place, alpha, beta, rounding);
    if (place.storage() != c.storage()) Copy::cuda(place, c);
    return;
  } else {
    // Addresses of all matrices [3, batch], written by a kernel.
    const Tensor lists(Shape{3, product.batch}, DType::i64, c.device());
    const auto list = [&](int64_t which) {
      return reinterpret_cast<const void**>(lists.data<int64_t>()) + which * product.batch;
    };
    const Begins begins{static_cast<const char*>(a.raw()), static_cast<const char*>(b.raw()),
                        static_cast<const char*>(c.raw()), bytes_of(a.dtype()), bytes_of(c.dtype())};
    cuda::run(list_matrices, cuda::line(product.batch), Places<3>(walk), begins, list(0), list(1), list(2));
    product.a.at = list(1);
    product.b.at = list(0);
    product.c = list(2);
    cuda::multiply_listed(product);
  }
  note(product);
}

}  // namespace heed::kernel

// Linear layers on the GPU: one fused kernel of cuBLASLt where it has one, else a matrix product, then bias
// and GELU.
#include "heed/core/kernels/gemm/linear.h"

#include "heed/core/cuda/runtime/blas_lt.h"
#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/kernels/gemm/gemm_device.h"
#include "heed/core/kernels/norm/reduce.h"

namespace heed::kernel {
namespace {

/// Computes c = a b with bias and GELU by one kernel; returns false and does nothing where cuBLASLt has none.
bool multiply_fused(const Tensor& a, const Tensor& b, const Tensor& c, cuda::Epilogue finish,
                    const Tensor& bias, const Tensor& before_gelu, Rounding rounding) {
  if (c.size() == 0 || a.extent(-1) == 0) return false;
  if (c.dtype() == DType::bf16 && a.dtype() != DType::bf16) return false;
  // The accuracy of cuBLASLt's tanh is not documented.
  if (before_gelu && rounding == Rounding::none) return false;
  const cuda::ProductWithEpilogue fused{.product = by_columns(a, b, c, 1, 0, rounding),
                                        .epilogue = finish,
                                        .bias = bias ? bias.raw() : nullptr,
                                        .before_gelu = before_gelu ? before_gelu.raw() : nullptr};
  if (!cuda::multiply(fused)) return false;
  count_product(fused.product);
  return true;
}

/// The operand x of a matrix product c whose left operand is a, in the type that the product takes.
Tensor operand_of(const Tensor& x, const Tensor& a, const Tensor& c, Rounding rounding) {
  if (c.dtype() == DType::f64) return x;
  return factor_as(rounds_to_bf16(a, c, rounding) ? DType::bf16 : DType::f32, x);
}

/// row_sum [n] = sum over r of x[r, :].
void sum_rows(const Tensor& x, const Tensor& row_sum) {
  Sum::cuda(x, view::reshape(row_sum, Shape{1, row_sum.extent(0)}));
}

Tensor copy_as(DType dtype, const Tensor& x) {
  if (!x || x.dtype() == dtype) return x;
  const Tensor copy(x.shape(), dtype, x.device());
  Copy::cuda(x, copy);
  return copy;
}

Tensor empty_as(DType dtype, const Tensor& x) { return x ? Tensor(x.shape(), dtype, x.device()) : Tensor(); }

}  // namespace

/// y [N, out] = x weight^T + bias, or its GELU with `before_gelu` = x weight^T + bias: by one kernel of
/// cuBLASLt where it has one; else copies the bias to all rows, adds the matrix product, and applies the
/// GELU.
void Linear::cuda(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& before_gelu,
                  const Tensor& y, Rounding rounding) {
  const Tensor a = operand_of(x, x, y, rounding),
               b = view::transpose(operand_of(weight, x, y, rounding), 0, 1);
  if (bias || before_gelu) {
    const cuda::Epilogue finish = !before_gelu ? cuda::Epilogue::bias
                                  : bias       ? cuda::Epilogue::gelu_bias
                                               : cuda::Epilogue::gelu;
    // cuBLASLt takes the bias in the type of the result.
    if (multiply_fused(a, b, y, finish, copy_as(y.dtype(), bias), before_gelu, rounding)) return;
  }
  if (y.dtype() == DType::bf16 && (bias || before_gelu)) {  // no fused kernel: compute in f32, then round
    const Tensor before_f32 = empty_as(DType::f32, before_gelu), y_f32 = empty_as(DType::f32, y);
    cuda(x, weight, bias, before_f32, y_f32, rounding);
    if (before_gelu) Copy::cuda(before_f32, before_gelu);
    return Copy::cuda(y_f32, y);
  }
  const Tensor& product = before_gelu ? before_gelu : y;
  if (bias) Copy::cuda(view::expand(bias, product.shape()), product);
  Gemm::cuda(a, b, product, /*alpha=*/1, /*beta=*/bias ? 1 : 0, rounding);
  if (before_gelu) Map<GeluTanh>::cuda(before_gelu, y);
}

/// dx [N, in] = dy weight, times GELU'(before_gelu) where `before_gelu` is not empty, with dbias = sum of dx
/// over rows: by one kernel of cuBLASLt where it has one, else a matrix product, MapBack and Sum.
void LinearBack::cuda(const Tensor& dy, const Tensor& weight, const Tensor& before_gelu, const Tensor& dx,
                      const Tensor& dbias, Rounding rounding) {
  const Tensor a = operand_of(dy, dy, dx, rounding), b = operand_of(weight, dy, dx, rounding);
  if (!before_gelu) return Gemm::cuda(a, b, dx, /*alpha=*/1, /*beta=*/0, rounding);
  // With a result in bf16, cuBLASLt would round the sums, too.
  const bool is_bf16 = dx.dtype() == DType::bf16, with_sums = dbias && !is_bf16;
  const cuda::Epilogue finish = with_sums ? cuda::Epilogue::gelu_back_row_sums : cuda::Epilogue::gelu_back;
  if (multiply_fused(a, b, dx, finish, with_sums ? dbias : Tensor(), before_gelu, rounding)) {
    if (dbias && is_bf16) sum_rows(dx, dbias);
    return;
  }
  if (is_bf16) {
    const Tensor dx_f32 = empty_as(DType::f32, dx);
    cuda(dy, weight, copy_as(DType::f32, before_gelu), dx_f32, dbias, rounding);
    return Copy::cuda(dx_f32, dx);
  }
  const Tensor dgelu_output = empty_like(dx);
  Gemm::cuda(a, b, dgelu_output, /*alpha=*/1, /*beta=*/0, rounding);
  const Tensor& unused_gelu_output = before_gelu;  // GELU's derivative follows from its input
  MapBack<GeluTanh>::cuda(before_gelu, unused_gelu_output, dgelu_output, dx);
  if (dbias) sum_rows(dx, dbias);
}

/// dweight = dy^T x and dbias = the sum of dy over rows.
void LinearWeightBack::cuda(const Tensor& dy, const Tensor& x, const Tensor& dweight, const Tensor& dbias,
                            Rounding rounding) {
  const Tensor dy_transposed = view::transpose(dy, 0, 1);
  const Tensor a = operand_of(dy_transposed, dy_transposed, dweight, rounding),
               b = operand_of(x, dy_transposed, dweight, rounding);
  // cuBLASLt computes c' = b' a' in column-major order: its second operand b is our first one, dy^T.
  if (dbias && multiply_fused(a, b, dweight, cuda::Epilogue::column_sums_of_b, dbias, Tensor(), rounding))
    return;
  Gemm::cuda(a, b, dweight, /*alpha=*/1, /*beta=*/0, rounding);
  if (dbias) sum_rows(dy, dbias);
}

}  // namespace heed::kernel

// Linear layers on the GPU: one fused kernel of cuBLASLt where it has one, else a product, then bias and
// GELU.
#include "heed/core/kernels/gemm/linear.h"

#include "heed/core/cuda/runtime/blas_lt.h"
#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/kernels/gemm/gemm_device.h"
#include "heed/core/kernels/norm/reduce.h"

namespace heed::kernel {
namespace {

/// Computes c = a b with bias and GELU by one kernel; returns false and does nothing where cuBLASLt has none.
bool multiply_fused(const Tensor& a, const Tensor& b, const Tensor& c, cuda::Epilogue finish,
                    const Tensor& bias, const Tensor& before, Rounding rounding) {
  if (c.size() == 0 || a.extent(-1) == 0) return false;
  // The accuracy of cuBLASLt's tanh is not documented.
  if (before && rounding == Rounding::none) return false;
  const cuda::ProductWithEpilogue fused{.product = by_columns(a, b, c, 1, 0, rounding),
                                        .epilogue = finish,
                                        .bias = bias ? bias.raw() : nullptr,
                                        .before_gelu = before ? before.raw() : nullptr};
  if (!cuda::multiply(fused)) return false;
  note(fused.product);
  return true;
}

/// The operand x of a product that gives c, whose left operand is a: rounded to bf16 where the product is,
/// else x.
Tensor operand_of(const Tensor& x, const Tensor& a, const Tensor& c, Rounding rounding) {
  return in_bf16(a, c, rounding) && x.dtype() == DType::f32 ? to_bf16_with_strides(x) : x;
}

void sum_rows(const Tensor& x, const Tensor& to) { Sum::cuda(x, view::reshape(to, Shape{1, to.extent(0)})); }

Tensor copy_as(DType dtype, const Tensor& x) {
  if (!x || x.dtype() == dtype) return x;
  const Tensor made(x.shape(), dtype, x.device());
  Copy::cuda(x, made);
  return made;
}

Tensor empty_as(DType dtype, const Tensor& x) { return x ? Tensor(x.shape(), dtype, x.device()) : Tensor(); }

}  // namespace

/// y [N, out] = x weight^T + bias, or its GELU with `before` = x weight^T + bias: one kernel of cuBLASLt
/// where it has one; else the bias copied to all rows, a product added to it, and the GELU.
void Linear::cuda(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& before,
                  const Tensor& y, Rounding rounding) {
  const Tensor a = operand_of(x, x, y, rounding),
               b = view::transpose(operand_of(weight, x, y, rounding), 0, 1);
  if (bias || before) {
    const cuda::Epilogue finish = !before ? cuda::Epilogue::bias
                                  : bias  ? cuda::Epilogue::gelu_bias
                                          : cuda::Epilogue::gelu;
    // cuBLASLt takes the bias in the type of the result.
    if (multiply_fused(a, b, y, finish, copy_as(y.dtype(), bias), before, rounding)) return;
  }
  if (y.dtype() == DType::bf16) {  // there is no fused kernel: compute in f32, then round
    const Tensor before_f32 = empty_as(DType::f32, before), y_f32 = empty_as(DType::f32, y);
    cuda(x, weight, bias, before_f32, y_f32, rounding);
    if (before) Copy::cuda(before_f32, before);
    return Copy::cuda(y_f32, y);
  }
  const Tensor& to = before ? before : y;
  if (bias) Copy::cuda(view::expand(bias, to.shape()), to);
  Gemm::cuda(a, b, to, 1, bias ? 1 : 0, rounding);
  if (before) Map<GeluTanh>::cuda(before, y);
}

/// dx [N, in] = dy weight, times the derivative of GELU at `before` where that is given, with dbias = sum of
/// dx over rows: one kernel of cuBLASLt where it has one, else a product, MapBack and Sum.
void LinearBack::cuda(const Tensor& dy, const Tensor& weight, const Tensor& before, const Tensor& dx,
                      const Tensor& dbias, Rounding rounding) {
  const Tensor a = operand_of(dy, dy, dx, rounding), b = operand_of(weight, dy, dx, rounding);
  if (!before) return Gemm::cuda(a, b, dx, 1, 0, rounding);
  // cuBLASLt would round the sums with a result in bf16.
  const bool is_bf16 = dx.dtype() == DType::bf16, with_sums = dbias && !is_bf16;
  const cuda::Epilogue finish = with_sums ? cuda::Epilogue::gelu_back_row_sums : cuda::Epilogue::gelu_back;
  if (multiply_fused(a, b, dx, finish, with_sums ? dbias : Tensor(), before, rounding)) {
    if (dbias && is_bf16) sum_rows(dx, dbias);
    return;
  }
  if (is_bf16) {
    const Tensor dx_f32 = empty_as(DType::f32, dx);
    cuda(dy, weight, copy_as(DType::f32, before), dx_f32, dbias, rounding);
    return Copy::cuda(dx_f32, dx);
  }
  const Tensor dgelu = empty_like(dx);
  Gemm::cuda(a, b, dgelu, 1, 0, rounding);
  MapBack<GeluTanh>::cuda(before, before, dgelu, dx);
  if (dbias) sum_rows(dx, dbias);
}

void LinearWeightBack::cuda(const Tensor& dy, const Tensor& x, const Tensor& dweight, const Tensor& dbias,
                            Rounding rounding) {
  const Tensor dy_transposed = view::transpose(dy, 0, 1);
  const Tensor a = operand_of(dy_transposed, dy_transposed, dweight, rounding),
               b = operand_of(x, dy_transposed, dweight, rounding);
  // In column-major order the first operand is the second one.
  if (dbias && multiply_fused(a, b, dweight, cuda::Epilogue::column_sums_of_b, dbias, Tensor(), rounding))
    return;
  Gemm::cuda(a, b, dweight, 1, 0, rounding);
  if (dbias) sum_rows(dy, dbias);
}

}  // namespace heed::kernel

// Linear layers on the GPU: one fused kernel of cuBLASLt where it has one, else a product, then bias and
// GELU.
#include "heed/core/kernels/gemm/linear.h"

#include "heed/core/cuda/runtime/blas_lt.h"
#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/kernels/gemm/gemm_device.h"
#include "heed/core/kernels/norm/reduce.h"

namespace heed::kernel {
namespace {

/// c = a b with bias and GELU in one kernel; false, and nothing is done, where cuBLASLt has none.
bool finished(const Tensor& a, const Tensor& b, const Tensor& c, cuda::Finish finish, const Tensor& bias,
              const Tensor& before, Rounding rounding) {
  if (c.size() == 0 || a.extent(-1) == 0) return false;
  // How exact cuBLASLt's tanh is, nobody says.
  if (before && rounding == Rounding::none) return false;
  const cuda::FinishedProduct what{.product = by_columns(a, b, c, 1, 0, rounding),
                                   .finish = finish,
                                   .bias = bias ? bias.raw() : nullptr,
                                   .before = before ? before.raw() : nullptr};
  if (!cuda::multiply(what)) return false;
  note(what.product);
  return true;
}

/// The factors as the product that gives c reads them: rounded or as they are.
Tensor factor(const Tensor& x, const Tensor& a, const Tensor& c, Rounding rounding) {
  return in_bf16(a, c, rounding) && x.dtype() == DType::f32 ? rounded_as_it_lies(x) : x;
}

void sum_rows(const Tensor& x, const Tensor& to) { Sum::cuda(x, view::reshape(to, Shape{1, to.extent(0)})); }

Tensor copy_as(DType dtype, const Tensor& x) {
  if (!x || x.dtype() == dtype) return x;
  const Tensor made(x.shape(), dtype, x.device());
  Copy::cuda(x, made);
  return made;
}

Tensor blank_as(DType dtype, const Tensor& x) { return x ? Tensor(x.shape(), dtype, x.device()) : Tensor(); }

}  // namespace

/// y [N, out] = x weight^T + bias, or its GELU with `before` = x weight^T + bias: one kernel of cuBLASLt
/// where it has one; else the bias copied to all rows, a product added to it, and the GELU.
void Linear::cuda(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& before,
                  const Tensor& y, Rounding rounding) {
  const Tensor a = factor(x, x, y, rounding), b = view::transpose(factor(weight, x, y, rounding), 0, 1);
  if (bias || before) {
    const cuda::Finish finish = !before ? cuda::Finish::bias
                                : bias  ? cuda::Finish::gelu_bias
                                        : cuda::Finish::gelu;
    // What is added is of the type of the result.
    if (finished(a, b, y, finish, copy_as(y.dtype(), bias), before, rounding)) return;
  }
  if (y.dtype() == DType::bf16) {  // no kernel does it all: in f32, and then rounded
    const Tensor wide_before = blank_as(DType::f32, before), wide = blank_as(DType::f32, y);
    cuda(x, weight, bias, wide_before, wide, rounding);
    if (before) Copy::cuda(wide_before, before);
    return Copy::cuda(wide, y);
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
  const Tensor a = factor(dy, dy, dx, rounding), b = factor(weight, dy, dx, rounding);
  if (!before) return Gemm::cuda(a, b, dx, 1, 0, rounding);
  // Sums that come with a result in bf16 would be rounded like it.
  const bool narrow = dx.dtype() == DType::bf16, with_sums = dbias && !narrow;
  const cuda::Finish finish = with_sums ? cuda::Finish::gelu_back_sums : cuda::Finish::gelu_back;
  if (finished(a, b, dx, finish, with_sums ? dbias : Tensor(), before, rounding)) {
    if (dbias && narrow) sum_rows(dx, dbias);
    return;
  }
  if (narrow) {
    const Tensor wide = blank_as(DType::f32, dx);
    cuda(dy, weight, copy_as(DType::f32, before), wide, dbias, rounding);
    return Copy::cuda(wide, dx);
  }
  const Tensor slope = empty_like(dx);
  Gemm::cuda(a, b, slope, 1, 0, rounding);
  MapBack<GeluTanh>::cuda(before, before, slope, dx);
  if (dbias) sum_rows(dx, dbias);
}

void LinearWeightBack::cuda(const Tensor& dy, const Tensor& x, const Tensor& dweight, const Tensor& dbias,
                            Rounding rounding) {
  const Tensor turned = view::transpose(dy, 0, 1);
  const Tensor a = factor(turned, turned, dweight, rounding), b = factor(x, turned, dweight, rounding);
  // By columns the first factor is the second one.
  if (dbias && finished(a, b, dweight, cuda::Finish::sums_of_b, dbias, Tensor(), rounding)) return;
  Gemm::cuda(a, b, dweight, 1, 0, rounding);
  if (dbias) sum_rows(dy, dbias);
}

}  // namespace heed::kernel

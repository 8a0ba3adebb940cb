// Linear layers on the CPU: the matrix product with the bias, then the GELU.
#include "heed/core/kernels/gemm/linear.h"

#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/kernels/elementwise/dropout.h"
#include "heed/core/kernels/gemm/gemm.h"
#include "heed/core/kernels/gemm/gemm_rounded.h"
#include "heed/core/kernels/norm/reduce.h"
#include "heed/core/kernels/simd/simd.h"

namespace heed::kernel {
namespace {

/// row_sum [n] = sum over r of x[r, :].
void sum_rows(const Tensor& x, const Tensor& row_sum) {
  Sum::cpu<target_isa>(x, view::reshape(row_sum, Shape{1, row_sum.extent(0)}));
}

}  // namespace

/// y = x weight^T + bias, or its GELU. Where y is bf16, the sum with the bias is rounded once.
template <>
void Linear::cpu<target_isa>(const Tensor& x, const Tensor& weight, const Tensor& bias,
                             const Tensor& before_gelu, const Tensor& y, Rounding rounding) {
  const Tensor& product = before_gelu ? before_gelu : y;
  const Tensor factor = view::transpose(weight, 0, 1);
  if (bias && product.dtype() == DType::bf16) {
    if (product.size() > 0 && x.extent(-1) > 0 && rounds_by_instructions(x, product, rounding)) {
      bf16_tiles::rounded_product(x, factor, product, {1.0F, 0.0F}, bias);
    } else {
      const Tensor sum(product.shape());
      cpu<target_isa>(x, weight, bias, Tensor(), sum, rounding);
      Copy::cpu<target_isa>(sum, product);
    }
  } else {
    if (bias) Copy::cpu<target_isa>(view::expand(bias, product.shape()), product);
    Gemm::cpu<target_isa>(x, factor, product, /*alpha=*/1, /*beta=*/bias ? 1 : 0, rounding);
  }
  if (before_gelu) {
    const DropoutMask nothing;
    ActivationDropout<GeluTanh>::cpu<target_isa>(before_gelu, nothing, y);
  }
}

/// dx = dy weight, or the gradient dy weight GELU'(before_gelu) of before_gelu with dbias = its sum over
/// rows.
template <>
void LinearBack::cpu<target_isa>(const Tensor& dy, const Tensor& weight, const Tensor& before_gelu,
                                 const Tensor& dx, const Tensor& dbias, Rounding rounding) {
  if (!before_gelu) return Gemm::cpu<target_isa>(dy, weight, dx, /*alpha=*/1, /*beta=*/0, rounding);
  const Tensor dgelu_output = empty_like(dx);
  Gemm::cpu<target_isa>(dy, weight, dgelu_output, /*alpha=*/1, /*beta=*/0, rounding);
  const DropoutMask nothing;
  ActivationDropoutBack<GeluTanh>::cpu<target_isa>(before_gelu, dgelu_output, nothing, dx);
  if (dbias) sum_rows(dx, dbias);
}

/// dweight = dy^T x and dbias = the sum of dy over rows.
template <>
void LinearWeightBack::cpu<target_isa>(const Tensor& dy, const Tensor& x, const Tensor& dweight,
                                       const Tensor& dbias, Rounding rounding) {
  Gemm::cpu<target_isa>(view::transpose(dy, 0, 1), x, dweight, /*alpha=*/1, /*beta=*/0, rounding);
  if (dbias) sum_rows(dy, dbias);
}

}  // namespace heed::kernel

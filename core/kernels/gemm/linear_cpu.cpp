// Linear layers on the CPU: the product, then bias and GELU, one after the other.
#include "heed/core/kernels/gemm/linear.h"

#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/kernels/gemm/gemm.h"
#include "heed/core/kernels/norm/reduce.h"
#include "heed/core/kernels/simd/simd.h"

namespace heed::kernel {
namespace {

void sum_rows(const Tensor& x, const Tensor& to) {
  Sum::cpu<target_isa>(x, view::reshape(to, Shape{1, to.extent(0)}));
}

}  // namespace

template <>
void Linear::cpu<target_isa>(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& before,
                             const Tensor& y, Rounding rounding) {
  const Tensor& to = before ? before : y;
  if (bias) Copy::cpu<target_isa>(view::expand(bias, to.shape()), to);
  Gemm::cpu<target_isa>(x, view::transpose(weight, 0, 1), to, 1.0, bias ? 1.0 : 0.0, rounding);
  if (before) Map<GeluTanh>::cpu<target_isa>(before, y);
}

template <>
void LinearBack::cpu<target_isa>(const Tensor& dy, const Tensor& weight, const Tensor& before,
                                 const Tensor& dx, const Tensor& dbias, Rounding rounding) {
  if (!before) return Gemm::cpu<target_isa>(dy, weight, dx, 1.0, 0.0, rounding);
  const Tensor dgelu = empty_like(dx);
  Gemm::cpu<target_isa>(dy, weight, dgelu, 1.0, 0.0, rounding);
  MapBack<GeluTanh>::cpu<target_isa>(before, before, dgelu, dx);
  if (dbias) sum_rows(dx, dbias);
}

template <>
void LinearWeightBack::cpu<target_isa>(const Tensor& dy, const Tensor& x, const Tensor& dweight,
                                       const Tensor& dbias, Rounding rounding) {
  Gemm::cpu<target_isa>(view::transpose(dy, 0, 1), x, dweight, 1.0, 0.0, rounding);
  if (dbias) sum_rows(dy, dbias);
}

}  // namespace heed::kernel

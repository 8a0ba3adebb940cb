// Dispatch on the element types that the device's kernels know.
#pragma once

#include "heed/core/dtype.h"

namespace heed::cuda {

/// Calls f(Type<float>{}) or f(Type<double>{}). Fails for other types; `op` names the caller.
template <class F>
decltype(auto) visit_real(const char* op, DType dtype, F&& f) {
  return visit_float(op, dtype, static_cast<F&&>(f));
}
template <class F>
decltype(auto) visit_real(DType dtype, F&& f) {
  return visit_float("kernel", dtype, static_cast<F&&>(f));
}

/// What a kernel computes in for numbers stored as T: float for bf16, else T itself.
template <class T>
struct Computed {
  using type = T;
};
template <>
struct Computed<bf16> {
  using type = float;
};

/// The same with bf16 as storage; compute in Computed<T>.
template <class F>
decltype(auto) visit_stored(const char* op, DType dtype, F&& f) {
  if (dtype == DType::bf16) return f(Type<bf16>{});
  return visit_float(op, dtype, static_cast<F&&>(f));
}

}  // namespace heed::cuda

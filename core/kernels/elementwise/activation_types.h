// The types of activations: kernels compute in f32 where they are stored as bf16, and round when they store.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "heed/core/dtype.h"

namespace heed::kernel {

/// The type in which activations of type T are computed: float for bf16, else T.
template <class T>
using Computed = std::conditional_t<std::is_same_v<T, bf16>, float, T>;

/// visit() for the types of activations: f32, f64 and bf16. Fails for others; `op` names the caller.
template <class F>
void visit_activation(const char* op, DType dtype, F&& f) {
  if (dtype == DType::bf16) return f(Type<bf16>{});
  visit_float(op, dtype, f);
}

/// Numbers of `Computed<T>` that a buffer for `count` activations needs; none where T is computed in itself.
template <class T>
constexpr int64_t buffer_size(int64_t count) {
  return std::is_same_v<T, Computed<T>> ? 0 : count;
}

/// `count` activations in the type of computation: those at `from`, or copies in the buffer.
template <class T>
const Computed<T>* computed(const T* from, int64_t count, Computed<T>* buffer) {
  if constexpr (std::is_same_v<T, Computed<T>>) {
    return from;
  } else {
    std::copy_n(from, count, buffer);
    return buffer;
  }
}

/// Calls compute(out) with `to` itself, or with the buffer, whose `count` numbers are then rounded to `to`.
template <class T, class F>
void store_rounded(T* to, int64_t count, Computed<T>* buffer, F&& compute) {
  if constexpr (std::is_same_v<T, Computed<T>>) {
    compute(to);
  } else {
    compute(buffer);
    std::copy_n(buffer, count, to);
  }
}

}  // namespace heed::kernel

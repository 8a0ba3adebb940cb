// Calls a template with an argument that is known only at run time.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

namespace heed::kernel {

/// Calls f(std::integral_constant<int, n>{}) for 1 <= n <= max; larger n become max.
template <int max, class F>
decltype(auto) with_constant(int64_t n, F&& f) {
  if constexpr (max > 1) {
    if (n < max) return with_constant<max - 1>(n, std::forward<F>(f));
  }
  return f(std::integral_constant<int, max>{});
}

}  // namespace heed::kernel

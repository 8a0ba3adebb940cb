// What the arguments of a kernel say about its work: the bytes of its tensors, and the rounding of products.
#pragma once

#include <cstdint>
#include <ranges>
#include <type_traits>

#include "heed/core/matmul_precision.h"
#include "heed/core/tensor.h"

namespace heed {

/// Stands for a member of any type where the members of an aggregate are counted.
struct AnyMember {
  template <class T>
  operator T() const;  ///< a member of type T; declared for unevaluated expressions alone
};

/// Number of members of an aggregate without arrays.
template <class T, class... Members>
constexpr int count_members() {
  if constexpr (requires { T{Members{}..., AnyMember{}}; })
    return count_members<T, Members..., AnyMember>();
  else
    return static_cast<int>(sizeof...(Members));
}

/// Calls f once with all members of an aggregate that has 1 to 16 of them and no arrays.
template <class T, class F>
void with_members(const T& x, F&& f) {
  constexpr int count = count_members<T>();
  static_assert(count >= 1 && count <= 16, "with_members() knows 1 to 16 members: add a branch");
  if constexpr (count == 1) {
    const auto& [a] = x;
    f(a);
  } else if constexpr (count == 2) {
    const auto& [a, b] = x;
    f(a, b);
  } else if constexpr (count == 3) {
    const auto& [a, b, c] = x;
    f(a, b, c);
  } else if constexpr (count == 4) {
    const auto& [a, b, c, d] = x;
    f(a, b, c, d);
  } else if constexpr (count == 5) {
    const auto& [a, b, c, d, e] = x;
    f(a, b, c, d, e);
  } else if constexpr (count == 6) {
    const auto& [a, b, c, d, e, g] = x;
    f(a, b, c, d, e, g);
  } else if constexpr (count == 7) {
    const auto& [a, b, c, d, e, g, h] = x;
    f(a, b, c, d, e, g, h);
  } else if constexpr (count == 8) {
    const auto& [a, b, c, d, e, g, h, i] = x;
    f(a, b, c, d, e, g, h, i);
  } else if constexpr (count == 9) {
    const auto& [a, b, c, d, e, g, h, i, j] = x;
    f(a, b, c, d, e, g, h, i, j);
  } else if constexpr (count == 10) {
    const auto& [a, b, c, d, e, g, h, i, j, k] = x;
    f(a, b, c, d, e, g, h, i, j, k);
  } else if constexpr (count == 11) {
    const auto& [a, b, c, d, e, g, h, i, j, k, l] = x;
    f(a, b, c, d, e, g, h, i, j, k, l);
  } else if constexpr (count == 12) {
    const auto& [a, b, c, d, e, g, h, i, j, k, l, m] = x;
    f(a, b, c, d, e, g, h, i, j, k, l, m);
  } else if constexpr (count == 13) {
    const auto& [a, b, c, d, e, g, h, i, j, k, l, m, n] = x;
    f(a, b, c, d, e, g, h, i, j, k, l, m, n);
  } else if constexpr (count == 14) {
    const auto& [a, b, c, d, e, g, h, i, j, k, l, m, n, o] = x;
    f(a, b, c, d, e, g, h, i, j, k, l, m, n, o);
  } else if constexpr (count == 15) {
    const auto& [a, b, c, d, e, g, h, i, j, k, l, m, n, o, p] = x;
    f(a, b, c, d, e, g, h, i, j, k, l, m, n, o, p);
  } else {
    const auto& [a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q] = x;
    f(a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q);
  }
}

/// What the arguments of one call of a kernel say about its work.
struct KernelArguments {
  /// Bytes of all tensors among the arguments, in structs and ranges too. Each tensor counts once, with the
  /// elements that it has in memory: an axis of stride 0 counts as one index. So an output that is read as
  /// well (y += x) counts once, a table of which a kernel gathers some rows counts whole, and neither scratch
  /// memory nor the lists of a sparse pattern count.
  int64_t bytes = 0;
  Rounding rounding =
      Rounding::none;  ///< rounding of the factors of its products; none where it takes no Rounding

  KernelArguments() = default;  ///< stands for a kernel without arguments
  /// The sum over the arguments of launch().
  template <class... Args>
  static KernelArguments of(const Args&... args) {
    KernelArguments all;
    (all.add(args), ...);
    return all;
  }

 private:
  template <class T>
  void add(const T& x) {
    if constexpr (std::is_same_v<T, Tensor>) {
      bytes += bytes_in_memory(x);
    } else if constexpr (std::is_same_v<T, Rounding>) {
      rounding = x;
    } else if constexpr (std::ranges::range<T>) {
      for (const auto& element : x) add(element);
    } else if constexpr (std::is_aggregate_v<T> && !std::is_trivially_copyable_v<T>) {  // may hold tensors
      with_members(x, [this](const auto&... members) { (add(members), ...); });
    }
  }
  static int64_t bytes_in_memory(const Tensor& x);
};

}  // namespace heed

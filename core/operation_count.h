// Counts of the kernels' operations and of attention's pairs, for tests of declared costs; and a log of
// matrix products.
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <mutex>
#include <vector>

#include "heed/core/matmul_precision.h"
#include "heed/core/scope.h"

namespace heed {

/// Floating-point operations since the last reset: two for a multiply-add, one for an element of lighter ops.
struct Count {
  static std::atomic<int64_t>& flops();  ///< the one counter of the program
  /// Adds operations; kernels call it from any thread.
  static void add(int64_t flops) { Count::flops().fetch_add(flops, std::memory_order_relaxed); }
  static void reset() { flops().store(0); }  ///< begins a count at 0
};

/// Pairs of a query and a key that forward passes of dense and pattern attention computed since the last
/// reset, over all heads.
struct PairCount {
  static std::atomic<int64_t>& total();  ///< the one counter of the program
  /// Adds pairs; forward passes call it from any thread.
  static void add(int64_t pairs) { total().fetch_add(pairs, std::memory_order_relaxed); }
  static void reset() { total().store(0); }  ///< begins a count at 0
};

/// A product of matrices that a kernel computes: c [batch, m, n] = a [batch, m, k] b [batch, k, n].
struct Product {
  int64_t batch = 1;                                 ///< products of the same sizes
  int64_t m = 0;                                     ///< rows of a and c
  int64_t n = 0;                                     ///< columns of b and c
  int64_t k = 0;                                     ///< columns of a, rows of b
  bool a_transposed = false;                         ///< a is stored transposed
  bool b_transposed = false;                         ///< b is stored transposed
  bool accumulates = false;                          ///< adds to the previous c
  Rounding rounding = Rounding::none;                ///< rounding of the factors
  auto operator<=>(const Product&) const = default;  ///< any fixed order, for sorting equal products together
  int64_t flops() const { return 2 * batch * m * n * k; }  ///< two for each multiply-add
};

/// While it lives, kernels record their matrix products; `heed bench` repeats the products alone for a lower
/// bound of the time. Only one may live at a time.
class ProductLog : NonCopyable {
 public:
  ProductLog() { open() = this; }
  ~ProductLog() { open() = nullptr; }

  static bool wanted() { return open() != nullptr; }  ///< whether a log lives and kernels must note products
  /// Records a product with elements; does nothing while no log lives.
  static void note(const Product& product);
  const std::vector<Product>& list() const { return list_; }  ///< in the order of note()

 private:
  static std::atomic<ProductLog*>& open();
  std::mutex mutex_;
  std::vector<Product> list_;
};

}  // namespace heed

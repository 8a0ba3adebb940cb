// Counts of floating-point operations of the kernels, for tests of declared costs; and a log of matrix
// products.
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <mutex>
#include <vector>

#include "heed/core/matmul_precision.h"

namespace heed {

/// Operations since the last reset: two for a multiply-add, one for each element of anything lighter.
struct Count {
  static std::atomic<int64_t>& flops();  ///< one in the program, whichever kernels add to it
  /// Called by kernels, from any thread.
  static void add(int64_t flops) { Count::flops().fetch_add(flops, std::memory_order_relaxed); }
  static void reset() { flops().store(0); }  ///< begins a count at 0
};

/// A product of matrices that a kernel does: c [batch, m, n] = a [batch, m, k] b [batch, k, n].
struct Product {
  int64_t batch = 1;                                 ///< products of the same sizes
  int64_t m = 0;                                     ///< rows of a and c
  int64_t n = 0;                                     ///< columns of b and c
  int64_t k = 0;                                     ///< columns of a, rows of b
  bool a_turned = false;                             ///< a lies transposed in memory
  bool b_turned = false;                             ///< b lies transposed in memory
  bool added = false;                                ///< to what c held before
  Rounding rounding = Rounding::none;                ///< of the factors
  auto operator<=>(const Product&) const = default;  ///< any fixed order, for sorting equal products together
  int64_t flops() const { return 2 * batch * m * n * k; }  ///< two for each multiply-add
};

/// While it lives, kernels record their matrix products; `heed bench` replays those alone as a lower bound of
/// the time. Only one may live at a time.
class ProductLog {
 public:
  ProductLog() { open() = this; }
  ~ProductLog() { open() = nullptr; }
  ProductLog(const ProductLog&) = delete;
  ProductLog& operator=(const ProductLog&) = delete;

  static bool wanted() { return open() != nullptr; }  ///< a log lives, so a kernel must tell of its products
  /// Does nothing while no log lives; products without elements are left out.
  static void note(const Product& product);
  const std::vector<Product>& list() const { return list_; }  ///< in the order of note()

 private:
  static std::atomic<ProductLog*>& open();
  std::mutex mutex_;
  std::vector<Product> list_;
};

}  // namespace heed

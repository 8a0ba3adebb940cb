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
  static void add(int64_t flops) { Count::flops().fetch_add(flops, std::memory_order_relaxed); }
  static void reset() { flops().store(0); }
};

/// A product of matrices that a kernel does: c [batch, m, n] = a [batch, m, k] b [batch, k, n].
struct Product {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  bool a_turned = false, b_turned = false;  ///< lies transposed in memory
  bool added = false;                       ///< to what c held before
  Rounding rounding = Rounding::none;       ///< of the factors
  auto operator<=>(const Product&) const = default;
  int64_t flops() const { return 2 * batch * m * n * k; }
};

/// While it lives, kernels record their matrix products; `heed bench` replays those alone as a lower bound of
/// the time. Only one may live at a time.
class ProductLog {
 public:
  ProductLog() { open() = this; }
  ~ProductLog() { open() = nullptr; }
  ProductLog(const ProductLog&) = delete;
  ProductLog& operator=(const ProductLog&) = delete;

  static bool wanted() { return open() != nullptr; }
  /// Does nothing while no log lives; products without elements are left out.
  static void note(const Product& product);
  const std::vector<Product>& list() const { return list_; }

 private:
  static std::atomic<ProductLog*>& open();
  std::mutex mutex_;
  std::vector<Product> list_;
};

}  // namespace heed

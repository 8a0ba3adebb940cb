// Replays the matrix products of a training step alone.
#pragma once

#include <span>
#include <vector>

#include "heed/core/operation_count.h"
#include "heed/core/tensor.h"

namespace heed::bench {

/// Matrix products with operands in memory. Where a step has many small products, each thread repeats them on
/// operands of its own, which stay in its cache.
class ProductReplay {
 public:
  explicit ProductReplay(std::span<const Product> products);
  /// Computes all products once, in order: a lower bound for the time of their step.
  void once() const;

 private:
  /// A product, split into pieces that run in parallel. Each piece calls Gemm `num_calls` times on operands
  /// of its own.
  struct Replayed {
    struct Operands {
      Tensor a, b, c;
    };
    std::vector<Operands> pieces;
    double beta = 0;
    int64_t num_calls = 1;
    Rounding rounding = Rounding::none;
  };
  std::vector<Replayed> products_;
};

}  // namespace heed::bench

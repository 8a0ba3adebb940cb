// Replays the matrix products of a training step alone.
#pragma once

#include <span>
#include <vector>

#include "heed/core/operation_count.h"
#include "heed/core/tensor.h"

namespace heed::bench {

/// Products and their operands in memory. Each thread repeats many small products on operands of its own,
/// which stay in its cache.
class ProductReplay {
 public:
  explicit ProductReplay(std::span<const Product> products);
  /// Computes all of them once, in order, and nothing else: the lower bound of their step's time.
  void once() const;

 private:
  /// One call of Gemm, repeated `times` times by each piece on its own operands.
  struct Work {
    struct Operands {
      Tensor a, b, c;
    };
    std::vector<Operands> pieces;
    double beta = 0;
    int64_t times = 1;
    Rounding rounding = Rounding::none;
  };
  std::vector<Work> work_;
};

}  // namespace heed::bench

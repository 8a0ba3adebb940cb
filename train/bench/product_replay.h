// The products of a step, done alone.
#pragma once

#include <span>
#include <vector>

#include "core/count.h"
#include "core/tensor.h"

namespace heed::bench {

/// Products and the operands they are done on, which lie ready in memory; many small matrices take turns in
/// those of each thread, which stay in its cache.
class Replay {
 public:
  explicit Replay(std::span<const Product> products);
  /// All of them once, one after the other, and nothing else: the floor of the step they were noted in.
  void once() const;

 private:
  /// One call of Gemm, done `times` times by each of the pieces, which have operands of their own.
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

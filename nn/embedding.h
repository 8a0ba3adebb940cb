// Embedding: a table of vectors.
#pragma once

#include "autograd/ops.h"
#include "nn/init.h"
#include "nn/module.h"

namespace heed {

/// ids i32 [...] -> [..., width].
class Embedding final : public Module {
 public:
  /// `deviation` above 0: normal numbers with it instead of `init`.
  Embedding(int64_t vocabulary, int64_t width, Init init, Rng& rng, double deviation = 0)
      : weight(deviation > 0 ? normal_parameter(Shape{vocabulary, width}, deviation, rng)
                             : heed::weight(vocabulary, width, init, rng)) {}
  Tensor operator()(const Tensor& ids) const {
    const Within within(this);
    return embedding(weight, ids);
  }
  void fields(Fields& f) override { f("weight", weight); }

  Tensor weight;  ///< [vocabulary, width]
};

}  // namespace heed

// Embedding: a trained table of vectors, one per token id.
#pragma once

#include "heed/autograd/ops.h"
#include "heed/nn/init.h"
#include "heed/nn/module.h"

namespace heed {

/// Looks up rows of a table: ids i32 [...] -> [..., width].
class Embedding final : public Module {
 public:
  /// With `deviation` > 0, initial weights are normal with this standard deviation; otherwise as `init`.
  Embedding(int64_t vocabulary, int64_t width, Init init, Rng& rng, double deviation = 0)
      : weight(deviation > 0 ? normal_parameter(Shape{vocabulary, width}, deviation, rng)
                             : heed::init_weight(vocabulary, width, init, rng)) {}
  /// Fails for ids outside of 0 <= id < vocabulary.
  Tensor operator()(const Tensor& ids) const {
    const ModuleScope within(this);
    return embedding(weight, ids);
  }
  void fields(Fields& f) override { f("weight", weight); }

  Tensor weight;  ///< [vocabulary, width]
};

}  // namespace heed

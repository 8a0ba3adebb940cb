// Embedding: a trained table of vectors, one per token id.
#pragma once

#include "heed/autograd/ops.h"
#include "heed/nn/init.h"
#include "heed/nn/legal_values.h"
#include "heed/nn/module.h"

namespace heed {

/// Looks up rows of a table: ids i32 [...] -> [..., width].
class Embedding final : public Module {
 public:
  /// With `deviation` > 0, initial weights are normal with this standard deviation; otherwise as `init`.
  /// Fails for a vocabulary or width below 1, and for a negative deviation.
  Embedding(int64_t vocabulary, int64_t width, Init init, Rng& rng, double deviation = 0)
      : weight(table(at_least_one("Embedding: vocabulary", vocabulary),
                     at_least_one("Embedding: width", width), init, rng, deviation)) {}
  /// Fails for ids outside of 0 <= id < vocabulary.
  Tensor operator()(const Tensor& ids) const {
    const ModuleScope within(this);
    return embedding(weight, ids);
  }
  void fields(Fields& f) override { f("weight", weight); }

  Tensor weight;  ///< [vocabulary, width]

 private:
  static Tensor table(int64_t vocabulary, int64_t width, Init init, Rng& rng, double deviation) {
    if (!(deviation >= 0))
      fail("Embedding: deviation = ", deviation, ". It must be above 0, or 0 for that of the init.");
    return deviation > 0 ? normal_parameter(Shape{vocabulary, width}, deviation, rng)
                         : heed::init_weight(vocabulary, width, init, rng);
  }
};

}  // namespace heed

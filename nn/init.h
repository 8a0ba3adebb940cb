// Initial values of parameters.
#pragma once

#include "core/random.h"
#include "core/tensor.h"

namespace heed {

/// How weights start. `xavier`: uniform within sqrt(6 / (in + out)), Glorot and Bengio 2010. `normal`:
/// deviation 0.02, as GPT-2. `fan_in`: uniform within 1 / sqrt(in), what PyTorch's linear layers begin with.
enum class Init { xavier, normal, fan_in };

/// A leaf [out, in] started by `init`; `gain` multiplies its deviation.
Tensor weight(int64_t out, int64_t in, Init init, Rng& rng, double gain = 1);
/// A leaf of any shape, normal with the given deviation.
Tensor normal_parameter(const Shape& shape, double deviation, Rng& rng);
/// A leaf of any shape, uniform within +-bound.
Tensor uniform_parameter(const Shape& shape, double bound, Rng& rng);
/// A leaf filled with one value.
Tensor constant_parameter(const Shape& shape, double value);

}  // namespace heed

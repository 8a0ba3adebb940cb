// Initialisation of parameters.
#pragma once

#include "heed/core/random.h"
#include "heed/core/tensor.h"

namespace heed {

/// The distribution of initial weights. `xavier`: uniform within +-sqrt(6 / (in + out)), Glorot and Bengio
/// 2010. `normal`: standard deviation 0.02, as GPT-2. `fan_in`: uniform within +-1 / sqrt(in), weights and
/// biases, PyTorch's default for linear layers. `xavier_fan_in`: weights as xavier, biases as fan_in:
/// PyTorch's layers whose matrices a program has drawn again. The others start biases at zero.
enum class Init { xavier, normal, fan_in, xavier_fan_in };

/// While it lives, the parameters of normal_parameter() and uniform_parameter() keep in this thread what
/// their memory held before: for models whose weights are loaded at once, with load() or the like. The states
/// of generators are as if they were drawn.
class SkipInit {
 public:
  SkipInit() { ++num_live_; }
  ~SkipInit() { --num_live_; }
  SkipInit(const SkipInit&) = delete;
  SkipInit& operator=(const SkipInit&) = delete;
  static bool is_on() { return num_live_ > 0; }  ///< whether one lives in this thread

 private:
  static inline thread_local int num_live_ = 0;
};

/// A parameter [out, in] drawn from `init`; `gain` multiplies its standard deviation.
Tensor init_weight(int64_t out, int64_t in, Init init, Rng& rng, double gain = 1);
/// The bias [out] of a layer of `in` inputs: zeros, or drawn where `init` is fan_in or xavier_fan_in.
Tensor init_bias(int64_t out, int64_t in, Init init, Rng& rng);
/// A parameter of any shape, normal with mean 0 and the given standard deviation.
Tensor normal_parameter(const Shape& shape, double deviation, Rng& rng);
/// A parameter of any shape, uniform within +-bound.
Tensor uniform_parameter(const Shape& shape, double bound, Rng& rng);
/// A parameter of any shape, normal with deviation sqrt(2 / fan_in), for layers before ReLU (He et al. 2015,
/// arXiv 1502.01852). `fan_in`: the number of inputs of one output.
Tensor he_parameter(const Shape& shape, int64_t fan_in, Rng& rng);
/// A parameter of any shape, normal with mean 0, without the numbers beyond two deviations, which are drawn
/// again.
Tensor truncated_normal_parameter(const Shape& shape, double deviation, Rng& rng);
/// A parameter [out, in] whose rows, or columns where they are fewer, are orthogonal and of norm `gain` (Saxe
/// et al. 2014, arXiv 1312.6120).
Tensor orthogonal_parameter(int64_t out, int64_t in, Rng& rng, double gain = 1);
/// A parameter of any shape, filled with one value.
Tensor constant_parameter(const Shape& shape, double value);

}  // namespace heed

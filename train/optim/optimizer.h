// Optimizers over one flat arena.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "nn/module.h"

namespace heed {

enum class OptimizerKind { adamw, adam, sgd };

/// AdamW: Loshchilov and Hutter 2019, arXiv 1711.05101. Adam: Kingma and Ba 2015, arXiv 1412.6980.
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adamw;
  double beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9;
  double momentum = 0.9;  ///< of sgd
  double decay = 0;       ///< weight decay, on parameters of two or more axes
  double clip = 1;        ///< largest norm of the whole gradient; 0: none
  double clip_each = 0;   ///< elements of the gradient are cut to this, either sign; 0: none
  void fields(Fields& f);
};

/// Moves all parameters of a module into one storage and their gradients into another, decayed ones first, so
/// that clipping, updating, clearing and saving are each one pass. The module must outlive it and keep its
/// parameters.
class Optimizer {
 public:
  Optimizer(Module& module, const OptimizerOptions& options);

  /// Clips, updates and clears, with this learning rate. Nothing waits for the device. Where the gradient or
  /// one of `losses` is not finite, no parameter and no moment changes, and gradient_norm() is not finite.
  void step(double rate, std::span<const Tensor> losses = {});
  /// The same in three parts. What differs from step to step is put on the device first, so that the update
  /// between can be replayed.
  void begin_step(double rate);
  void update(std::span<const Tensor> losses = {});
  void end_step();
  /// Counts the last step() as not done: for one that met a gradient that is not finite.
  void forget_step() { --steps_; }
  /// As if no step had been taken: moments and count are 0, the parameters as they are.
  void reset();
  /// Forgets the gradients without using them.
  void clear();
  /// [1] in f64, on the device: the squared norm of the gradient that the last step() met, before clipping.
  Tensor squared_norm() const;
  /// Its root. Waits for the device.
  double gradient_norm() const;
  /// The norm of all parameters. Waits for the device.
  double value_norm() const;

  int64_t steps() const { return steps_; }
  int64_t size() const { return values_.size(); }
  const Tensor& values() const { return values_; }        ///< [n], every parameter
  const Tensor& gradients() const { return gradients_; }  ///< [n]

  /// Every parameter, sharing the arena, in its order.
  std::span<const Tensor> leaves() const { return leaves_; }
  /// The first so many elements of the arena are of matrices, which are decayed.
  int64_t decayed() const { return decayed_; }

  int64_t moment_bytes() const { return first_.bytes() + second_.bytes(); }

  /// Moments and step count as the bytes of a safetensors file.
  std::string save() const;
  /// Fails (Fault::data) when the file belongs to another model.
  void load(const std::string& bytes);

 private:
  OptimizerOptions options_;
  std::vector<Tensor> leaves_;                  // sharing the arena, in its order
  int64_t decayed_ = 0;                         // the first this many elements are decayed
  Tensor values_, gradients_, first_, second_;  // [n]
  Tensor state_;                                // f64 [3] on the device: rate, steps done, sum of squares
  int64_t steps_ = 0;
};

}  // namespace heed

// Optimizers over contiguous parameters.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/nn/module.h"

namespace heed {

/// The update rule.
enum class OptimizerKind { adamw, adam, sgd };

/// AdamW: Loshchilov and Hutter 2019, arXiv 1711.05101. Adam: Kingma and Ba 2015, arXiv 1412.6980. The
/// defaults are those of PyTorch, except that vectors do not decay. The presets of the program have values of
/// their own: see TrainOptions.
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adamw;  ///< update rule
  double beta1 = 0.9;                         ///< decay of the mean of gradients
  double beta2 = 0.999;                       ///< decay of the mean of squared gradients
  double epsilon = 1e-8;                      ///< added to the root of the second moment
  double momentum = 0.9;                      ///< momentum of SGD
  /// Weight decay of parameters with two or more axes; empty: 0.01 for adamw, 0 for the others.
  std::optional<double> weight_decay = {};
  bool decay_vectors = false;  ///< weight decay of parameters with one axis, too, such as biases and norms
  double grad_clip = 0;        ///< maximum norm of the whole gradient; 0: no clipping
  double grad_clip_value = 0;  ///< clips each element of the gradient to +-grad_clip_value; 0: no clipping
  void fields(Fields& f);      ///< names every field with its help: settings of [train]
  /// The weight decay in effect.
  double decay() const { return weight_decay.value_or(kind == OptimizerKind::adamw ? 0.01 : 0); }
};

/// Moves all parameters of a module into one contiguous tensor and their gradients into another, decayed ones
/// first, so that clipping, updating, clearing and saving are one pass each. The module must outlive the
/// optimizer and keep its parameters.
class Optimizer {
 public:
  Optimizer(Module& module, const OptimizerOptions& options);  ///< moves the parameters; moments begin at 0

  /// Clips gradients, updates parameters with learning rate `rate`, clears gradients. Does not wait for the
  /// device. If the gradient or one of `losses` is not finite, changes no parameter or moment, and
  /// gradient_norm() is not finite.
  void step(double rate, std::span<const Tensor> losses = {});
  /// Begins a step, as step() does: writes what changes from step to step to the device, so that a CUDA graph
  /// can replay update(). `momentum` replaces beta1, or the momentum of SGD, in this step; empty: that of the
  /// options.
  void begin_step(double rate, std::optional<double> momentum = {});
  /// Clips the gradients and updates the parameters, as step() does.
  void update(std::span<const Tensor> losses = {});
  void end_step();  ///< ends a step, as step() does: clears the gradients and counts the step
  /// Undoes the count of the last step(): for one whose gradient was not finite.
  void forget_step() { --steps_; }
  /// Resets moments and step count to 0; keeps the parameters.
  void reset();
  /// Clears the gradients without using them.
  void clear();
  /// [1] in f64, on the device: the squared norm of the last step()'s gradient, before clipping.
  Tensor squared_norm() const;
  /// The gradient's norm: root of squared_norm(). Waits for the device.
  double gradient_norm() const;
  /// The norm of all parameters. Waits for the device.
  double value_norm() const;

  int64_t steps() const { return steps_; }                ///< steps taken
  int64_t size() const { return values_.size(); }         ///< n: elements of all parameters
  const Tensor& values() const { return values_; }        ///< [n]: all parameters
  const Tensor& gradients() const { return gradients_; }  ///< [n]: all gradients

  /// All parameters, as views of values(), in its order.
  std::span<const Tensor> leaves() const { return leaves_; }
  /// The first elements of values() that get weight decay: those of matrices, or all.
  int64_t decayed() const { return decayed_; }

  /// Bytes of the first and second moments.
  int64_t moment_bytes() const { return first_.bytes() + second_.bytes(); }

  /// Moments and step count as a safetensors file.
  std::string save() const;
  /// Loads what save() wrote. Fault::data when the file belongs to another model.
  void load(const std::string& bytes);

 private:
  OptimizerOptions options_;
  std::vector<Tensor> leaves_;                  // views of values_, in its order
  int64_t decayed_ = 0;                         // elements with weight decay: the first ones
  Tensor values_, gradients_, first_, second_;  // [n]
  Tensor state_;  // f64 [4] on the device: rate, steps done, sum of squares, momentum
  int64_t steps_ = 0;
};

}  // namespace heed

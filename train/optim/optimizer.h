// Optimizers over contiguous parameters.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/nn/module.h"
#include "heed/train/optim/muon.h"
#include "heed/train/optim/parameter_groups.h"
#include "heed/train/optim/step_checks.h"

namespace heed {

/// The update rule. lion: Chen et al. 2023, arXiv 2302.06675. schedule_free: schedule-free AdamW, Defazio et
/// al. 2024, arXiv 2405.15682. muon: MuonOptions for matrices between hidden states, AdamW for all others.
enum class OptimizerKind { adamw, adam, sgd, lion, schedule_free, muon };
/// Names an update rule as settings do.
Choice choice_of(OptimizerKind& kind);

/// The reaction to a step whose loss or gradient is not finite: an error, or the step is left out.
enum class OnNan { stop, skip };

/// AdamW: Loshchilov and Hutter 2019, arXiv 1711.05101. Adam: Kingma and Ba 2015, arXiv 1412.6980. The
/// defaults are those of PyTorch, except that vectors do not decay. The presets of the program have values of
/// their own: see TrainOptions.
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adamw;  ///< update rule
  double beta1 = 0.9;                         ///< decay of the mean of gradients
  double beta2 = 0.999;                       ///< decay of the mean of squared gradients
  double epsilon = 1e-8;                      ///< added to the root of the second moment
  double momentum = 0.9;                      ///< momentum of SGD
  MuonOptions muon = {};                      ///< settings of OptimizerKind::muon
  /// Factor on the learning rate of hidden_matrices(): Muon's rate beside that of AdamW, or
  /// TransformerConfig::width_ratio() for AdamW.
  double hidden_rate = 1;
  /// Weight decay of parameters with two or more axes; empty: 0.01 for adamw, 0.1 for muon, 0 for the others.
  std::optional<double> weight_decay = {};
  bool decay_vectors = false;  ///< weight decay of parameters with one axis, too, such as biases and norms
  double grad_clip = 0;        ///< maximum norm of the whole gradient; 0: no clipping
  double grad_clip_value = 0;  ///< clips each element of the gradient to +-grad_clip_value; 0: no clipping
  double ema = 0;              ///< decay of the moving average of weights that is kept beside them; 0: none
  std::vector<ParameterGroup> groups =
      {};  ///< parameters with a decay or rate of their own; clipped with all
  /// What step() does with a gradient that is not finite. fit() and the trainer have their own
  /// FitOptions::on_nan and TrainOptions::on_nan, and do not read this.
  OnNan on_nan = OnNan::stop;
  void fields(Fields& f);  ///< names every field with its help: settings of [train]
  void check() const;      ///< fails at a number out of its range
  /// The weight decay in effect.
  double decay() const {
    return weight_decay.value_or(kind == OptimizerKind::adamw ? 0.01 : kind == OptimizerKind::muon ? 0.1 : 0);
  }
};

/// Moves all parameters of a module into one contiguous tensor and their gradients into another: the matrices
/// of Muon, then those without a group, of these the decayed ones first, then the groups. Clipping, clearing
/// and saving are one pass each, and updating is one for each decay and rate. The module must keep its
/// parameters while the optimizer lives.
class Optimizer : NonCopyable {
 public:
  /// Moves the parameters; moments begin at 0. Freezes those of frozen groups: freeze(). Fails for options
  /// out of range, where another optimizer has a parameter already, for a group that chooses none, and where
  /// fields() gives two tensors or children one name.
  Optimizer(Module& module, const OptimizerOptions& options);
  ~Optimizer();  ///< gives the parameters free for another optimizer

  /// Clips gradients, updates parameters with learning rate `rate`, clears gradients: the step of a training
  /// loop of one's own. If the gradient or one of `losses` is not finite, changes no parameter or moment, and
  /// gradient_norm() is not finite; with OnNan::stop it fails then (Fault::numeric), naming the parameter. On
  /// a GPU it looks at one step in 16, since it waits for the device then. Fails where a parameter was
  /// replaced after the optimizer was made, for a rate below 0 and while an AveragedWeights lives; warns of
  /// other mistakes: see StepChecks.
  void step(double rate, std::span<const Tensor> losses = {});
  /// Begins a step, as step() does: writes what changes from step to step to the device, so that a CUDA graph
  /// can replay update(). `momentum` replaces beta1, or the momentum of SGD, in this step; empty: that of the
  /// options. Muon's momentum stays.
  void begin_step(double rate, std::optional<double> momentum = {});
  /// Clips the gradients and updates the parameters, as step() does.
  void update(std::span<const Tensor> losses = {});
  void end_step();  ///< ends a step, as step() does: clears the gradients and counts the step
  /// Undoes the count of the last step(): for one whose gradient was not finite.
  void forget_step();
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
  /// [n]: the moving average of values(), as torch.optim.swa_utils has it: a copy after the first step, then
  /// ema average + (1 - ema) values after each. With schedule_free the mean x of that method. Else empty.
  const Tensor& average() const { return average_; }
  /// The first elements of values(): the matrices that Muon updates.
  int64_t orthogonalized() const { return orthogonalized_; }
  /// The first elements of values(): those of orthogonalized() and the matrices without a group, or with
  /// decay_vectors all parameters without one.
  int64_t decayed() const { return decayed_; }
  /// The model gets the averaged weights, and average() the others; twice changes nothing, and so does a call
  /// before the first step. See AveragedWeights.
  void swap_average();
  /// Fails where a parameter of `module` is not the one that this optimizer updates: it was replaced, or
  /// added, after the optimizer was made. The trainer calls it before its first step.
  void check_updates(Module& module) const;

  /// Bytes of the first and second moments, and of Muon's buffers.
  int64_t moment_bytes() const { return first_.bytes() + second_.bytes() + newton_schulz_.bytes(); }

  /// Moments and step count as a safetensors file.
  std::string save() const;
  /// Loads what save() wrote. Fault::data when the file belongs to another model.
  void load(const std::string& bytes);

 private:
  /// Adjacent elements of values_ that are updated alike.
  struct Range {
    int64_t begin, end;
    double decay;
    size_t state;  // index in states_
  };
  /// What the numbers of states_ depend on besides the step.
  struct StateKey {
    double rate;   // factor on the learning rate
    bool is_muon;  // the momentum is Muon's
    bool operator==(const StateKey&) const = default;
  };
  void add_range(int64_t begin, int64_t end, double decay, const StateKey& key);
  /// Notes a matrix that Muon updates, at the end of the last range.
  void add_matrix(int64_t begin, const Tensor& matrix);
  void move(Module& module, const std::vector<const Named*>& parameters);
  /// Marks the gradients as ones of an earlier step.
  void forget_gradients();
  /// Writes the squared norm of the gradient, and whether `losses` are finite, to squared_norm().
  void measure(std::span<const Tensor> losses);
  /// Clips the gradients and updates the parameters, after measure().
  void apply();
  void update(const Range& range);
  /// Updates the matrices of a range by Muon.
  void update_matrices(const Range& range);
  /// The share of this step's z in schedule-free AdamW's average, for a step with this learning rate.
  double schedule_free_share(double rate);
  /// Fails where measure() has found a number that is not finite.
  void check_finite(double rate);

  OptimizerOptions options_;
  std::vector<Tensor> leaves_;      // views of values_, in its order
  std::vector<std::string> names_;  // dotted names of leaves_
  StepChecks checks_;
  bool has_average_in_place_ = false;  // the moving average is in the model, and average_ has the weights
  int64_t decayed_ = 0;                // see decayed()
  int64_t orthogonalized_ = 0;         // see orthogonalized()
  std::vector<Range> ranges_;
  std::vector<MatrixRun> matrices_;  // cover the ranges of Muon
  NewtonSchulz newton_schulz_;
  // [n]. first_: means of gradients, velocities, or z of schedule-free AdamW. second_ begins behind Muon's
  // matrices.
  Tensor values_, gradients_, first_, second_, average_;
  // For each of state_keys_ f64 [5] on the device: rate, steps done, sum of squares of the whole gradient,
  // momentum, share of schedule-free AdamW. The first is without a factor.
  std::vector<Tensor> states_;
  std::vector<StateKey> state_keys_;
  int64_t layout_ = 0;  // a hash of which parameters lie where; 0 for adamw, adam and sgd in one group
  int64_t steps_ = 0;
  // Schedule-free AdamW weights its average by the square of the largest rate so far: their sum, that rate.
  struct RateHistory {
    double sum = 0, max = 0;
  };
  RateHistory rates_, rates_before_;  // after the last step, and before it
};

/// While one lives, the model has the averaged weights, for scoring it; nothing without
/// OptimizerOptions::ema, unless the kind is schedule_free.
class AveragedWeights : NonCopyable {
 public:
  /// The optimizer must outlive it, and take no step meanwhile.
  explicit AveragedWeights(Optimizer& optimizer) : optimizer_(optimizer) { optimizer_.swap_average(); }
  ~AveragedWeights() { optimizer_.swap_average(); }

 private:
  Optimizer& optimizer_;
};

}  // namespace heed

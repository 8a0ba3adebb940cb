// Estimates memory and time of a run by computing some of its batches before it begins.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "heed/core/io/json.h"
#include "heed/train/config/config.h"
#include "heed/train/optim/optimizer.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// Expected memory of a run in bytes and time in seconds.
struct Estimate {
  int64_t parameters = 0;   ///< number of trained elements
  int64_t weights = 0;      ///< bytes of parameters and buffers
  int64_t gradients = 0;    ///< bytes of the gradients
  int64_t moments = 0;      ///< bytes of the optimizer's moments
  int64_t activations = 0;  ///< bytes alive between forward and backward of the largest batch
  std::vector<std::pair<std::string, int64_t>> users;  ///< modules with most activations, the largest first
  int64_t tensors = 0;                                 ///< peak bytes of all tensors
  int64_t now = 0;                                     ///< bytes of the process before the first step
  int64_t peak = 0;                                    ///< expected peak bytes of the process
  double flops = 0;                                    ///< FLOPs of a typical step
  double step_seconds = 0;                             ///< seconds of a typical step
  double seconds = 0;                                  ///< seconds of all steps
  int64_t validations = 0;                             ///< number of validations of the run
  double validation_seconds = 0;                       ///< seconds of one validation
  double test_seconds = 0;                             ///< seconds of scoring the test split once
  int64_t tests = 1;                                   ///< how often the test split is scored
  double report_seconds = 0;                           ///< seconds of the report
  /// Seconds after the last step and its validation.
  double after_steps() const { return static_cast<double>(tests) * test_seconds + report_seconds; }
  /// Seconds of the whole run, from its first step to its report.
  double whole() const {
    return seconds + static_cast<double>(validations) * validation_seconds + after_steps();
  }
};

/// Estimates a run before its first step, by computing the largest batches that it has planned and samples of
/// its validation. Restores random numbers, gradients and optimizer; leaves the task planned for any epoch.
/// Fault::memory, which names the largest users, where the run does not fit.
Estimate estimate_run(const Config& config, Module& model, Optimizer& optimizer, Rng& rng, int64_t steps,
                      const BatchShard& shard = {});

/// Estimates a run that has no model yet. The task must be loaded.
Estimate estimate_run(const Config& config);
/// Number of steps from one validation to the next: train.validate_every, or those of an epoch of so many
/// batches with train.validate_each_epoch, or a tenth of the run.
int64_t validate_every(const TrainOptions& options, int64_t steps, int64_t batches);
/// Number of steps of a run: train.max_steps, or those of train.epochs epochs of so many batches.
int64_t steps_of(const TrainOptions& options, int64_t batches);
/// Number of steps of the run of a config. The task must be loaded.
int64_t steps_of(const Config& config);

/// " on the GPU" where that is the default device, else nothing.
std::string place_of_tensors();
/// The estimate of the remaining steps and validations, once `taken` of `steps` steps are taken, with a
/// validation every `every` steps.
Estimate remaining_estimate(Estimate whole, int64_t steps, int64_t taken, int64_t every);
/// The estimate as lines of a label and a text: parameters, a step, memory, time. `steps` is the number of
/// all steps of the run, or with `is_rest` of the remaining ones.
std::vector<std::pair<std::string, std::string>> estimate_lines(const Estimate& estimate, int64_t steps,
                                                                bool is_rest = false);

/// The estimate as JSON, for the manifest.
Json estimate_json(const Estimate& estimate);
/// Measured memory and time before the test is scored, and the relative error of the estimate, for the
/// manifest.
Json measured_cost_json(const Estimate& estimate, double step_seconds, double validation_seconds);
/// Sets the seconds of steps, of validations and of the work after the last step (0: not done yet) in the
/// result of measured_cost_json(), and the relative error of their estimate.
void set_measured_times(Json& measured, const Estimate& estimate, double step_seconds,
                        double validation_seconds, double test_seconds);

/// A measured value as text, formatted by words(), with the estimate where that was off by more than a fifth:
/// "1:09 (the estimate was 4:17)". `off` is the relative error of the estimate; -1 where there was none.
std::string with_estimate(double measured, double off, const std::function<std::string(double)>& words);

/// Called inside a catch block: rethrows the exception. Where memory ran out, it throws an Error that also
/// says when, which modules held how much, and which settings would need less. `model` may be null.
[[noreturn]] void explain_memory(const Config& config, Module* model, const std::string& when);

}  // namespace heed

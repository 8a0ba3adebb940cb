// What a run will take, measured before it begins on its largest batches.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "heed/core/io/json.h"
#include "heed/train/optim/optimizer.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// What a run is expected to take. Bytes and seconds.
struct Estimate {
  int64_t parameters = 0;   ///< number of trained elements
  int64_t weights = 0;      ///< of parameters and buffers
  int64_t gradients = 0;    ///< of all parameters
  int64_t moments = 0;      ///< of the optimizer's moments
  int64_t activations = 0;  ///< alive between forward and backward of the largest batch
  std::vector<std::pair<std::string, int64_t>> users;  ///< of the activations, the largest first
  int64_t tensors = 0;                                 ///< peak of all tensors
  int64_t now = 0;                                     ///< of the process, before the first step
  int64_t peak = 0;                                    ///< of the process, expected
  double flops = 0;                                    ///< of a typical step
  double step_seconds = 0;                             ///< of a typical step
  double seconds = 0;                                  ///< of all steps
  int64_t validations = 0;                             ///< in the whole run
  double validation_seconds = 0;                       ///< of one
  double test_seconds = 0;                             ///< of scoring the test split once
  int64_t tests = 1;                                   ///< times that it is scored
  double report_seconds = 0;                           ///< of the report
  /// Seconds after the last step and its validation.
  double after_steps() const { return static_cast<double>(tests) * test_seconds + report_seconds; }
  /// Seconds of the whole run, from its first step to its report.
  double whole() const {
    return seconds + static_cast<double>(validations) * validation_seconds + after_steps();
  }
};

/// Computes the largest batches the run has planned, and what validation needs, as the run will; then puts
/// the random numbers, the gradients and the optimizer (which has taken no step yet) back to where they were.
/// The task's plan is left on some epoch. Fails (Fault::memory) naming who holds how much when it does not
/// fit.
Estimate estimate_run(const Config& config, Module& model, Optimizer& optimizer, Rng& rng, int64_t steps,
                      const BatchShard& shard = {});

/// The same for a run that has not been made: loads nothing, so the task is loaded.
Estimate estimate_run(const Config& config);
/// Steps from one validation to the next: train.validate_every, or a pass over so many batches with
/// train.validate_each_epoch, or a tenth of the run.
int64_t validate_every(const TrainOptions& options, int64_t steps, int64_t batches);
/// How many steps a run takes: train.max_steps, or as many as train.epochs has of so many batches each.
int64_t steps_of(const TrainOptions& options, int64_t batches);
/// The same of the epochs as they are. Loads nothing, so the task is loaded.
int64_t steps_of(const Config& config);

/// " on the GPU" where that is the default device, else nothing.
std::string place_of_tensors();
/// The estimate of the steps and validations left, once `taken` of `steps` steps are taken, with a validation
/// every `every` steps.
Estimate rest_of(Estimate whole, int64_t steps, int64_t taken, int64_t every);
/// Labels and words: parameters, a step, memory, time. `steps`: those that the estimate is of, which are what
/// is left of a run or all of it.
std::vector<std::pair<std::string, std::string>> words_of(const Estimate& estimate, int64_t steps,
                                                          bool is_rest = false);

/// The estimate beside what was measured, for the manifest.
Json estimate_facts(const Estimate& estimate);
/// Measured memory and time until the test is scored, and how far the estimate was off, for the manifest.
Json took_facts(const Estimate& estimate, double step_seconds, double validation_seconds);
/// Sets the seconds of steps, of validations and of what came after the last step (0: nothing yet), and how
/// far the estimate of just these was off.
void set_time_facts(Json& took, const Estimate& estimate, double step_seconds, double validation_seconds,
                    double test_seconds);

/// A measured value as `words` puts it, and the estimate where it was off by more than a fifth: "1:09 (the
/// estimate was 4:17)". `off` as took_facts() has it: -1 where there was none.
std::string beside_estimate(double measured, double off, const std::function<std::string(double)>& words);

/// `model` may be null. Inside a catch block for any exception: rethrows it; where memory ran out, as an
/// Error that also says when, who held how much, and what would help.
[[noreturn]] void explain_memory(const Config& config, Module* model, const std::string& when);

}  // namespace heed

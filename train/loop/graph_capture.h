// Training steps captured as CUDA graphs, which later steps on batches of equal shapes replay.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "heed/core/distributed/process_group.h"
#include "heed/nn/module.h"
#include "heed/train/loop/step_batches.h"
#include "heed/train/optim/optimizer.h"

namespace heed {

namespace cuda {
class Graph;
}

/// Properties of a step that CapturedStep needs besides its function.
struct CapturedStepHooks {
  /// Returns the tensors that must keep their memory, such as parameters and buffers: a step that moves one
  /// cannot be replayed.
  std::function<std::vector<Tensor*>()> fixed_tensors = {};
  /// Called after a capture that failed: restores the host's state from before the step.
  std::function<void()> undo = {};
  /// Set where several processes capture the same step: returns to each of them the first reason why one
  /// cannot replay it, or an empty text. Collective: every process must call it.
  std::function<std::string(const std::string& why_not)> agree = {};
};

/// Runs a step op by op twice, captures the third run as one CUDA graph, and then replays the graph. Data
/// that changes from step to step must lie in device memory at fixed addresses. Steps run op by op on the
/// CPU, and where the capture fails; why_not() gives the reason. A captured step has memory of its own: where
/// that does not fit, or other work needs it, steps run op by op, too.
class CapturedStep {
 public:
  /// `step` reads from device memory what changes between steps; members of `hooks` may be empty.
  explicit CapturedStep(std::function<void()> step, CapturedStepHooks hooks = {});
  ~CapturedStep();
  CapturedStep(const CapturedStep&) = delete;
  CapturedStep& operator=(const CapturedStep&) = delete;

  /// Runs the step.
  void operator()();

  bool replays() const { return graph_ != nullptr; }  ///< true once the step is captured
  /// Why every step runs op by op; empty while that is not known, and where it is replayed.
  const std::string& why_not() const { return why_not_; }
  /// Number of kernels, copies and fills of the captured step.
  int64_t kernels() const;

 private:
  /// Captures one run of the step, or sets why_not_.
  void record();

  std::function<void()> step_;
  CapturedStepHooks hooks_;
  std::unique_ptr<cuda::Graph> graph_;
  std::string why_not_;
  int runs_ = 0;
};

/// Runs steps whose batches differ. Steps on batches of equal shapes read the same tensors, into which each
/// step's batches are copied, so that one captured graph serves all of them.
class CapturedStepCache {
 public:
  /// `step` computes forward, backward and update of its batches, with random numbers of `rng`. The processes
  /// of a group capture the same steps.
  CapturedStepCache(std::function<void(StepBatches&)> step, Module& model, Optimizer& optimizer, Rng& rng,
                    ProcessGroup& group);
  CapturedStepCache(const CapturedStepCache&) = delete;
  CapturedStepCache& operator=(const CapturedStepCache&) = delete;

  /// Runs a step, captured or replayed where possible; `batches` then holds the tensors that it read.
  void replay(StepBatches& batches);
  /// Runs a step op by op.
  void run(StepBatches& batches);

  /// Number of steps that were replayed.
  int64_t replayed() const { return replayed_; }
  /// Why some steps are not replayed although the device could; empty where that has not happened.
  const std::string& why_not() const { return why_not_; }

 private:
  /// Steps on batches of the same shapes, in tensors that stay where they are.
  struct ShapeSteps {
    StepBatches batches;
    std::unique_ptr<CapturedStep> captured;
    int64_t draws = 0;  // number of random numbers drawn in this tick before the step
  };

  /// Shapes and types of the batches, and all else that is a constant of a captured step; of all processes.
  std::string key_of(StepBatches& batches) const;
  /// The steps for batches of these shapes, with the batches copied into their tensors; null where there are
  /// too many shapes, or where batches are not held.
  ShapeSteps* find(StepBatches& batches);
  /// Sets up the steps of a new shape with their first batches.
  void begin(ShapeSteps& steps, StepBatches& batches);

  std::function<void(StepBatches&)> step_;
  Module& model_;
  Optimizer& optimizer_;
  Rng& rng_;
  ProcessGroup& group_;
  std::map<std::string, ShapeSteps> shapes_;
  int64_t replayed_ = 0;
  std::string why_not_;
};

/// Whether steps on this device are replayed at all: on CUDA, unless the environment variable HEED_REPLAY is
/// "off", which helps to find a mistake.
bool capture_wanted();

/// Whether an environment variable is unset or "on". A usage error for a value other than "on" and "off".
bool is_switched_on(const char* variable);

}  // namespace heed

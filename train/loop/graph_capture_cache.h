// Captured steps by the shapes of their batches: what training and benchmarks replay.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "heed/core/distributed/process_group.h"
#include "heed/nn/module.h"
#include "heed/train/loop/gradient_accumulation.h"
#include "heed/train/loop/graph_capture.h"
#include "heed/train/optim/optimizer.h"

namespace heed {

/// Takes steps whose batches differ from step to step. Steps on batches of the same shapes read the same
/// tensors, into which each step's numbers are copied, so that one recording serves all of them.
class CapturedStepCache {
 public:
  /// Forward, backward and update of these batches, with random numbers of `rng`. The processes of a group
  /// record the same steps.
  CapturedStepCache(std::function<void(StepBatches&)> step, Module& model, Optimizer& optimizer, Rng& rng,
                    ProcessGroup& group);
  CapturedStepCache(const CapturedStepCache&) = delete;
  CapturedStepCache& operator=(const CapturedStepCache&) = delete;

  /// Takes a step, recorded or replayed where that can be; `batches` then holds what it was computed on.
  void replay(StepBatches& batches);
  /// Takes a step op by op.
  void run(StepBatches& batches);

  /// Steps that were replayed.
  int64_t replayed() const { return replayed_; }
  /// Why some steps are not replayed though this device could; empty where that has not happened.
  const std::string& why_not() const { return why_not_; }

 private:
  /// Steps on batches of the same shapes, in tensors that stay where they are.
  struct ShapeSteps {
    StepBatches batches;
    std::unique_ptr<CapturedStep> captured;
    int64_t draws = 0;  // where the random numbers stood before the step
  };

  std::string key_of(StepBatches& batches) const;
  /// Those of these batches, which now lie in its tensors; null where no more are kept.
  ShapeSteps* find(StepBatches& batches);
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

}  // namespace heed

// Replay: a step that is recorded once and done again as one piece.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "heed/core/tensor.h"

namespace heed {

namespace cuda {
class Graph;
}

/// What a CapturedStep must know of the step besides how to take it.
struct CapturedStepHooks {
  /// Tensors that the step must leave where they are, such as parameters and buffers: a step that moves one
  /// cannot be replayed.
  std::function<std::vector<Tensor*>()> kept = {};
  /// Puts the host's state back to before the step, after it was recorded in vain.
  std::function<void()> undo = {};
  /// Where other processes record the same step: gives all of them the first reason why one cannot replay
  /// it, or none. They meet in it, and meet only if all replay it or none.
  std::function<std::string(const std::string& why_not)> agreed = {};
};

/// Runs a step as it is, twice; records the third run as one CUDA graph; replays it ever after. What changes
/// from step to step must lie in device memory at fixed addresses. On the CPU it just runs; so it does where
/// a step cannot be recorded, and then why_not() says why. Recorded, a step has memory of its own: where that
/// does not fit, or other work needs it, steps run as they are.
class CapturedStep {
 public:
  /// `step` reads what changes from device memory; `hooks` may be empty.
  explicit CapturedStep(std::function<void()> step, CapturedStepHooks hooks = {});
  ~CapturedStep();
  CapturedStep(const CapturedStep&) = delete;
  CapturedStep& operator=(const CapturedStep&) = delete;

  /// Takes a step.
  void operator()();

  bool replays() const { return graph_ != nullptr; }  ///< true once the step is recorded
  /// Why every step runs as it is; empty while that is not known, and where it is replayed.
  const std::string& why_not() const { return why_not_; }
  /// Kernels, copies and fills of the recorded step.
  int64_t kernels() const;

 private:
  void record();

  std::function<void()> step_;
  CapturedStepHooks hooks_;
  std::unique_ptr<cuda::Graph> graph_;
  std::string why_not_;
  int runs_ = 0;
};

/// Whether steps on this device are replayed at all: on CUDA, unless the environment variable HEED_REPLAY is
/// "off", as it is for looking for a mistake.
bool capture_wanted();

}  // namespace heed

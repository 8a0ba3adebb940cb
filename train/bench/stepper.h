// Training steps of a workload, one after the other.
#pragma once

#include <string>

#include "heed/train/bench/workload.h"
#include "heed/train/loop/graph_capture.h"

namespace heed::bench {

/// Training steps of a workload as in `heed train`: forward, backward and update, captured and replayed as
/// CUDA graphs where possible. The workload must outlive it.
class Stepper {
 public:
  explicit Stepper(Workload& work);

  void operator()(int64_t step);  ///< takes a step on batch `step`
  /// Takes a step op by op, so that the kernels' operation counts are counted.
  void run_eagerly(int64_t step);

  /// Steps of one shape before the first replay; memory is constant after them.
  static int64_t warm_up() { return capture_wanted() ? 4 : 2; }
  /// Why steps are not replayed on a GPU; empty where they are.
  std::string why_not_replayed() const {
    return capture_wanted() ? captured_.why_not() : "HEED_REPLAY is off";
  }

 private:
  void begin();
  void forward_backward(const Batch& batch);
  void end();

  Workload& work_;
  Optimizer optimizer_;
  Rng rng_;
  CapturedStepCache captured_;
};

}  // namespace heed::bench

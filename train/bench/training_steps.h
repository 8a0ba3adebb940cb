// Training steps of a workload as in `heed train`.
#pragma once

#include <string>

#include "heed/train/bench/workload.h"
#include "heed/train/loop/graph_capture_cache.h"

namespace heed::bench {

/// Forward, backward and update; captured and replayed as CUDA graphs where possible.
class Stepper {
 public:
  explicit Stepper(Workload& work);
  void operator()(int64_t step);
  /// The same without replay, so that the kernels' operation counts are counted.
  void as_it_is(int64_t step);

  /// Steps of one shape before the first replay; memory is constant after them.
  static int64_t warm_up();
  /// Why steps are not replayed on a GPU; empty where they are.
  std::string why_not_replayed() const;

 private:
  void forward_backward(const Batch& batch);
  void begin();
  void end();

  Workload& work_;
  Optimizer optimizer_;
  Rng rng_;
  CapturedStepCache captured_;
};

}  // namespace heed::bench

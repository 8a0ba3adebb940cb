// Training steps of a workload, one after the other.
#pragma once

#include <memory>
#include <string>

#include "heed/train/bench/workload.h"
#include "heed/train/loop/graph_capture.h"
#include "heed/train/loop/prefetch.h"

namespace heed::bench {

/// Training steps of a workload as in `heed train`: forward, backward and update, captured and replayed as
/// CUDA graphs where possible. On a GPU batches are made and copied while earlier steps run. The workload
/// must outlive it.
class Stepper {
 public:
  explicit Stepper(Workload& work);

  void operator()();  ///< takes a step on the next batch, from batch 0 on
  /// Takes a step op by op on batch `step`, so that the kernels' operation counts are counted.
  void run_eagerly(int64_t step);

  /// Steps of one shape before the first replay; memory is constant after them.
  static int64_t warm_up() { return capture_wanted() ? 4 : 2; }
  /// Why steps are not replayed on a GPU; empty where they are.
  std::string why_not_replayed() const {
    return capture_wanted() ? captured_.why_not() : "HEED_REPLAY is off";
  }

 private:
  /// Makes the next batch, or takes it from Prefetch where that is wanted.
  StepBatches next_batch();
  void begin();
  void forward_backward(const Batch& batch);
  void end();

  Workload& work_;
  Optimizer optimizer_;
  Rng rng_;
  CapturedStepCache captured_;
  int64_t next_ = 0;                    // the number of the next batch, where there is no prefetch_
  std::unique_ptr<Prefetch> prefetch_;  // declared last, so that its thread ends before what it reads
};

}  // namespace heed::bench

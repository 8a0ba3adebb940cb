// Training steps of a workload as `heed train` takes them.
#pragma once

#include <map>

#include "train/bench/workload.h"
#include "train/replay.h"

namespace heed::bench {

/// Forward, backward and update; recorded and replayed on a device that can.
class Stepper {
 public:
  explicit Stepper(Workload& work);
  void operator()(int64_t step);
  /// The same, never replayed: so that what its kernels count is counted.
  void as_it_is(int64_t step);

  /// Steps of one shape before they are replayed; what a step takes is what it takes after those.
  static int64_t warm_up();
  /// Why steps run as they are, on a device; empty where they are replayed.
  std::string why_not_replayed() const;

 private:
  /// Steps of the same shapes.
  struct Lane {
    Batch batch;
    int64_t draws = 0;
    std::unique_ptr<heed::Replay> replay;
  };
  void sweep(const Batch& batch);
  void begin();
  void end();
  Lane* lane_of(const Batch& batch);  // null where the step runs as it is

  Workload& work_;
  Optimizer optimizer_;
  Rng noise_;
  std::map<std::string, Lane> lanes_;
};

}  // namespace heed::bench

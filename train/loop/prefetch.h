// Batches made before they are asked for, and copied to the device while it computes.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "heed/train/tasks/task.h"

namespace heed {

namespace cuda {
class Staging;
}

/// Where a run stands in its data: at batch `position` of the `planned` ones of an epoch.
struct DataPlace {
  int64_t epoch = 0;     ///< of the next batch
  int64_t position = 0;  ///< of the next batch in its epoch
  int64_t planned = 0;   ///< batches of that epoch
};

/// A thread of the host that makes the batches of the steps to come, in their order, and has them copied to
/// the device from pinned memory on a stream of their own. The device waits for a batch only where making one
/// takes longer than a step.
class Prefetch {
 public:
  /// A step's batches, with tensors on the CPU, and where the run stands in its data behind them.
  struct Made {
    std::vector<Batch> batches;  ///< of one step
    DataPlace after;             ///< the place behind them
  };

  /// `make` gives one step after the other, `steps` in all, `ahead` of them at most before they are asked
  /// for.
  Prefetch(std::function<Made()> make, int64_t steps, int ahead = 3);
  /// Waits for the batch that is being made.
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// The next step's. Throws what making it threw.
  const Made& next();
  /// What next() gave last.
  const Made& current() const { return current_->made; }
  /// The batches that next() gave, as new tensors of the device. In the order of this thread's stream; once.
  std::vector<Batch> fresh();
  /// The same into batches of these shapes on the device.
  void into(std::vector<Batch>& batches);
  /// How often next() found nothing made.
  int64_t waits() const { return waits_; }

 private:
  struct Slot {
    Made made;
    std::vector<int64_t> offsets;  // of the tensors, batch after batch
    std::unique_ptr<cuda::Staging> staging;
    std::exception_ptr error;
  };
  void work();
  void fill(Slot& slot);
  void take(const std::vector<Batch>& to);

  std::function<Made()> make_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::deque<Slot*> idle_, ready_;
  Slot* current_ = nullptr;  // what next() gave
  int64_t steps_, waits_ = 0;
  bool taken_ = false, stop_ = false, ended_ = false;
  std::thread thread_;  // last: it uses the others
};

/// Whether batches of this device are made ahead: on CUDA, unless the environment variable HEED_PREFETCH is
/// "off".
bool prefetch_wanted();

}  // namespace heed

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

/// The position of a run in its data: the next batch.
struct DataPlace {
  int64_t epoch = 0;     ///< epoch of the next batch
  int64_t position = 0;  ///< number of the next batch in its epoch
  int64_t planned = 0;   ///< number of batches of that epoch
};

/// Makes the batches of the coming steps, in their order, in a thread of the host, and copies them to the
/// device from pinned memory on a stream of their own. The device waits for a batch only where making one
/// takes longer than a step.
class Prefetch {
 public:
  /// The batches of one step, with tensors on the CPU.
  struct Made {
    std::vector<Batch> batches;  ///< all batches of the step
    DataPlace after;             ///< the position in the data after them
  };

  /// `make` makes one step after the other, `steps` in all; at most `ahead` steps are made before they are
  /// asked for.
  Prefetch(std::function<Made()> make, int64_t steps, int ahead = 3);
  /// Waits for the batch that is being made.
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// Returns the batches of the next step; waits until they are made. Throws what making them threw.
  const Made& next();
  /// The step that next() returned last.
  const Made& current() const { return current_->made; }
  /// Copies the batches of current() into new tensors of the device, in the order of this thread's stream.
  /// Called once a step, unless into() is.
  std::vector<Batch> fresh();
  /// Copies the batches of current() into batches of the same shapes on the device.
  void into(std::vector<Batch>& batches);
  /// How often next() had to wait.
  int64_t waits() const { return waits_; }

 private:
  /// One step, and the pinned memory that its tensors are copied from.
  struct Slot {
    Made made;
    std::vector<int64_t> offsets;  // offset of each tensor in the pinned memory, batch after batch
    std::unique_ptr<cuda::Staging> staging;
    std::exception_ptr error;
  };
  /// The loop of the thread.
  void work();
  /// Makes the next step into a slot, and starts the copy to the device.
  void fill(Slot& slot);
  /// Copies the tensors of the current slot into those of `to`.
  void take(const std::vector<Batch>& to);

  std::function<Made()> make_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::deque<Slot*> idle_, ready_;
  Slot* current_ = nullptr;  // the step that next() returned
  int64_t steps_, waits_ = 0;
  bool taken_ = false, stop_ = false, ended_ = false;
  std::thread thread_;  // last: it uses the others
};

/// Whether batches are made ahead: on CUDA, unless the environment variable HEED_PREFETCH is "off".
bool prefetch_wanted();

}  // namespace heed

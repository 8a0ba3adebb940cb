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

/// The position of a run in its data.
struct DataPlace {
  int64_t epoch = 0;        ///< epoch of the next batch
  int64_t position = 0;     ///< number of the next batch in its epoch
  int64_t num_batches = 0;  ///< number of batches of that epoch
};

/// Makes the batches of the coming steps, in order, in a thread of the host, and copies them from pinned
/// memory to the device on a separate stream. The device waits for a batch only where making one takes longer
/// than a step.
class Prefetch {
 public:
  /// The batches of one step, with tensors on the CPU.
  struct PreparedStep {
    std::vector<Batch> batches;  ///< all batches of the step
    DataPlace after;             ///< the position in the data after these batches
  };

  /// Each call of `make` prepares one step, `steps` in all; at most `ahead` are prepared early.
  Prefetch(std::function<PreparedStep()> make, int64_t steps, int ahead = 3);
  /// Waits for the step that is being prepared.
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// Returns the batches of the next step; waits until they are made. Rethrows an exception of `make`.
  const PreparedStep& next();
  /// The step that next() returned last.
  const PreparedStep& current() const { return current_->step; }
  /// Copies the batches of current() into new tensors of the device, in the order of this thread's stream.
  /// Called once per step, unless copy_into() is.
  std::vector<Batch> to_new_tensors();
  /// Copies the batches of current() into batches of the same shapes on the device.
  void copy_into(std::vector<Batch>& batches);
  /// How often next() had to wait.
  int64_t waits() const { return waits_; }

 private:
  /// A prepared step, and the pinned memory that its tensors are copied from.
  struct Slot {
    PreparedStep step;
    std::vector<int64_t> offsets;  // offset of each tensor in the pinned memory, batch after batch
    std::unique_ptr<cuda::Staging> staging;
    std::exception_ptr error;
  };
  /// The loop of the thread.
  void run_thread();
  /// Makes the next step into a slot, and starts the copy to the device.
  void fill(Slot& slot);
  /// Copies the tensors of the current slot into those of `target`.
  void copy_current(const std::vector<Batch>& target);

  std::function<PreparedStep()> make_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::deque<Slot*> idle_, ready_;  // slots to be filled; filled ones in the order of steps
  Slot* current_ = nullptr;         // the step that next() returned
  int64_t steps_, waits_ = 0;
  bool taken_ = false;  // whether the batches of current_ were copied
  bool stop_ = false;   // tells the thread to end
  bool ended_ = false;  // whether the thread has prepared its last step
  std::thread thread_;  // declared last: it uses the other members
};

/// Whether batches are made ahead: on CUDA, unless the environment variable HEED_PREFETCH is "off".
bool prefetch_wanted();

}  // namespace heed

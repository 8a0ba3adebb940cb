// A thread that makes the batches of the next steps while the present step is computed.
#include "heed/train/loop/prefetch.h"

#include <cstring>
#include <utility>

#include "heed/autograd/ops.h"
#include "heed/core/ceil_div.h"
#include "heed/core/cuda/runtime/pinned_staging.h"
#include "heed/core/error.h"
#include "heed/train/loop/graph_capture.h"

namespace heed {

bool prefetch_wanted() { return default_device == Device::cuda && is_switched_on("HEED_PREFETCH"); }

Prefetch::Prefetch(std::function<PreparedStep()> make, int64_t steps, int ahead)
    : make_(std::move(make)), steps_(steps) {
  if (ahead < 1) fail("prefetch: ", ahead, " steps ahead; it must be at least 1.");
  for (int i = 0; i < ahead; ++i) {
    slots_.push_back(std::make_unique<Slot>());
    if constexpr (built_with_cuda) slots_.back()->staging = cuda::make_staging();
    idle_.push_back(slots_.back().get());
  }
  thread_ = std::thread([this] { run_thread(); });
}

Prefetch::~Prefetch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Prefetch::run_thread() {
  for (int64_t made = 1; made <= steps_; ++made) {
    Slot* slot = nullptr;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || !idle_.empty(); });
      if (stop_) return;
      slot = idle_.front();
      idle_.pop_front();
    }
    try {
      fill(*slot);
    } catch (...) {
      slot->error = std::current_exception();
    }
    const bool last = slot->error != nullptr || made == steps_;
    {
      const std::lock_guard lock(mutex_);
      ready_.push_back(slot);
      ended_ = last;
    }
    changed_.notify_all();
    if (last) return;
  }
}

void Prefetch::fill(Slot& slot) {
  constexpr int64_t alignment = 256;  // alignment of tensors in the pinned memory
  const MemoryScope owned(MemoryKind::batches);
  slot.step = make_();
  slot.offsets.clear();
  int64_t bytes = 0;
  for (const Batch& batch : slot.step.batches) {
    for (const Tensor& x : batch.tensors) {
      slot.offsets.push_back(bytes);
      bytes += ceil_div(x.bytes(), alignment) * alignment;
    }
  }
  if constexpr (built_with_cuda) {
    std::byte* const pinned = slot.staging->room(bytes);
    size_t n = 0;
    for (const Batch& batch : slot.step.batches) {
      for (const Tensor& x : batch.tensors) {
        const Tensor dense = contiguous(x);
        if (x.size() > 0) std::memcpy(pinned + slot.offsets[n], dense.raw(), static_cast<size_t>(x.bytes()));
        ++n;
      }
    }
    slot.staging->send();
  }
}

const Prefetch::PreparedStep& Prefetch::next() {
  std::unique_lock lock(mutex_);
  if (current_ != nullptr) {
    if constexpr (built_with_cuda) current_->staging->release();
    idle_.push_back(std::exchange(current_, nullptr));
    changed_.notify_all();
  }
  if (ready_.empty() && ended_) fail(Fault::internal, "prefetch: more steps are asked for than are made.");
  if (ready_.empty()) ++waits_;
  changed_.wait(lock, [this] { return !ready_.empty(); });
  current_ = ready_.front();
  ready_.pop_front();
  taken_ = false;
  if (current_->error) std::rethrow_exception(current_->error);
  return current_->step;
}

void Prefetch::copy_current(const std::vector<Batch>& target) {
  if (current_ == nullptr || taken_) fail(Fault::internal, "prefetch: a step's batches are taken once.");
  taken_ = true;
  if constexpr (built_with_cuda) {
    size_t n = 0;
    for (const Batch& batch : target) {
      for (const Tensor& x : batch.tensors) {
        if (x.size() > 0) current_->staging->take(x.raw(), current_->offsets[n], x.bytes());
        ++n;
      }
    }
  }
}

std::vector<Batch> Prefetch::to_new_tensors() {
  const MemoryScope owned(MemoryKind::batches);
  std::vector<Batch> out = current_->step.batches;
  for (Batch& batch : out) {
    for (Tensor& x : batch.tensors) x = Tensor(x.shape(), x.dtype(), Device::cuda);
  }
  copy_current(out);
  return out;
}

void Prefetch::copy_into(std::vector<Batch>& batches) {
  for (size_t i = 0; i < batches.size(); ++i) {
    batches[i].weight = current_->step.batches[i].weight;
    batches[i].tokens = current_->step.batches[i].tokens;
  }
  copy_current(batches);
}

}  // namespace heed

// AllReduce over a group: by a thread of the CPU, by NCCL, or by copies through the host.
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "heed/core/cuda/runtime/graph.h"
#include "heed/core/cuda/runtime/nccl.h"
#include "heed/core/distributed/process_group.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

/// AllReduce of tensors of the CPU by a thread, which alone calls the group between start() and finish().
class HostAllReduce final : public AllReduce {
 public:
  explicit HostAllReduce(ProcessGroup& group) : group_(group), thread_([this] { sum_tensors(); }) {}

  ~HostAllReduce() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

  void start(const Tensor& x) override {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(x);
      ++unfinished_;
    }
    wake_.notify_all();
  }

  void finish() override {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return unfinished_ == 0; });
    if (const std::exception_ptr error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
  }

 private:
  void sum_tensors() {
    std::vector<std::byte> scratch;
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const Tensor x = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      std::exception_ptr error;
      try {
        group_.sum(x, scratch);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (error && !error_) error_ = error;
      if (--unfinished_ == 0) done_.notify_all();
    }
  }

  ProcessGroup& group_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::deque<Tensor> waiting_;
  int64_t unfinished_ = 0;  // tensors that are started and not summed
  bool stop_ = false;
  std::exception_ptr error_;
  std::thread thread_;  // last, since it uses the other members
};

/// AllReduce of tensors of a device without NCCL: copies them to the host.
class StagedAllReduce final : public AllReduce {
 public:
  explicit StagedAllReduce(ProcessGroup& group) : group_(group) {}
  void start(const Tensor& x) override {
    if constexpr (built_with_cuda)
      cuda::refuse_capture("what processes without NCCL send each other, by way of the host,");
    waiting_.push_back(x);
  }

  void finish() override {
    for (const Tensor& x : waiting_) {
      const Tensor on_host = x.to(Device::cpu);
      group_.sum(on_host, scratch_);
      launch<kernel::Copy>(x.device(), on_host.to(x.device()), x);
    }
    waiting_.clear();
  }

 private:
  ProcessGroup& group_;
  std::vector<Tensor> waiting_;
  std::vector<std::byte> scratch_;
};

/// AllReduce of a group of one, which has nothing to do.
class NoReduce final : public AllReduce {
 public:
  void start(const Tensor&) override {}
  void finish() override {}
};

}  // namespace

std::unique_ptr<AllReduce> make_all_reduce(
    ProcessGroup& group, Device device, [[maybe_unused]] const std::function<void(const std::string&)>& say) {
  if (group.size() == 1) return std::make_unique<NoReduce>();
  if (device == Device::cpu) return std::make_unique<HostAllReduce>(group);
  if constexpr (built_with_cuda) {
    std::string why;
    if (std::unique_ptr<AllReduce> sums = cuda::nccl_all_reduce(group, why)) return sums;
    say(text("gradients go by way of the host, since ", why));
  }
  return std::make_unique<StagedAllReduce>(group);
}

}  // namespace heed

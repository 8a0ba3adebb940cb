// Working memory of a kernel call: one part of equal size for each thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>

#include "heed/core/memory/storage.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {

/// Allocated before the parallel loop, so the memory use does not depend on which thread runs which task.
class Scratch {
 public:
  explicit Scratch(int64_t bytes_each)
      : each_((bytes_each + 63) / 64 * 64),
        count_(threads()),
        memory_(each_ * count_, Device::cpu),
        taken_(std::make_unique<std::atomic_flag[]>(static_cast<size_t>(count_))) {}

  /// The working memory of one task; returned to the scratch by the destructor.
  class Part {
   public:
    explicit Part(Scratch& from) : from_(from) {
      while (from_.taken_[static_cast<size_t>(index_)].test_and_set(std::memory_order_acquire)) {
        index_ = (index_ + 1) % from_.count_;
      }
    }
    ~Part() { from_.taken_[static_cast<size_t>(index_)].clear(std::memory_order_release); }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    template <class T>
    T* data() const {
      return reinterpret_cast<T*>(static_cast<std::byte*>(from_.memory_.data()) + index_ * from_.each_);
    }

   private:
    Scratch& from_;
    int64_t index_ = 0;
  };

 private:
  int64_t each_;
  int64_t count_;
  Storage memory_;
  std::unique_ptr<std::atomic_flag[]> taken_;
};

}  // namespace heed::kernel

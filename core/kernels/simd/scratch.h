// Working memory of a kernel call: one equal part for each thread that may work on it at the same time.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>

#include "heed/core/memory/storage.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {

/// Taken before the work is handed out, so what is mapped does not depend on how the pieces fall on threads.
class Scratch {
 public:
  explicit Scratch(int64_t bytes_each)
      : each_((bytes_each + 63) / 64 * 64),
        count_(threads()),
        memory_(each_ * count_, Device::cpu),
        taken_(std::make_unique<std::atomic_flag[]>(static_cast<size_t>(count_))) {}

  /// One part, held while this lives.
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

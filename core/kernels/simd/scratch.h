// Working memory of a kernel call: one part of equal size for each thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>

#include "heed/core/memory/storage.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {

/// The working memory of a kernel call. It is allocated before the parallel loop, so that memory use does not
/// depend on which thread runs which task.
class Scratch {
 public:
  explicit Scratch(int64_t bytes_per_part)
      : part_bytes_((bytes_per_part + 63) / 64 * 64),  // whole cache lines
        num_parts_(threads()),
        memory_(part_bytes_ * num_parts_, Device::cpu),
        is_taken_(std::make_unique<std::atomic_flag[]>(static_cast<size_t>(num_parts_))) {}

  /// The working memory of one task: takes a free part, and returns it in the destructor.
  class Part {
   public:
    explicit Part(Scratch& scratch) : scratch_(scratch) {
      while (scratch_.is_taken_[static_cast<size_t>(index_)].test_and_set(std::memory_order_acquire))
        index_ = (index_ + 1) % scratch_.num_parts_;
    }
    ~Part() { scratch_.is_taken_[static_cast<size_t>(index_)].clear(std::memory_order_release); }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    template <class T>
    T* data() const {
      return reinterpret_cast<T*>(static_cast<std::byte*>(scratch_.memory_.data()) +
                                  index_ * scratch_.part_bytes_);
    }

   private:
    Scratch& scratch_;
    int64_t index_ = 0;
  };

 private:
  int64_t part_bytes_, num_parts_;
  Storage memory_;
  std::unique_ptr<std::atomic_flag[]> is_taken_;
};

}  // namespace heed::kernel

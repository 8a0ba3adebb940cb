// Asynchronous copies into shared memory, which run when the thread waits for them, and no sooner.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

#include "heed/core/cuda/emulator/block.h"
#include "heed/core/error.h"

namespace heed::emulated {

/// The pending copies of one thread of a block, in groups.
class Copies {
 public:
  /// copy_async(): adds a copy to the group that commit() ends. Fails where an address is not aligned.
  void begin(void* to, const void* from, int size, int bytes) {
    const auto is_aligned = [size](const void* address) {
      return reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(size) == 0;
    };
    if (!is_aligned(to) || !is_aligned(from)) {
      fail(Fault::internal, "emulated device: an asynchronous copy of ", size, " bytes ",
           is_aligned(to) ? "from" : "to", " an address that is no multiple of that.");
    }
    open_.push_back({to, from, size, bytes});
  }
  void commit() {
    groups_.push_back(std::move(open_));
    open_ = {};
  }
  /// Runs the copies of all groups but the `pending` newest ones.
  void wait(size_t pending) {
    for (; groups_.size() > pending; groups_.pop_front()) {
      for (const Copy& copy : groups_.front()) {
        std::memset(copy.to, 0, static_cast<size_t>(copy.size));
        std::memcpy(copy.to, copy.from, static_cast<size_t>(copy.bytes));
      }
    }
  }

  /// The copies of the running thread.
  static Copies& of_thread() {
    static thread_local std::array<Copies, 1024> all;
    return all[threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)];
  }

 private:
  struct Copy {
    void* to;
    const void* from;
    int size, bytes;  // the first `bytes` of `size` bytes are copied, the others zeroed
  };
  std::vector<Copy> open_;  // the group that commit() ends
  std::deque<std::vector<Copy>> groups_;
};

}  // namespace heed::emulated

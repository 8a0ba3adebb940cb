// Asynchronous copies into shared memory: they are done when the thread waits for them, and no sooner.
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
  void begin(void* to, const void* from, int size, int bytes) {
    const auto aligned = [size](const void* at) {
      return reinterpret_cast<uintptr_t>(at) % static_cast<uintptr_t>(size) == 0;
    };
    if (!aligned(to) || !aligned(from)) {
      fail(Fault::internal, "emulated device: an asynchronous copy of ", size, " bytes ",
           aligned(to) ? "from" : "to", " an address that is no multiple of that.");
    }
    open_.push_back({to, from, size, bytes});
  }
  void commit() {
    groups_.push_back(std::move(open_));
    open_ = {};
  }
  /// Does the copies of all groups but the last `open` ones.
  void wait(size_t open) {
    for (; groups_.size() > open; groups_.pop_front()) {
      for (const One& one : groups_.front()) {
        std::memset(one.to, 0, static_cast<size_t>(one.size));
        std::memcpy(one.to, one.from, static_cast<size_t>(one.bytes));
      }
    }
  }

  /// The copies of the running thread.
  static Copies& of_thread() {
    static thread_local std::array<Copies, 1024> all;
    return all[threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)];
  }

 private:
  struct One {
    void* to;
    const void* from;
    int size, bytes;
  };
  std::vector<One> open_;
  std::deque<std::vector<One>> groups_;
};

}  // namespace heed::emulated

// The process group of one process.
#pragma once

#include "heed/core/distributed/process_group.h"

namespace heed {

/// A group of one, whose collective operations are copies. It has no state.
class SingleProcess final : public ProcessGroup {
 public:
  SingleProcess() : ProcessGroup(0, 1) {}
  void all_to_all(const void* from, void* to, int64_t bytes) override;
  void all_gather(const void* from, void* to, int64_t bytes) override;
  void broadcast(void* data, int64_t bytes) override;
  [[noreturn]] void abandon(int code) override;
};

/// The group used where no other is given.
ProcessGroup& single_process();

}  // namespace heed

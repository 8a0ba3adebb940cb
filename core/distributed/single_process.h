// The group of a process that works alone.
#pragma once

#include "heed/core/distributed/process_group.h"

namespace heed {

/// A group of one: every collective is a copy. It has no state, so all who work alone share it.
class SingleProcess final : public ProcessGroup {
 public:
  SingleProcess() : ProcessGroup(0, 1) {}
  void all_to_all(const void* from, void* to, int64_t bytes) override;
  void all_gather(const void* from, void* to, int64_t bytes) override;
  void broadcast(void* data, int64_t bytes) override;
  [[noreturn]] void abandon(int code) override;
};

/// The one that is used where no other group is given.
ProcessGroup& single_process();

}  // namespace heed

// Keeps memory of captured CUDA graph steps from being freed.
#pragma once

#include "heed/core/scope.h"

namespace heed {

/// While an object of this class lives, memory that captured steps have used (see CapturedMemory in
/// core/memory/storage.h) is not returned to the system: a replay may use it although no tensor holds it.
struct CapturedKept : NonCopyable {
  CapturedKept();
  ~CapturedKept();
};

}  // namespace heed

// Keeps memory of captured CUDA graph steps from being freed.
#pragma once

namespace heed {

/// While an object of this class lives, memory that captured steps took before (see CapturedMemory in
/// core/memory/storage.h) is not freed: a replay may use it although no tensor holds it.
struct CapturedKept {
  CapturedKept();
  ~CapturedKept();
  CapturedKept(const CapturedKept&) = delete;
  CapturedKept& operator=(const CapturedKept&) = delete;
};

}  // namespace heed

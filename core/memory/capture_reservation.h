// What recorded steps need of the allocator once they are recorded.
#pragma once

namespace heed {

/// While one lives, what captured steps (CapturedMemory of core/storage.h) have taken until it was made is
/// not given back: it may be used again, although no tensor holds it.
struct CapturedKept {
  CapturedKept();
  ~CapturedKept();
  CapturedKept(const CapturedKept&) = delete;
  CapturedKept& operator=(const CapturedKept&) = delete;
};

}  // namespace heed

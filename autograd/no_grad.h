// Whether this thread records ops on the tape, and the scopes that change it.
#pragma once

#include "heed/core/scope.h"

namespace heed {

/// True unless a NoGrad is active in this thread.
bool recording();

/// While one lives, this thread records nothing (PyTorch: no_grad).
class NoGrad {
 public:
  NoGrad();

 private:
  ScopedValue<bool> recording_;
};

/// While one lives, this thread records, even inside a NoGrad: for recomputation inside a gradient.
class EnableGrad {
 public:
  EnableGrad();

 private:
  ScopedValue<bool> recording_;
};

}  // namespace heed

// Shows on the lines of progress how far counted loops are.
#pragma once

#include <string>

#include "heed/core/counted_work.h"
#include "heed/train/loop/progress.h"

namespace heed {

/// While it lives, a Progress shows under this label what CountedWork (core/counted_work.h) counts in this
/// thread; its living line is taken away at the end.
class ProgressScope {
 public:
  /// The progress must outlive the scope.
  ProgressScope(Progress& progress, const std::string& label);
  ProgressScope(const ProgressScope&) = delete;
  ProgressScope& operator=(const ProgressScope&) = delete;
  ~ProgressScope() { progress_.erase(); }

 private:
  Progress& progress_;
  WorkScope scope_;
};

}  // namespace heed

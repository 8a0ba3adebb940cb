// Counted work as lines of progress.
#include "heed/train/loop/progress_scope.h"

namespace heed {

ProgressScope::ProgressScope(Progress& progress, const std::string& label)
    : progress_(progress), scope_([&progress, label](const WorkDone& now) {
        progress.work({.label = label,
                       .share = now.share,
                       .seconds_left = now.seconds_left,
                       .began = seconds_now() - now.seconds});
      }) {
  progress.work({.label = label});
}

}  // namespace heed

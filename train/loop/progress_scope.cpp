// Counted work as lines of progress.
#include "heed/train/loop/progress_scope.h"

namespace heed {
namespace {

/// The first units of a loop say little of the others.
bool is_predictable(const WorkDone& now) { return now.seconds >= 1 && now.share >= 0.02; }

}  // namespace

ProgressScope::ProgressScope(Progress& progress, const std::string& label)
    : progress_(progress), scope_([&progress, label](const WorkDone& now) {
        progress.work({.label = now.part.empty() ? label : label + ", " + now.part,
                       .share = now.share,
                       .seconds_left = is_predictable(now) ? now.seconds_left : -1,
                       .began = seconds_now() - now.seconds});
      }) {
  progress.work({.label = label});
}

}  // namespace heed

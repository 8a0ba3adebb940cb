// Counted loops, and the scope of the thread that shows them.
#include "heed/train/loop/progress_scope.h"

#include <algorithm>
#include <utility>

namespace heed {
namespace {

thread_local ProgressScope* present_scope = nullptr;

}  // namespace

ProgressScope::ProgressScope(Progress& progress, std::string label)
    : progress_(&progress),
      show_([&progress](const Progress::Work& now) { progress.work(now); }),
      label_(std::move(label)),
      outer_(std::exchange(present_scope, this)) {
  progress.work({.label = label_});
}

ProgressScope::ProgressScope(std::function<void(const Progress::Work&)> show)
    : show_(std::move(show)), outer_(std::exchange(present_scope, this)) {}

ProgressScope::~ProgressScope() {
  if (progress_ != nullptr) progress_->erase();
  present_scope = outer_;
}

CountedWork::CountedWork(double all) : all_(all), began_(seconds_now()) {
  if (present_scope == nullptr || present_scope->counted_ != nullptr) return;
  scope_ = present_scope;
  scope_->counted_ = this;
}

CountedWork::~CountedWork() {
  if (scope_ != nullptr) scope_->counted_ = nullptr;
}

void CountedWork::add(double units) {
  if (scope_ == nullptr) return;
  done_ += units;
  const double share = all_ > 0 ? std::clamp(done_ / all_, 0.0, 1.0) : 1;
  const double left = share > 0 ? (seconds_now() - began_) * (1 - share) / share : 0;
  scope_->show_({.label = scope_->label_, .share = share, .seconds_left = left, .began = began_});
}

}  // namespace heed

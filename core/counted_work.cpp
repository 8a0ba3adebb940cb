// Computes the progress of loops and reports it to the scope of each thread.
#include "heed/core/counted_work.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace heed {
namespace {

thread_local WorkScope* current_scope = nullptr;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

WorkScope::WorkScope(std::function<void(const WorkDone&)> show)
    : show_(std::move(show)), outer_(std::exchange(current_scope, this)) {}

WorkScope::~WorkScope() { current_scope = outer_; }

CountedWork::CountedWork(double all, std::string part)
    : all_(all), began_(steady_seconds()), part_(std::move(part)) {
  if (current_scope == nullptr || current_scope->is_counted_) return;
  scope_ = current_scope;
  scope_->is_counted_ = true;
}

CountedWork::~CountedWork() {
  if (scope_ != nullptr) scope_->is_counted_ = false;
}

void CountedWork::add(double units) {
  if (scope_ == nullptr) return;
  done_ += units;
  const double share = all_ > 0 ? std::clamp(done_ / all_, 0.0, 1.0) : 1, seconds = steady_seconds() - began_;
  scope_->show_({.share = share,
                 .seconds_left = share > 0 ? seconds * (1 - share) / share : 0,
                 .seconds = seconds,
                 .part = part_});
}

}  // namespace heed

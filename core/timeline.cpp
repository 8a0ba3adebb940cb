// Collects the events of all threads in one list.
#include "heed/core/timeline.h"

#include <atomic>
#include <chrono>

#include "heed/core/error.h"

namespace heed {
namespace {

std::atomic<Timeline*> living{nullptr};
std::atomic<int> num_threads{0};     // threads that have recorded an event
thread_local int thread_index = -1;  // -1: this thread has recorded none
thread_local int64_t last_mark = 0;

}  // namespace

Timeline::Timeline(size_t max_events) : max_events_(max_events) {
  Timeline* none = nullptr;
  if (!living.compare_exchange_strong(none, this))
    fail(Fault::internal, "timeline: one is being recorded already. Record one at a time.");
  mark();
}

Timeline::~Timeline() { living.store(nullptr); }

Timeline* Timeline::active() { return living.load(std::memory_order_relaxed); }

int64_t Timeline::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::vector<TimelineEvent> Timeline::events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

int64_t Timeline::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void Timeline::mark() { last_mark = now(); }

void Timeline::slice(const char* kind, const char* name, const void* module, int64_t begin) {
  add({.kind = kind, .name = name, .module = module, .begin = begin, .end = now()});
}

void Timeline::slice_since_mark(const char* kind, const char* name, const void* module) {
  slice(kind, name, module, last_mark);
  mark();
}

void Timeline::counter(const char* name, int64_t value) {
  const int64_t moment = now();
  add({.kind = "memory", .name = name, .begin = moment, .end = moment, .value = value});
}

void Timeline::add(TimelineEvent event) {
  if (thread_index < 0) thread_index = num_threads.fetch_add(1);
  event.thread = thread_index;
  const std::lock_guard lock(mutex_);
  if (events_.size() < max_events_)
    events_.push_back(event);
  else
    ++dropped_;
}

}  // namespace heed

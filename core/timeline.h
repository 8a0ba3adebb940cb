// The timeline of all threads: slices of time and counters, recorded while a Timeline lives.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "heed/core/scope.h"

namespace heed {

/// A slice of a thread's time, or the value of a counter at one moment. Times are nanoseconds of a steady
/// clock.
struct TimelineEvent {
  const char* kind;              ///< "module", "op", "gradient", "threads", "step", "memory"
  const char* name;              ///< lives as long as the program; null: the name of `module`
  const void* module = nullptr;  ///< the module that computes
  int64_t begin = 0;             ///< start; the moment of a counter
  int64_t end = 0;               ///< end; the same moment for a counter
  int64_t value = -1;            ///< value of a counter; below 0: this is a slice
  int thread = 0;                ///< counted from 0, as threads first appear
};

/// Records slices and counters of all threads while it lives. One may live at a time; a second is an internal
/// error. It must be created and destroyed outside of parallel_for().
class Timeline : NonCopyable {
 public:
  /// Keeps the first `max_events` events and counts the others.
  explicit Timeline(size_t max_events = size_t{1} << 18);
  ~Timeline();

  /// The events until now, in the order in which slices ended.
  std::vector<TimelineEvent> events() const;
  /// Number of events that were not kept.
  int64_t dropped() const;

  /// The living Timeline; null: nothing is recorded.
  static Timeline* active();
  /// The present moment, in nanoseconds.
  static int64_t now();

  /// Adds a slice from `begin` to now; does not move this thread's mark.
  void slice(const char* kind, const char* name, const void* module, int64_t begin);
  /// Adds a slice from this thread's last mark to now, and sets the mark to now.
  void slice_since_mark(const char* kind, const char* name, const void* module);
  /// Sets the mark of this thread to now.
  void mark();
  void counter(const char* name, int64_t value);  ///< the value of a counter now

 private:
  void add(TimelineEvent event);

  size_t max_events_;
  mutable std::mutex mutex_;
  std::vector<TimelineEvent> events_;
  int64_t dropped_ = 0;
};

}  // namespace heed

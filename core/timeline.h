// What each thread does when: slices of time and counters, recorded while somebody asks for them.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

namespace heed {

/// A slice of a thread's time, or the value of a counter at one moment. Times are nanoseconds of a steady
/// clock.
struct TimelineEvent {
  const char* kind;              ///< "module", "op", "gradient", "threads", "step", "memory"
  const char* name;              ///< lives as long as the program; null: that of the module
  const void* module = nullptr;  ///< the module that computes
  int64_t begin = 0;             ///< start; the moment of a counter
  int64_t end = 0;               ///< end; the same moment for a counter
  int64_t value = -1;            ///< of a counter; below 0: this is a slice
  int thread = 0;                ///< counted from 0, as threads first appear
};

/// Records what all threads do while it lives. One may live at a time; a second is an internal error. It is
/// made and destroyed between calls of parallel_for.
class Timeline {
 public:
  /// Keeps `most` events, and counts what comes after them.
  explicit Timeline(size_t most = size_t{1} << 18);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  /// What was recorded until now, in the order in which slices ended.
  std::vector<TimelineEvent> events() const;
  /// Events that found no place.
  int64_t dropped() const;

  /// The one that lives; null: nothing is recorded.
  static Timeline* active();
  /// The present moment, in nanoseconds.
  static int64_t now();

  /// Adds a slice that began then and ends now. The mark stays.
  void slice(const char* kind, const char* name, const void* module, int64_t begin);
  /// Adds a slice that began at this thread's last mark and ends now, which is the next mark.
  void slice_since_mark(const char* kind, const char* name, const void* module);
  /// Marks that something begins or has ended now.
  void mark();
  void counter(const char* name, int64_t value);  ///< the value of a counter now

 private:
  void add(TimelineEvent event);

  size_t most_;
  mutable std::mutex mutex_;
  std::vector<TimelineEvent> events_;
  int64_t dropped_ = 0;
};

}  // namespace heed

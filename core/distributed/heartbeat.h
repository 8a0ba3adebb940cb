// Heartbeats of the processes of a group.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heed {

/// Finds processes whose heartbeat is overdue. Each process sends its heartbeat from a separate thread, so a
/// busy process is alive and a stopped one is not. Times are seconds of any one clock that does not go back.
class HeartbeatMonitor {
 public:
  /// Of `size` processes, this one is number `rank`. All are heard of at `now`.
  HeartbeatMonitor(int64_t rank, int64_t size, double limit, double now);

  /// How often signs of life are due: ten times within the limit, and every five seconds at least.
  double period() const;
  void heard(int64_t rank, double now);  ///< a sign of life of member `rank` at time `now`, in seconds
  /// To be called every period. The processes that have been silent for longer than the limit, where it is on
  /// this one to say so: the first of those that are alive does, the others give it ten periods more. Where
  /// this process itself was away for half the limit, it has heard nobody, and waits anew.
  std::vector<int64_t> silent(double now);

 private:
  int64_t rank_;
  double limit_, looked_;
  std::vector<double> heard_;
};

/// "process 2 of 4", "processes 2 and 3 of 4", counted from 1.
std::string names_of_members(const std::vector<int64_t>& ranks, int64_t size);

}  // namespace heed

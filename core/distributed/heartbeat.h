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
  /// This process is number `rank` of `size`. All processes count as heard at `now`.
  HeartbeatMonitor(int64_t rank, int64_t size, double limit, double now);

  /// The interval of heartbeats: a tenth of the limit, at most five seconds.
  double period() const;
  void heard(int64_t rank, double now);  ///< records a heartbeat of process `rank` at time `now`
  /// The processes without a heartbeat for longer than the limit, if this process is the one to report them:
  /// the first living process reports at once, the others ten periods later. To be called every period; a
  /// process that was itself suspended for half the limit starts waiting anew.
  std::vector<int64_t> silent(double now);

 private:
  int64_t rank_;
  double limit_;                    // seconds without a heartbeat
  double last_check_;               // time of the last silent()
  std::vector<double> last_heard_;  // time of the last heartbeat of each process
};

/// "process 2 of 4", "processes 2 and 3 of 4", counted from 1.
std::string names_of_members(const std::vector<int64_t>& ranks, int64_t size);

}  // namespace heed

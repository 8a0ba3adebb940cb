// Finds processes whose heartbeats are overdue.
#include "heed/core/distributed/heartbeat.h"

#include <algorithm>

#include "heed/core/error.h"

namespace heed {

HeartbeatMonitor::HeartbeatMonitor(int64_t rank, int64_t size, double limit, double now)
    : rank_(rank), limit_(limit), last_check_(now), last_heard_(static_cast<size_t>(size), now) {}

double HeartbeatMonitor::period() const { return std::min(limit_ / 10, 5.0); }

void HeartbeatMonitor::heard(int64_t rank, double now) { last_heard_.at(static_cast<size_t>(rank)) = now; }

std::vector<int64_t> HeartbeatMonitor::silent(double now) {
  const bool was_suspended = now - last_check_ > limit_ / 2;
  last_check_ = now;
  if (was_suspended) std::fill(last_heard_.begin(), last_heard_.end(), now);
  std::vector<int64_t> silent_ranks;
  int64_t first_living = rank_;
  double longest = 0;
  for (int64_t i = static_cast<int64_t>(last_heard_.size()) - 1; i >= 0; --i) {
    if (i == rank_) continue;
    const double silence = now - last_heard_[static_cast<size_t>(i)];
    if (silence > limit_)
      silent_ranks.insert(silent_ranks.begin(), i);
    else
      first_living = std::min(first_living, i);
    longest = std::max(longest, silence);
  }
  if (first_living != rank_ && longest <= limit_ + 10 * period()) silent_ranks.clear();
  return silent_ranks;
}

std::string names_of_members(const std::vector<int64_t>& ranks, int64_t size) {
  std::string out = ranks.size() == 1 ? "process " : "processes ";
  for (size_t i = 0; i < ranks.size(); ++i)
    out += text(i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ", ranks[i] + 1);
  return out + text(" of ", size);
}

}  // namespace heed

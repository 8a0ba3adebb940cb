// Finds processes whose heartbeats are overdue.
#include "heed/core/distributed/heartbeat.h"

#include <algorithm>

#include "heed/core/error.h"

namespace heed {

HeartbeatMonitor::HeartbeatMonitor(int64_t rank, int64_t size, double limit, double now)
    : rank_(rank), limit_(limit), looked_(now), heard_(static_cast<size_t>(size), now) {}

double HeartbeatMonitor::period() const { return std::min(limit_ / 10, 5.0); }

void HeartbeatMonitor::heard(int64_t rank, double now) { heard_.at(static_cast<size_t>(rank)) = now; }

std::vector<int64_t> HeartbeatMonitor::silent(double now) {
  const bool was_away = now - looked_ > limit_ / 2;
  looked_ = now;
  if (was_away) std::fill(heard_.begin(), heard_.end(), now);
  std::vector<int64_t> out;
  int64_t first = rank_;
  double longest = 0;
  for (int64_t i = static_cast<int64_t>(heard_.size()) - 1; i >= 0; --i) {
    if (i == rank_) continue;
    const double silence = now - heard_[static_cast<size_t>(i)];
    if (silence > limit_)
      out.insert(out.begin(), i);
    else
      first = std::min(first, i);
    longest = std::max(longest, silence);
  }
  if (first != rank_ && longest <= limit_ + 10 * period()) out.clear();
  return out;
}

std::string names_of_members(const std::vector<int64_t>& ranks, int64_t size) {
  std::string out = ranks.size() == 1 ? "process " : "processes ";
  for (size_t i = 0; i < ranks.size(); ++i)
    out += text(i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ", ranks[i] + 1);
  return out + text(" of ", size);
}

}  // namespace heed

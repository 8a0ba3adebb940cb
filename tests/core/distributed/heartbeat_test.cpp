// Which processes have been silent for too long, by a fake clock.
#include "heed/core/distributed/heartbeat.h"

#include <algorithm>

#include "heed/tests/catch.h"

using namespace heed;

namespace {

using Ranks = std::vector<int64_t>;

/// What process `rank` of four finds in `seconds` of listening every half second, where those in `gone` give
/// no sign of life: the first complaint, and when.
std::pair<Ranks, double> first_complaint(int64_t rank, const Ranks& gone, double seconds, double limit = 10) {
  HeartbeatMonitor monitor(rank, 4, limit, 0);
  for (double now = 0.5; now <= seconds; now += 0.5) {
    for (int64_t i = 0; i < 4; ++i) {
      if (i != rank && std::find(gone.begin(), gone.end(), i) == gone.end()) monitor.heard(i, now);
    }
    const Ranks silent = monitor.silent(now);
    if (!silent.empty()) return {silent, now};
  }
  return {{}, 0};
}

}  // namespace

TEST_CASE("heartbeat: who is silent for longer than the limit is named, and nobody else") {
  CHECK(first_complaint(0, {}, 1000).first.empty());
  CHECK(first_complaint(0, {2}, 10).first.empty());
  CHECK(first_complaint(0, {2}, 100) == std::pair{Ranks{2}, 10.5});
  CHECK(first_complaint(0, {1, 3}, 100) == std::pair{Ranks{1, 3}, 10.5});
}

TEST_CASE("heartbeat: the first of those that are alive complains, the others only where it does not") {
  CHECK(first_complaint(1, {0}, 100) == std::pair{Ranks{0}, 10.5});
  CHECK(first_complaint(1, {2}, 100) == std::pair{Ranks{2}, 20.5});  // process 0 would have ended this one
  CHECK(first_complaint(3, {0, 1}, 100) == std::pair{Ranks{0, 1}, 20.5});
}

TEST_CASE("heartbeat: a process that was away itself blames nobody for it") {
  HeartbeatMonitor monitor(0, 2, 10, 0);
  monitor.heard(1, 1);
  CHECK(monitor.silent(1).empty());
  CHECK(monitor.silent(1000).empty());  // stopped meanwhile, and both go on
  CHECK(monitor.silent(1005).empty());
  CHECK(monitor.silent(1009.5).empty());
  CHECK(monitor.silent(1010.5) == Ranks{1});  // it did not come back
}

TEST_CASE("heartbeat: signs are due ten times within the limit, and every five seconds") {
  CHECK(HeartbeatMonitor(0, 2, 2, 0).period() == 0.2);
  CHECK(HeartbeatMonitor(0, 2, 600, 0).period() == 5);
}

TEST_CASE("heartbeat: processes are counted from 1") {
  CHECK(names_of_members({1}, 4) == "process 2 of 4");
  CHECK(names_of_members({0, 3}, 4) == "processes 1 and 4 of 4");
  CHECK(names_of_members({1, 2, 3}, 4) == "processes 2, 3 and 4 of 4");
}

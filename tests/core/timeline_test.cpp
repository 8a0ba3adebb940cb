// A timeline: slices of several threads, counters, its bound, and that one lives at a time.
#include "heed/core/timeline.h"

#include <chrono>
#include <set>
#include <string>
#include <thread>

#include "heed/core/error.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("timeline: slices and counters of the threads that worked while it lived") {
  CHECK(Timeline::active() == nullptr);
  {
    Timeline timeline;
    CHECK(Timeline::active() == &timeline);
    const int64_t began = Timeline::now();
    timeline.mark();
    timeline.slice_since_mark("op", "first", &timeline);
    timeline.slice_since_mark("op", "second", nullptr);
    timeline.slice("step", "both", nullptr, began);
    timeline.counter("tensors", 7);
    std::thread([&] { timeline.slice("threads", "other", nullptr, Timeline::now()); }).join();
    const std::vector<TimelineEvent> events = timeline.events();
    REQUIRE(events.size() == 5);
    CHECK(events[0].module == &timeline);
    CHECK(events[0].begin >= began);
    CHECK(events[1].begin >= events[0].end);
    CHECK(events[2].begin == began);
    CHECK(events[2].end >= events[1].end);
    CHECK(events[2].value < 0);
    CHECK(events[3].value == 7);
    CHECK(events[3].begin == events[3].end);
    CHECK(events[4].thread != events[0].thread);
    CHECK_THROWS_WITH(Timeline(), containing("one is being recorded already"));
    CHECK(Timeline::active() == &timeline);  // a second one changes nothing
  }
  CHECK(Timeline::active() == nullptr);
}

TEST_CASE("timeline: events beyond its size are counted, not kept") {
  Timeline timeline(2);
  for (int i = 0; i < 5; ++i) timeline.counter("tensors", i);
  CHECK(timeline.events().size() == 2);
  CHECK(timeline.dropped() == 3);
}

TEST_CASE("timeline: the pool's threads are in it, and their slices lie inside the call") {
  const int before = threads();
  set_threads(3);
  {
    Timeline timeline;
    const int64_t began = Timeline::now();
    parallel_for(64, [](int64_t) { std::this_thread::sleep_for(std::chrono::microseconds(200)); });
    const int64_t ended = Timeline::now();
    std::set<int> seen;
    for (const TimelineEvent& event : timeline.events()) {
      CHECK(std::string(event.kind) == "threads");
      CHECK(event.begin >= began);
      CHECK(event.end <= ended);
      seen.insert(event.thread);
    }
    CHECK(seen.size() >= 2);
    CHECK(seen.size() <= 3);
  }
  set_threads(before);
}

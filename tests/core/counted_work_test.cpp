// Counted work is shown to the scope of its thread, by the outermost loop.
#include "heed/core/counted_work.h"

#include <string>
#include <thread>
#include <vector>

#include "heed/tests/catch.h"
#include "heed/tests/work_shares.h"

using namespace heed;

TEST_CASE("counted work: a loop shows its share, and one inside it or in another thread shows nothing") {
  CHECK(shares_of([] {
          CountedWork outer(4);
          outer.add();
          CountedWork inner(2);
          inner.add();
          outer.add(3);
          outer.add();  // more than was said
        }) == std::vector<double>{0.25, 1, 1});
  CHECK(shares_of([] {
          for (int i = 0; i < 2; ++i) {
            CountedWork loop(2);
            loop.add();
          }
        }) == std::vector<double>{0.5, 0.5});
  CHECK(shares_of([] {
          std::thread([] {
            CountedWork elsewhere(2);
            elsewhere.add();
          }).join();
        }).empty());
  CHECK(shares_of([] { CountedWork(0).add(); }) == std::vector<double>{1});
  CountedWork nobody(3);
  nobody.add();
}

TEST_CASE("counted work: the inner scope shows, and the outer one again after it") {
  std::vector<double> outer, inner;
  const WorkScope one([&](const WorkDone& now) { outer.push_back(now.share); });
  {
    const WorkScope two([&](const WorkDone& now) { inner.push_back(now.share); });
    CountedWork(2).add();
  }
  CountedWork(4).add();
  CHECK(inner == std::vector<double>{0.5});
  CHECK(outer == std::vector<double>{0.25});
}

TEST_CASE("counted work: a loop tells its part of the work, where it has a name") {
  std::vector<std::string> parts;
  const WorkScope scope([&](const WorkDone& now) { parts.push_back(now.part); });
  CountedWork(2, "loss").add();
  CountedWork(2).add();
  CHECK(parts == std::vector<std::string>{"loss", ""});
}

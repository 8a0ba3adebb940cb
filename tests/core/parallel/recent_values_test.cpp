// tests core/parallel/recent_values.h
#include "heed/core/parallel/recent_values.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "heed/tests/catch.h"

namespace heed {

TEST_CASE("recent values: a kept value is not made again") {
  const RecentValues<int, std::string> values{2};
  int made = 0;
  const auto of = [&](int key) {
    return values.get(key, [&] {
      ++made;
      return std::to_string(key);
    });
  };
  const auto one = of(1);
  CHECK(*one == "1");
  CHECK(of(1) == one);
  CHECK(made == 1);
  of(2);
  of(1);  // used after 2, so 2 goes first
  of(3);
  CHECK(made == 3);
  CHECK(of(1) == one);
  of(2);
  CHECK(made == 4);
  CHECK(*one == "1");  // whoever holds a value keeps it
}

TEST_CASE("recent values: what does not fit is replaced") {
  const RecentValues<int, std::string> values;
  const auto reaching = [&](size_t length) {
    return values.get(
        0, [=](const std::string& kept) { return kept.size() >= length; },
        [=] { return std::string(length, 'x'); });
  };
  const auto three = reaching(3);
  CHECK(reaching(2) == three);
  CHECK(reaching(5)->size() == 5);
  CHECK(reaching(3)->size() == 5);
  CHECK(three->size() == 3);
}

TEST_CASE("recent values: nothing is kept of a value that could not be made") {
  const RecentValues<int, int> values;
  CHECK_THROWS_AS(values.get(1, []() -> int { throw 7; }), int);
  CHECK(*values.get(1, [] { return 2; }) == 2);
}

TEST_CASE("recent values: threads get equal values", "[threads]") {
  const RecentValues<int, std::vector<int>> values{2};
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int n = 0; n < 2000; ++n) {
        const int key = (n + thread) % 5;
        const auto found = values.get(key, [&] { return std::vector<int>(16, key); });
        if (*found != std::vector<int>(16, key)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace heed

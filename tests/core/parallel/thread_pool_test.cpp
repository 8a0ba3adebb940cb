// The thread pool: each piece runs once, nesting, errors, any number of threads.
#include "heed/core/parallel/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "heed/core/error.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

struct Threads {
  explicit Threads(int count) : before(threads()) { set_threads(count); }
  ~Threads() { set_threads(before); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  int before;
};

}  // namespace

TEST_CASE("parallel_for: every piece runs once") {
  const Threads use(GENERATE(1, 2, 3, 8));
  for (int64_t pieces : {0, 1, 2, 7, 1000}) {
    std::vector<int> seen(static_cast<size_t>(pieces), 0);
    parallel_for(pieces, [&](int64_t i) { ++seen[static_cast<size_t>(i)]; });
    CHECK(seen == std::vector<int>(static_cast<size_t>(pieces), 1));
  }
}

TEST_CASE("parallel_rows: runs cover the range and depend on the grain only") {
  const Threads use(GENERATE(1, 4));
  for (int64_t count : {0, 1, 9, 10, 11, 95}) {
    std::vector<int> seen(static_cast<size_t>(count), 0);
    std::atomic<int> wrong{0};
    parallel_rows(count, 10, [&](int64_t begin, int64_t end) {
      if (begin % 10 != 0 || end != std::min<int64_t>(begin + 10, count)) ++wrong;
      for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
    });
    CHECK(wrong == 0);
    CHECK(seen == std::vector<int>(static_cast<size_t>(count), 1));
  }
}

TEST_CASE("parallel_rows: a grain below 1 counts as 1") {
  std::atomic<int> runs{0}, rows{0};
  parallel_rows(3, 0, [&](int64_t begin, int64_t end) {
    ++runs;
    rows += static_cast<int>(end - begin);
  });
  CHECK(runs == 3);
  CHECK(rows == 3);
}

TEST_CASE("parallel_for: within another one it runs in the same thread") {
  const Threads use(3);
  std::atomic<int64_t> sum{0};
  parallel_for(8, [&](int64_t i) { parallel_for(5, [&](int64_t j) { sum += i * 5 + j; }); });
  CHECK(sum == 40 * 39 / 2);
}

TEST_CASE("parallel_for: an exception reaches the caller, and the pool goes on") {
  const Threads use(GENERATE(1, 2, 4));
  for (int round = 0; round < 20; ++round) {
    CHECK_THROWS_WITH(parallel_for(50,
                                   [](int64_t i) {
                                     if (i == 13) fail("piece ", i, " is wrong.");
                                   }),
                      containing("piece 13"));
    std::atomic<int> count{0};
    parallel_for(50, [&](int64_t) { ++count; });
    CHECK(count == 50);
  }
}

TEST_CASE("parallel_for: many short jobs in a row") {
  const Threads use(GENERATE(2, 5));
  int64_t total = 0;
  for (int job = 0; job < 2000; ++job) {
    std::atomic<int64_t> sum{0};
    parallel_for(3, [&](int64_t i) { sum += i + 1; });
    total += sum;
  }
  CHECK(total == 12000);
}

TEST_CASE("threads: the count can change, the BLAS has a name") {
  const Threads use(3);
  CHECK(threads() == 3);
  set_threads(1);
  CHECK(threads() == 1);
  CHECK_FALSE(blas_core().empty());
}

// Calls of OpenBLAS from several threads, with any build of it. Row D3 of the scorecard runs this with all of
// them.
#include "heed/core/parallel/blas.h"

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "heed/tests/catch.h"

using namespace heed;

namespace {

std::mutex one_at_a_time;  // for what each is compared with

/// How many of `rounds` products differ when two threads begin each at the same moment.
template <class T>
int wrong_of(int rounds) {
  constexpr int64_t n = 64;
  std::vector<T> b(n * n);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<T>(i * 53 % 97) / T(97) - T(0.5);
  std::atomic<int> arrived = 0, wrong = 0;
  const auto work = [&](int seed) {
    std::vector<T> a(b), alone(b.size()), c(b.size());
    for (T& value : a) value += static_cast<T>(seed);
    const auto multiply = [&](std::vector<T>& to) {
      blas::gemm(n, n, n, T(1), {a.data(), n, false}, {b.data(), n, true}, T(0), to.data(), n);
    };
    for (int round = 0; round <= rounds; ++round) {
      arrived.fetch_add(1);
      for (int spin = 0; arrived.load() < 2 * (round + 1); ++spin) {
        if (spin > 100000) std::this_thread::yield();
      }
      if (round == 0) {  // in turns, for once
        const std::lock_guard one(one_at_a_time);
        multiply(alone);
        continue;
      }
      // One of them up to a microsecond later, since the race has a window of nanoseconds.
      for (int late = seed == round / 1000 % 2 ? round % 1000 : 0; late > 0; --late)
        std::atomic_signal_fence(std::memory_order_seq_cst);  // or the loop would be left out
      multiply(c);
      wrong.fetch_add(c == alone ? 0 : 1);
    }
  };
  std::thread other(work, 0);
  work(1);
  other.join();
  return wrong;
}

}  // namespace

TEST_CASE("blas: two threads that multiply at the same moment get what each gets alone") {
  const std::string build = blas::build();
  CHECK((build == "pthread" || build == "openmp" || build == "serial"));
  CHECK(wrong_of<double>(4000) == 0);
  CHECK(wrong_of<float>(4000) == 0);
}

// The caching allocator: reuse, counts and the cap.
#include "heed/core/memory/storage.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <new>
#include <tuple>

#include "heed/core/io/byte_text.h"
#include "heed/core/memory/heap_cap.h"
#include "heed/core/memory/out_of_memory.h"
#include "heed/core/tensor.h"
#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("storage: aligned, and freed memory serves the next request of its size") {
  const int64_t bytes = GENERATE(1, 64, 1000, 16384, 16385, 65536, 65537, 100000, 5 << 20);
  CAPTURE(bytes);
  {
    const Storage one(bytes, Device::cpu);
    CHECK(reinterpret_cast<uintptr_t>(one.data()) % 64 == 0);
    CHECK(one.bytes() == bytes);
    std::memset(one.data(), 1, static_cast<size_t>(bytes));
  }
  const int64_t mapped = memory_use().mapped, reserved = memory_use().reserved;
  const Storage two(bytes, Device::cpu);
  CHECK(memory_use().mapped == mapped);
  CHECK(memory_use().reserved == reserved);
}

TEST_CASE("storage: batches of many shapes share the memory of the largest") {
  // Rows of a transformer's batch, and of one step of a recurrent network, which keeps many small blocks.
  const auto [maximum, columns, blocks] = GENERATE(std::tuple{2000, 100, 20}, std::tuple{120, 128, 400});
  CAPTURE(maximum);
  const auto step = [columns = columns, blocks = blocks](int64_t rows) {
    std::vector<Tensor> kept;
    for (int i = 0; i < blocks; ++i) kept.push_back(Tensor::zeros(Shape{rows, columns + 7 * (i % 20)}));
    return kept.size();
  };
  release_cached();
  step(maximum);
  const int64_t reserved = memory_use().reserved;
  for (int64_t rows = maximum / 3; rows < maximum; rows += maximum / 100) step(rows);
  CHECK(memory_use().reserved <= reserved);
}

TEST_CASE("storage: memory is counted by owner") {
  const int one = 0;
  const auto of = [](const std::vector<MemoryUser>& users, const void* owner) {
    for (const MemoryUser& user : users) {
      if (user.owner == owner) return user.bytes;
    }
    return int64_t{0};
  };
  {
    const MemoryScope owned(&one);
    const Tensor x(Shape{1 << 20});
    const Tensor y(Shape{1 << 10});
    {
      const MemoryScope nobody(nullptr);
      const Tensor z(Shape{1 << 22});
      CHECK(of(memory_users(), &one) == (4 << 20) + (4 << 10));
      CHECK(of(memory_users(), nullptr) >= 16 << 20);
    }
    cap_memory(memory_use().reserved + (1 << 20));
    release_cached();
    CHECK_THROWS_AS(Tensor(Shape{1 << 27}), Error);
    CHECK(last_shortage() == Device::cpu);
    cap_memory(0);
  }
  CHECK(of(memory_users(), &one) == 0);
  CHECK(of(memory_users_at_failure(), &one) == (4 << 20) + (4 << 10));
}

TEST_CASE("storage: when the heap has no memory left, cached memory makes room for it") {
  { const Tensor x(Shape{1 << 20}); }
  CHECK(memory_use().reserved > memory_use().live);
  make_room();  // as operator new calls it
  CHECK(memory_use().reserved == memory_use().live);
  CHECK_THROWS_AS(make_room(), std::bad_alloc);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("storage: small tensors are given back where the heap has nothing left") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    release_cached();
    rlimit limit{};
    getrlimit(RLIMIT_AS, &limit);
    long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    limit.rlim_cur = static_cast<rlim_t>(pages) * 4096 + (24 << 20);
    setrlimit(RLIMIT_AS, &limit);
    try {
      std::vector<Tensor> all;
      all.reserve(size_t{1} << 20);
      for (;;) all.emplace_back(Shape{3});
    } catch (const std::exception&) {
      _exit(42);
    }
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 42);
}
#endif

TEST_CASE("storage: a training step maps nothing after the second one") {
  const auto step = [] {
    const Tensor x = Tensor::zeros(Shape{300, 100});
    const Tensor y = Tensor::zeros(Shape{100, 77});
    return empty_like(x);
  };
  step();
  step();
  const int64_t mapped = memory_use().mapped, live = memory_use().live;
  for (int i = 0; i < 20; ++i) step();
  CHECK(memory_use().mapped == mapped);
  CHECK(memory_use().live == live);
}

TEST_CASE("storage: live and peak bytes") {
  reset_peak();
  const int64_t before = memory_use().live;
  {
    const Tensor x(Shape{1 << 20});
    CHECK(memory_use().live >= before + (4 << 20));
  }
  CHECK(memory_use().live == before);
  CHECK(memory_use().peak >= before + (4 << 20));
  reset_peak();
  CHECK(memory_use().peak == before);
}

TEST_CASE("storage: past the cap is an error that says how much is in use") {
  release_cached();
  const int64_t cap = memory_use().reserved + (1 << 20);
  cap_memory(cap);
  try {
    const Tensor x(Shape{1 << 20});
    FAIL("the cap did not hold");
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::memory);
    CHECK_THAT(error.what(), containing("memory of the machine: 4.2 MB are asked for") &&
                                 containing("the cap is " + bytes_text(cap)));
  }
  {
    // Cached memory of another size is given back before a request fails.
    { const Tensor y(Shape{100000}); }
    const Tensor z(Shape{200000});
    CHECK(z.size() == 200000);
  }
  cap_memory(0);
  CHECK(Tensor(Shape{1 << 20}).size() == 1 << 20);
  release_cached();
  CHECK(memory_use().reserved == memory_use().live);
}

TEST_CASE("storage: the heap counts towards the cap where a program counts it") {
  release_cached();
  constexpr int64_t mebibyte = 1 << 20;
  CHECK(heap_bytes() == 0);
  CHECK(heap_left() == int64_t{1} << 60);
  take_heap(5 * mebibyte);
  const int64_t reserved = memory_use().reserved, cap = reserved + 25 * mebibyte;
  cap_memory(cap);
  CHECK(heap_left() == 20 * mebibyte);
  CHECK_THROWS_WITH(Tensor(Shape{6 * mebibyte}), containing("25 MB are asked for"));
  {
    { const Tensor x(Shape{4 * mebibyte}); }
    CHECK(heap_left() == 4 * mebibyte);
    take_heap(14 * mebibyte + heap_reserve);  // cached memory makes room for it
    CHECK(memory_use().reserved == reserved);
    give_heap(14 * mebibyte + heap_reserve);
  }
  try {
    take_heap(20 * mebibyte + heap_reserve + 1);
    FAIL("the cap did not hold");
  } catch (const std::bad_alloc& error) {
    CHECK_THAT(out_of_memory_text(error),
               containing("memory of the machine: ") &&
                   containing(bytes_text(20 * mebibyte + heap_reserve + 1) +
                              " are asked for while 5.2 MB are in use and the cap is " + bytes_text(cap)));
  }
  CHECK(heap_bytes() == 5 * mebibyte);
  CHECK_THAT(out_of_memory_text(std::bad_alloc()), containing("out of memory"));
  give_heap(5 * mebibyte);
  cap_memory(0);
  take_heap(int64_t{1} << 40);
  give_heap(int64_t{1} << 40);
}

TEST_CASE("storage: nothing is a size, too") {
  const Tensor x(Shape{0, 5});
  CHECK(x.raw() != nullptr);
  CHECK(x.to_host().empty());
}

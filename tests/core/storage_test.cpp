// The caching allocator: reuse, counts and the cap.
#include "core/storage.h"

#include <cstdint>

#include "core/tensor.h"
#include "tests/catch.h"

using namespace heed;

TEST_CASE("storage: aligned, and freed memory serves the next request of its size") {
  const void* first = nullptr;
  {
    const Storage one(100000, Device::cpu);
    first = one.data();
    CHECK(reinterpret_cast<uintptr_t>(first) % 64 == 0);
    CHECK(one.bytes() == 100000);
  }
  const int64_t mapped = memory_use().mapped;
  const Storage two(99999, Device::cpu);
  CHECK(two.data() == first);
  CHECK(memory_use().mapped == mapped);
}

TEST_CASE("storage: a training step maps nothing after the second one") {
  const auto step = [] {
    const Tensor x = Tensor::zeros(Shape{300, 100});
    const Tensor y = Tensor::zeros(Shape{100, 77});
    return like(x);
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
    CHECK_THAT(error.what(), containing("4194304 bytes") && containing(std::to_string(cap)));
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

TEST_CASE("storage: nothing is a size, too") {
  const Tensor x(Shape{0, 5});
  CHECK(x.raw() != nullptr);
  CHECK(x.to_host().empty());
}
